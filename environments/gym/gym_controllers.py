"""Simple controllers that solve classic control, and the playing of an episode by one.

A controller sees the numbers of an observation and gives one action. It is run ahead on a
model of the environment, so that one call takes many steps; then it looks again.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

from hud_mcp import Agent, carl

NEAR, SLOW = 0.6, 3.0
"""Within this angle and speed of upright, a pendulum is held and no longer swung."""

AHEAD = 20
"""Steps in one call: what is rounded in the text has not grown much by then."""

NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
Numbers = list[float]


@dataclass(frozen=True)
class Controller:
    """How one kind of environment is solved.

    Attributes:
        env_id: Gymnasium's, for the model.
        carl: The contextual environment over it.
        act: From the numbers of an observation to an action.
        state: From these numbers to the model's state.
    """

    env_id: str
    carl: str
    act: Callable[[Numbers, Any], Any]
    state: Callable[[Numbers], Any]


def balance_pole(seen: Numbers, _model: Any) -> int:
    """Push to where the pole leans and turns, and a little further, so that the cart comes back."""
    position, velocity, angle, turning = seen
    return int(angle + 0.5 * turning + 0.05 * position + 0.1 * velocity > 0)


def rock_car(seen: Numbers, _model: Any) -> int:
    """Push to where the car rolls already."""
    return 2 if seen[1] >= 0 else 0


def rock_car_gently(seen: Numbers, _model: Any) -> list[float]:
    """The same with the whole force."""
    return [1.0 if seen[1] >= 0 else -1.0]


def swing_pendulum(seen: Numbers, model: Any) -> list[float]:
    """Give energy until it is enough to stand, then hold."""
    cosine, sine, speed = seen
    angle = math.atan2(sine, cosine)
    inertia = model.m * model.l**2 / 3
    weight = model.m * model.g * model.l / 2
    if abs(angle) < NEAR and abs(speed) < SLOW:
        torque = -(weight + 8 * inertia) * angle * 1.4 - 3.2 * inertia * speed
    else:
        missing = weight - (inertia * speed**2 / 2 + weight * cosine)
        torque = math.copysign(2.0, speed or 1.0) * math.copysign(1.0, missing)
    return [max(-2.0, min(2.0, torque))]


def swing_acrobot(seen: Numbers, _model: Any) -> int:
    """Bend to where the first link swings."""
    return 2 if seen[4] < 0 else 0


def angles(seen: Numbers) -> list[float]:
    """Two angles and their velocities."""
    return [
        math.atan2(seen[1], seen[0]),
        math.atan2(seen[3], seen[2]),
        seen[4],
        seen[5],
    ]


CONTROLLERS = {
    "CartPole": Controller("CartPole-v1", "CARLCartPole", balance_pole, tuple),
    "MountainCar": Controller("MountainCar-v0", "CARLMountainCar", rock_car, tuple),
    "MountainCarContinuous": Controller(
        "MountainCarContinuous-v0", "CARLMountainCarContinuous", rock_car_gently, list
    ),
    "Pendulum": Controller(
        "Pendulum-v1",
        "CARLPendulum",
        swing_pendulum,
        lambda seen: [math.atan2(seen[1], seen[0]), seen[2]],
    ),
    "Acrobot": Controller("Acrobot-v1", "CARLAcrobot", swing_acrobot, angles),
}
"""By the environment's name."""


async def play(agent: Agent, controller: Controller, steps: int) -> None:
    """Play until the episode ends or so many steps were taken."""
    text = await agent.look()
    model = open_model(controller, text)
    left = steps
    while left > 0 and not re.search(r"^The episode ended", text, re.MULTILINE):
        planned = plan(controller, model, numbers_of(text), min(AHEAD, left))
        args = {"actions": planned}
        text = await agent.act({"type": "custom", "action": "step", "args": args})
        left -= len(planned)
    model.close()


def open_model(controller: Controller, text: str) -> Any:
    """The environment that a text tells of, under the same context."""
    told = re.search(r"^Context: (.*)\.$", text, re.MULTILINE)
    if told is None:
        model = gymnasium.make(controller.env_id, disable_env_checker=True)
    else:
        parts = (part.rpartition(" ") for part in told[1].split(", "))
        context = {name: float(value) for name, _, value in parts}
        kind = getattr(carl, controller.carl)
        model = kind(contexts={0: context}, render_mode=None)
    model.reset(seed=0)
    return model.unwrapped


def plan(controller: Controller, model: Any, seen: Numbers, count: int) -> list[Any]:
    """What the controller does from an observation on, until the model's episode ends."""
    model.reset()
    model.state = controller.state(seen)
    planned: list[Any] = []
    for _ in range(count):
        action = controller.act(seen, model)
        planned.append(action)
        now, _, terminated, _, _ = model.step(action)
        if terminated:
            break
        seen = [float(value) for value in now]
    return planned


def numbers_of(text: str) -> Numbers:
    """The numbers of an observation, in order: what follows a name, with or without a unit."""
    found = re.findall(rf"^[a-z][^:\n]*: {NUMBER}(?: \S+)?$", text, re.MULTILINE)
    return [float(value) for value in found]
