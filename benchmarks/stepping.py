"""Measure what stepping costs: bare Gymnasium, the contextual wrapper, the world, and an MCP call.

All take the same actions from the same seed, so all take the same steps. Rounds are
interleaved, so that what drifts on the machine drifts for all; a figure is the median of its
rounds, and the ratios hold where the figures do not. MCP is called by the official client and, in
a row of its own, by a bare loop over JSON. CartPole's thousand actions are those of
a controller that keeps the pole up; LunarLander's are random, until it crashes.

    python benchmarks/stepping.py [--rounds 15] [--steps 1000] [--json]
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bare_client import ROOT, SEED, SERVED, BareServer

sys.path.insert(0, str(ROOT))

import anyio  # the path comes first
import gymnasium  # the same
from mcp.client.client import Client  # the same
from mcp.client.stdio import StdioServerParameters, stdio_client  # the same

import hud_mcp.carl  # the same
from hud_mcp import Gymnasium  # the same
from hud_mcp.plugins.gymnasium.carl.gym_setup import load_box2d  # the same
from hud_mcp.values.action import ActionEffect, CustomAction  # the same
from hud_mcp.world import Opening  # the same

QUIET = open(os.devnull, "w")  # noqa: PTH123, SIM115  # for the servers' logs, to the end


@dataclass(frozen=True)
class Figures:
    """One way to step; the median of its rounds.

    Attributes:
        env: Which environment.
        way: How it is stepped.
        steps: How many steps a round has.
        us_per_step: Microseconds.
        steps_per_s: The same, the other way round.
        ratio: To the bare loop of the same rounds.
    """

    env: str
    way: str
    steps: int
    us_per_step: float
    steps_per_s: int
    ratio: float


def pole_actions(count: int) -> list[int]:
    """Actions that keep the pole up from the seed on, whatever the limit of an episode."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=count + 1)
    seen, _ = env.reset(seed=SEED)
    actions: list[int] = []
    for _ in range(count):
        position, velocity, angle, turning = seen
        actions.append(int(angle + 0.5 * turning + 0.05 * position + 0.1 * velocity > 0))
        seen, _, terminated, _, _ = env.step(actions[-1])
        if terminated:
            raise RuntimeError(f"the controller lost the pole after {len(actions)} steps")
    return actions


def lander_actions(count: int) -> list[int]:
    """Random actions from the seed on, until the lander is down."""
    env = gymnasium.make("LunarLander-v3")
    env.reset(seed=SEED)
    env.action_space.seed(SEED)
    actions: list[int] = []
    for _ in range(count):
        actions.append(int(env.action_space.sample()))
        if env.step(actions[-1])[2]:
            break
    return actions


def loop(env: Any, actions: list[int]) -> float:
    """Seconds for all actions, without the reset."""
    # CartPole's own start, which the contextual wrapper otherwise draws anew; others ignore it.
    env.reset(seed=SEED, options={"low": -0.05, "high": 0.05})
    step = env.step
    began = time.perf_counter()
    for action in actions:
        step(action)
    return time.perf_counter() - began


Way = Callable[[], Any]


