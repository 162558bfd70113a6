"""What the record costs: steps a second of one session and of 64, with and without it.

Sessions run in this process, in a world that answers at once with a page of text. Without the
record, the store is one that accepts each step and drops it; all else is the same. The rounds
take turns, so that what drifts on the machine drifts for all; a figure is the median of its
rounds, and the ratios hold where the figures do not. The processor's time is that of the thread
of the event loop, and of all others, which is the writer's. Then: how long lists of a job of 2,000
trajectories with 50 steps each take.

    python benchmarks/store.py [--rounds 5] [--seconds 2] [--url postgresql+psycopg://…]
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from hud_mcp import Environment, Observation
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import TrajectoryStep, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import ActionEffect
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, WorldSpec

PAGE = "\n".join(f'link "Item {i} of the shop" [e{i}]' for i in range(40))
LOOK = Look(text=True, image=None)
COUNTS = (1, 64)
TASK = Task(id="look", env="page", template="look")


class Page:
    """A world that shows one page of text."""

    async def act(self, action: object) -> ActionEffect:
        """Do nothing."""
        del action
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """Show the page."""
        del look
        return Observation(text=PAGE)

    async def close(self) -> None:
        """Nothing is open."""


class PageSpec(WorldSpec):
    """Declares it."""

    name = "page"
    world_type = Page
    actions = frozenset({"wait"})
    has_screen = False
    replayable = True
    context_space = ContextSpace()

    async def open(self, opening: Opening) -> Page:
        """Open a page."""
        del opening
        return Page()


class Dropped(Store):
    """A store that accepts each step and each line of log, and drops it."""

    def write_steps(self, *_: object, **__: object) -> "asyncio.Future[None]":
        """Drop them."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def commit_step(self, *_: object, **__: object) -> bool:
        """Drop them."""
        return True

    async def add_logs(self, *_: object, **__: object) -> None:
        """Drop them."""


@dataclass(frozen=True)
class Round:
    """What sessions did in one round.

    Attributes:
        rate: Their steps in a second, of all of them.
        loop_us: Microseconds of the processor that a step took in the event loop's thread.
        writer_us: The same in all other threads.
    """

    rate: float
    loop_us: float
    writer_us: float


async def measure(store: Store, count: int, seconds: float) -> Round:
    """Let sessions look as often as they can."""
    environment = Environment("page", world=PageSpec())

    @environment.template()
    async def look() -> AsyncGenerator[Any, Any]:
        """Look around."""
        yield "Look around."
        yield 1.0

    limits = Limits(sessions=64, sessions_per_caller=64)
    sessions = Sessions([environment], store=store, limits=limits)
    caller = Caller(connection="benchmark")
    started = [await sessions.start(TASK, caller=caller) for _ in range(count)]
    done = 0

    async def go(session: Session) -> None:
        nonlocal done
        while time.perf_counter() < end_s:
            await session.step([], LOOK)
            done += 1

    start_s, loop_s, all_s = time.perf_counter(), time.thread_time(), time.process_time()
    end_s = start_s + seconds
    async with anyio.create_task_group() as group:
        for session in started:
            group.start_soon(go, session)
    rate = done / (time.perf_counter() - start_s)
    loop_s, all_s = time.thread_time() - loop_s, time.process_time() - all_s
    await sessions.close()
    return Round(rate, 1e6 * loop_s / done, 1e6 * (all_s - loop_s) / done)


async def compare(places: dict[str, Callable[[], Store]], rounds: int, seconds: float) -> None:
    """Measure every store in turn, and print the table."""
    found: dict[tuple[str, int], list[Round]] = {
        (place, count): [] for place in places for count in COUNTS
    }
    for _ in range(rounds):
        for (place, count), seen in found.items():
            seen.append(await measure(places[place](), count, seconds))
    print("| sessions | record | steps/s | of those without | CPU µs a step: loop | writer |")
    print("|--:|---|--:|--:|--:|--:|")
    for count in COUNTS:
        bare = next(seen for (place, of), seen in found.items() if of == count)
        for place in places:
            seen = found[place, count]
            share = median(r.rate / b.rate for r, b in zip(seen, bare, strict=True))
            rate = median(r.rate for r in seen)
            loop, writer = median(r.loop_us for r in seen), median(r.writer_us for r in seen)
            print(f"| {count} | {place} | {rate:,.0f} | {share:.2f} | {loop:.0f} | {writer:.0f} |")


async def lists(store: Store, trajectories: int, steps: int) -> None:
    """Record a job, and print how long it takes to list it."""
    job = Job(name="benchmark")
    await store.add_job(job, [TASK])
    now = utc_now()
    row = partial(TrajectoryStep, kind="step", observation_text=PAGE, started_at=now, ended_at=now)

    async def record(name: str) -> None:
        begun = Trajectory(id=name, job_id=job.id, environment="page", task=TASK, started_at=now)
        await store.add_session(begun, secret_digest=name, principal=None)
        async with anyio.create_task_group() as group:
            for index in range(steps):
                group.start_soon(store.add_step, name, row(index=index))

    start_s = time.perf_counter()
    for first in range(0, trajectories, 20):
        async with anyio.create_task_group() as group:
            for number in range(first, min(first + 20, trajectories)):
                group.start_soon(record, f"{job.id}-{number:05}")
    took_s = time.perf_counter() - start_s
    written = trajectories * (steps + 1)
    print(f"\nrecorded {written:,} rows in {took_s:.1f} s ({written / took_s:,.0f}/s)")
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "a job with its runs, without their steps": lambda: store.load_job_summary(job.id),
        "its figures": lambda: Outlines(store.database).load_outline(job.id),
        "the rewards of all jobs": Outlines(store.database).count_rewards,
        "the steps of one trajectory": lambda: store.load_steps(f"{job.id}-00001"),
    }
    for what, ask in asked.items():
        times: list[float] = []
        for _ in range(5):
            start_s = time.perf_counter()
            await ask()
            times.append(time.perf_counter() - start_s)
        print(f"{what}: {median(times) * 1e3:.1f} ms")
    await store.close()


async def run(options: argparse.Namespace) -> None:
    """Measure everything in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        kept: dict[str, Callable[[], Store]] = {"SQLite": lambda: Store(path / "store.sqlite3")}
        if options.url:
            kept["PostgreSQL"] = lambda: Store(options.url, screenshots=path / "screenshots")
        none = {"none": lambda: Dropped(path / "dropped.sqlite3")}
        await compare({**none, **kept}, options.rounds, options.seconds)
        for name, place in kept.items():
            print(f"\n{name}: {options.trajectories} trajectories of {options.steps} steps")
            await lists(place(), options.trajectories, options.steps)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--trajectories", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--url", help="a PostgreSQL to measure beside SQLite")
    anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    main()
