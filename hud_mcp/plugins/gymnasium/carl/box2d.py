"""Gymnasium's environments over Box2D with CARL's features; they need the extra `box2d`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from hud_mcp.plugins.gymnasium.carl.environment import DeclaredEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, load_box2d, set_class
from hud_mcp.values.context import ContextFeature

lunar_lander: Any = load_box2d("lunar_lander")
bipedal_walker: Any = load_box2d("bipedal_walker")
car_dynamics: Any = load_box2d("car_dynamics")
car_racing: Any = load_box2d("car_racing")


class _Gravity:
    """Box2D's module to an environment: its worlds have the gravity of the context."""

    def __init__(self, box2d: Any) -> None:
        self._box2d = box2d
        self.x = 0.0
        self.y = -10.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box2d, name)

    def b2World(self, **options: Any) -> Any:  # noqa: N802  # Box2D's name
        """Return a new world with this gravity."""
        return self._box2d.b2World(**{**options, "gravity": (self.x, self.y)})


class CARLLunarLander(DeclaredEnv):
    """A lander over the moon; gravity, its engines, its legs and its size vary."""

    env_name = "LunarLander-v3"
    env_class = lunar_lander.LunarLander

    def _isolate(self, unwrapped: Any) -> None:
        self._gravity = _Gravity(vars(lunar_lander)["Box2D"])
        kind, self._names = isolated_class(
            lunar_lander.LunarLander, lunar_lander, {"Box2D": self._gravity}
        )
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        self._gravity.x, self._gravity.y = context.pop("GRAVITY_X"), context.pop("GRAVITY_Y")
        env: Any = self.unwrapped
        env.gravity = self._gravity.y
        env.world.gravity = (self._gravity.x, self._gravity.y)
        self._names.update(context)


_PART: dict[str, Any] = {"categoryBits": 0x0020, "maskBits": 0x001, "restitution": 0.0}
"""Parts of the walker meet the ground alone, and do not bounce."""


class CARLBipedalWalker(DeclaredEnv):
    """A robot with two legs on rough ground; gravity, ground, legs and motors vary."""

    env_name = "BipedalWalker-v3"
    env_class = bipedal_walker.BipedalWalker

    def _isolate(self, unwrapped: Any) -> None:
        kind, self._names = isolated_class(bipedal_walker.BipedalWalker, bipedal_walker, {})
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        env: Any = self.unwrapped
        env.world.gravity = (context.pop("GRAVITY_X"), context.pop("GRAVITY_Y"))
        names = self._names
        names.update(context)
        # What Gymnasium makes of the constants when its module loads, and when it is made.
        scale, width, height = names["SCALE"], names["LEG_W"], names["LEG_H"]
        shape, part = names["polygonShape"], partial(names["fixtureDef"], **_PART)
        hull = [(x / scale, y / scale) for x, y in names["HULL_POLY"]]
        names["HULL_FD"] = part(shape=shape(vertices=hull), density=5.0, friction=0.1)
        for name, narrow in (("LEG_FD", 1.0), ("LOWER_FD", 0.8)):
            box = (narrow * width / 2, height / 2)
            names[name] = part(shape=shape(box=box), density=1.0)
        env.fd_polygon.friction = env.fd_edge.friction = context["FRICTION"]


_OF_CAR = ("ENGINE_POWER", "FRICTION_LIMIT", "WHEEL_MOMENT_OF_INERTIA", "WHEEL_R", "WHEEL_W")
"""The features that are constants of the car; the others are the track's."""

_DRIVE = {"rear": (2, 3), "front": (0, 1), "all": (0, 1, 2, 3)}


class CARLCarRacing(DeclaredEnv):
    """A car on a track, seen from above; the car and the track vary.

    CARL draws one of thirty vehicles (`VEHICLE_ID`); these features say what differs.
    """

    env_name = "CarRacing-v3"
    env_class = car_racing.CarRacing

    @classmethod
    def get_context_features(cls) -> Mapping[str, ContextFeature]:
        """Return eleven features, in the units of the simulation."""
        drive = ContextFeature(
            name="DRIVE", default="rear", choices=tuple(_DRIVE), description="What is driven."
        )
        return {**super().get_context_features(), "DRIVE": drive}

    def _isolate(self, unwrapped: Any) -> None:
        car, self._car_names = isolated_class(car_dynamics.Car, car_dynamics, {})
        self._car = car
        car.gas = _gas  # type: ignore[attr-defined]
        kind, self._names = isolated_class(car_racing.CarRacing, car_racing, {"Car": car})
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        self._car.driven = _DRIVE[context.pop("DRIVE")]
        self._car_names.update({name: context.pop(name) for name in _OF_CAR})
        self._names.update(context)


def _gas(car: Any, gas: float) -> None:
    """Drive the wheels that are driven: power comes slowly and goes at once."""
    wanted = np.clip(gas, 0, 1)
    for place in car.driven:
        wheel = car.wheels[place]
        wheel.gas += min(wanted - wheel.gas, 0.1)