async def measure(env_id: str, carl_name: str, actions: list[int], rounds: int) -> list[Figures]:
    """Every way to step one environment, round by round."""
    most = len(actions) + 1
    bare = gymnasium.make(env_id, max_episode_steps=most)
    kind = getattr(hud_mcp.carl, carl_name)
    wrapped = {
        "wrapper, dict": kind(render_mode=None, max_episode_steps=most),
        "wrapper, vector": kind(
            render_mode=None, max_episode_steps=most, obs_context_as_dict=False
        ),
    }
    spec = Gymnasium(env_id, max_episode_steps=most, screen=False)
    whole = CustomAction(action="step", args={"actions": actions})
    single = [CustomAction(action="step", args={"action": action}) for action in actions]
    times: dict[str, list[float]] = {}

    async def world(acts: list[CustomAction], *, at_once: bool = False) -> float:
        done: list[ActionEffect] = []
        live = await spec.open(Opening(seed=SEED))
        began = time.perf_counter()
        if at_once:
            await live.act_all(acts, done.append)
        else:
            for act in acts:
                await live.act(act)
        took = time.perf_counter() - began
        if live.episode.steps != len(actions):
            raise RuntimeError(f"{live.episode.steps} of {len(actions)} steps were taken")
        await live.close()
        return took

    async with bare_server(env_id, most) as ours, served(env_id, most) as calls:
        for _ in range(rounds):
            times.setdefault("bare loop", []).append(loop(bare, actions))
            for way, env in wrapped.items():
                times.setdefault(way, []).append(loop(env, actions))
            times.setdefault("world, one act", []).append(await world([whole]))
            times.setdefault("world, act_all", []).append(await world(single, at_once=True))
            times.setdefault("world, an act a step", []).append(await world(single))
            times.setdefault("MCP, one call", []).append(await calls(actions, len(actions)))
            took, _ = await anyio.to_thread.run_sync(
                lambda: ours.take(actions, at_once=len(actions))
            )
            times.setdefault("MCP, one call, bare client", []).append(took)
            times.setdefault("MCP, a call a step", []).append(await calls(actions[:50], 1))
    return [
        figures(env_id, way, taken, len(actions), times["bare loop"])
        for way, taken in times.items()
    ]


@asynccontextmanager
async def bare_server(env_id: str, most: int) -> AsyncGenerator[BareServer]:
    """A server in another process, with a client that is a bare loop over JSON."""
    with tempfile.TemporaryDirectory() as folder:
        server = BareServer(Path(folder), env_id, most)
        try:
            yield server
        finally:
            server.close()


class served:  # noqa: N801  # used as a function
    """A server in another process, over stdio; called, it takes steps and returns their time."""

    def __init__(self, env_id: str, most: int) -> None:
        self._id, self._most = env_id, most

    async def __aenter__(self) -> Any:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "env.py")
        path.write_text(SERVED.format(id=self._id, most=self._most))  # noqa: ASYNC240  # once
        store = f"{path.parent}/store.sqlite3"
        arguments = ["-m", "hud_mcp", "serve", str(path), "--store", store]
        server = StdioServerParameters(
            command=sys.executable, args=arguments, env={"PYTHONPATH": str(ROOT)}
        )
        self._client = Client(stdio_client(server, errlog=QUIET))
        self._call = (await self._client.__aenter__()).call_tool
        return self._take

    async def __aexit__(self, *exc: object) -> None:
        """Stop it."""
        await self._client.__aexit__(*exc)
        self._folder.cleanup()

    async def _take(self, actions: list[int], at_once: int) -> float:
        """Seconds for as many steps as there are actions in `measure`, scaled up if fewer."""
        started = await self._call("start_task", {"template": "take", "seed": SEED})
        session = started.structured_content["session"]
        began = time.perf_counter()
        for i in range(0, len(actions), at_once):
            args = {"actions": actions[i : i + at_once]}
            sent = [{"type": "custom", "action": "step", "args": args}]
            result = await self._call("step", {"actions": sent, "session": session})
            if result.is_error:
                raise RuntimeError(result.content)
        took = time.perf_counter() - began
        await self._call("cancel_task", {"session": session})
        return took / len(actions) * (self._most - 1)


def figures(env_id: str, way: str, taken: list[float], steps: int, bare: list[float]) -> Figures:
    """The median of the rounds, and of their ratios to the bare loop beside them."""
    seconds = median(taken) / steps
    ratio = median(one / floor for one, floor in zip(taken, bare, strict=True))
    return Figures(env_id, way, steps, round(seconds * 1e6, 2), round(1 / seconds), round(ratio, 2))


async def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load_box2d("lunar_lander")
    rows = await measure("CartPole-v1", "CARLCartPole", pole_actions(options.steps), options.rounds)
    lander = lander_actions(options.steps)
    rows += await measure("LunarLander-v3", "CARLLunarLander", lander, options.rounds)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(
        f"{'environment':16} {'way':26} {'steps':>6} {'µs a step':>10} {'steps/s':>9} {'ratio':>7}"
    )
    for row in rows:
        print(
            f"{row.env:16} {row.way:26} {row.steps:6} {row.us_per_step:10.2f} "
            f"{row.steps_per_s:9,} {row.ratio:7.2f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
