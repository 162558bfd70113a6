"""A template that certainly waits for nothing has no task of its own, and behaves as any other."""

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, SessionEnded
from hud_mcp.grade import Outcome
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

ME = Caller()
BOUND_S = 60
kept: contextvars.ContextVar[str] = contextvars.ContextVar("kept", default="clean")


def waits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hold a timeout open around all of a template, behind its source's back."""

    @functools.wraps(function)
    async def around(*args: Any, **named: Any) -> Any:
        async with asyncio.timeout(30):
            play = function(*args, **named)
            answer = yield await anext(play)
            yield await play.asend(answer)

    return around


def words() -> Environment:
    """Templates that hold something open across their yield, and some that hold nothing."""
    env = Environment("words")

    @env.template()
    async def plain(word: str = "tea") -> Any:
        kept.set(f"{kept.get()} then {word}")
        print(f"asked for {word}")
        answer = yield f"Say {word}."
        kept.set(f"{kept.get()} then graded")
        yield {"score": float(answer == word), "content": kept.get()}

    @env.template()
    async def holds_asyncio_timeout() -> Any:
        async with asyncio.timeout(30):
            answer = yield "Say tea."
        yield float(answer == "tea")

    @env.template()
    async def holds_fail_after() -> Any:
        with anyio.fail_after(30):
            answer = yield "Say tea."
        yield float(answer == "tea")

    @env.template()
    async def holds_task_group() -> Any:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
            answer = yield "Say tea."
        yield float(answer == "tea")

    @env.template()
    async def holds_on_a_stack() -> Any:
        stack = contextlib.ExitStack()
        stack.enter_context(anyio.fail_after(30))
        answer = yield "Say tea."
        stack.close()
        yield float(answer == "tea")

    @env.template()
    @waits
    async def holds_in_a_wrapper() -> Any:
        answer = yield "Say tea."
        yield float(answer == "tea")

    @env.template()
    async def waits_to_grade() -> Any:
        answer = yield "Say tea."
        await anyio.lowlevel.checkpoint()
        yield float(answer == "tea")

    @env.template()
    async def tries() -> Any:
        try:
            answer = yield "Say tea."
        finally:
            print("cleaned up")
        yield float(answer == "tea")

    return env


SLOW = (
    "holds_asyncio_timeout",
    "holds_fail_after",
    "holds_task_group",
    "holds_on_a_stack",
    "holds_in_a_wrapper",
    "waits_to_grade",
    "tries",
)


@asynccontextmanager
async def serving(folder: Path, env: Environment) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    sessions = Sessions([env], store=Store(folder / "store.sqlite3"))
    try:
        with anyio.fail_after(BOUND_S):
            yield sessions
    finally:
        with anyio.fail_after(20):
            await sessions.close()


async def begin(sessions: Sessions, template: str, **args: Any) -> Session:
    """A session, begun in a task of its own that ends at once, as a request's does."""
    starting = sessions.start(sessions.mint(template, args), caller=ME)
    return await asyncio.get_running_loop().create_task(starting)


def drivers() -> list[str]:
    """The tasks that own a template's generator."""
    names = (task.get_name() for task in asyncio.all_tasks())
    return [name for name in names if name.startswith("driver")]


@pytest.mark.parametrize("template", SLOW)
async def test_what_may_wait_or_holds_something_open_has_a_task_of_its_own(
    tmp_path: Path, template: str
) -> None:
    """It is begun and answered from two requests, and what it holds belongs to neither."""
    async with serving(tmp_path, words()) as sessions:
        session = await begin(sessions, template)
        assert len(drivers()) == 1
        receipt = await asyncio.get_running_loop().create_task(session.respond("tea"))
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 1.0)


async def test_what_waits_for_nothing_has_no_task_in_its_own_context(tmp_path: Path) -> None:
    """Nothing of a request reaches it, nothing of it a request, and what it prints is its own."""
    kept.set("a request's")
    async with serving(tmp_path, words()) as sessions:
        session = await begin(sessions, "plain")
        assert drivers() == []
        receipt = await session.respond("tea")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "clean then tea then graded")
        assert kept.get() == "a request's"
        await session.closed()


async def test_a_start_whose_own_deadline_is_over_returns_its_prompt(tmp_path: Path) -> None:
    """It may be graded before its caller learns what it asked: that is no failure of the start."""
    env = Environment("hasty")

    @env.template()
    async def hurry() -> Any:
        answer = None
        with anyio.move_on_after(0):
            answer = yield "Say tea."
        yield 0.25 if answer is None else 1.0

    async with serving(tmp_path, env) as sessions:
        session = await begin(sessions, "hurry")
        await session.closed()
        assert session.prompt is not None
        assert session.receipt is not None
        assert session.receipt.reward == 0.25


@pytest.mark.parametrize("moment", ["setup", "grade", "never"])
async def test_a_failure_of_it_is_laid_to_it(tmp_path: Path, moment: str) -> None:
    """In its setup, in its grader, or without a grade: with its file and line, as of any other."""
    env = Environment("faulty")

    @env.template()
    async def ask() -> Any:
        if moment == "setup":
            raise ValueError("no tea")
        yield "Say tea."
        if moment == "grade":
            raise ValueError("no grade")
        if moment != "never":
            yield 1.0

    assert env.templates["ask"].never_waits
    async with serving(tmp_path, env) as sessions:
        if moment == "setup":
            with pytest.raises(EnvironmentFailed, match=r"test_at_once\.py:\d+: ValueError"):
                await sessions.start(sessions.mint("ask", {}), caller=Caller(principal=OPERATOR))
            return
        session = await begin(sessions, "ask")
        with pytest.raises(SessionEnded, match="grading failed"):
            await session.respond("tea")
        record = await sessions.store.load_trajectory(session.trajectory_id)
        assert record.receipt is not None
        assert "test_at_once.py:" in (record.receipt.error or "")


async def test_it_is_cancelled_and_parked_as_any_other(tmp_path: Path) -> None:
    """A cancelled one ends; one whose server stops goes on in the next."""
    env = words()
    async with serving(tmp_path, env) as first:
        cancelled = await begin(first, "plain")
        await cancelled.cancel()
        assert cancelled.receipt is not None
        assert cancelled.receipt.outcome is Outcome.CANCELLED
        waiting = await begin(first, "plain", word="milk")
    async with serving(tmp_path, env) as second:
        found = await second.find(waiting.id, ME)
        assert isinstance(found, Session)
        receipt = await found.respond("milk")
        assert receipt is not None
        assert receipt.reward == 1.0


@pytest.mark.parametrize("template", ["plain", "waits_to_grade"])
def test_a_program_that_ends_without_closing_says_so(tmp_path: Path, template: str) -> None:
    """Nobody is left to end its sessions but the event loop's own end."""
    store = tmp_path / "store.sqlite3"

    async def run() -> str:
        sessions = Sessions([words()], store=Store(store))
        return (await begin(sessions, template)).trajectory_id

    async def read(trajectory_id: str) -> Any:
        reading = Store(store)
        try:
            return (await reading.load_trajectory(trajectory_id)).receipt
        finally:
            await reading.close()

    receipt = asyncio.run(read(asyncio.run(run())))
    assert receipt is not None
    assert (receipt.outcome, receipt.told) == (
        Outcome.LOST,
        "Its program ended without closing it.",
    )
