"""A template that certainly waits for nothing has no task of its own, and behaves as any other."""

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from open_sessions import opened
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    AlreadyAnswered,
    EnvironmentFailed,
    HudMcpError,
    SessionEnded,
    StoreFailed,
)
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.carry_out import EFFECTS
from hud_mcp.session.events import StartDriver, Submit
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.store import NewStep, Store
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

ME = Caller()
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
        with anyio.fail_after(PATIENCE_S):
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
        stack.enter_context(anyio.fail_after(PATIENCE_S))
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
    async with opened(sessions):
        yield sessions


async def begin(sessions: Sessions, template: str, **args: Any) -> Session:
    """A session, begun in a task of its own that ends at once, as a request's does."""
    starting = sessions.start(sessions.catalogue.mint(template, args), caller=ME)
    return await asyncio.get_running_loop().create_task(starting)


def has_driver(session: Session) -> bool:
    """Whether a task owns the generator of a session."""
    names = {task.get_name() for task in asyncio.all_tasks()}
    return f"driver {session.spec.name}" in names


@pytest.mark.parametrize("template", SLOW)
async def test_what_may_wait_or_holds_something_open_has_a_task_of_its_own(
    tmp_path: Path, template: str
) -> None:
    """It is begun and answered from two requests, and what it holds belongs to neither."""
    async with serving(tmp_path, words()) as sessions:
        session = await begin(sessions, template)
        assert has_driver(session)
        receipt = await asyncio.get_running_loop().create_task(session.respond("tea"))
        assert receipt is not None
        assert (receipt.outcome, receipt.reward) == (Outcome.GRADED, 1.0)


async def test_what_waits_for_nothing_has_no_task_in_its_own_context(tmp_path: Path) -> None:
    """Nothing of a request reaches it, nothing of it a request, and what it prints is its own."""
    kept.set("a request's")
    async with serving(tmp_path, words()) as sessions:
        session = await begin(sessions, "plain")
        assert not has_driver(session)
        receipt = await session.respond("tea")
        assert receipt is not None
        assert (receipt.reward, receipt.content) == (1.0, "clean then tea then graded")
        assert kept.get() == "a request's"
        await session.closed()


async def test_a_start_whose_own_deadline_is_over_returns_its_prompt(tmp_path: Path) -> None:
    """It may be graded before its caller gets the prompt, and the start does not fail."""
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


@pytest.mark.parametrize("effect", [StartDriver, Submit])
@pytest.mark.parametrize("template", ["plain", "waits_to_grade"])
async def test_a_template_that_could_not_be_resumed_ends_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, effect: type
) -> None:
    """A start or a grade that fails in the server is lost at once, and waits for no bound."""

    def broken(*_: object) -> None:
        raise RuntimeError("no driver today")

    async with serving(tmp_path, words()) as sessions:
        monkeypatch.setitem(EFFECTS, effect, broken)
        with anyio.fail_after(PATIENCE_S), pytest.raises(HudMcpError, match="Its server failed"):
            await (await begin(sessions, template)).respond("tea")


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
                await sessions.start(
                    sessions.catalogue.mint("ask", {}), caller=Caller(principal=OPERATOR)
                )
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


class Slow(Store):
    """A store whose steps are written when a test says so, or not at all."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = anyio.Event()
        self.go_on: asyncio.Event | None = None
        self.fails = False

    def write_steps(self, trajectory_id: str, steps: Sequence[NewStep]) -> "asyncio.Future[None]":
        """Write them once they may be."""
        self.asked.set()
        go_on, fails = self.go_on, self.fails

        async def write() -> None:
            if go_on is not None:
                await go_on.wait()
            if fails:
                raise StoreFailed("The disk is full.")
            await super(Slow, self).write_steps(trajectory_id, steps)

        return asyncio.ensure_future(write())

    def commit_step(self, trajectory_id: str, new: NewStep) -> bool:
        """Commit none at once."""
        del trajectory_id, new
        return False


@asynccontextmanager
async def slow(folder: Path) -> AsyncIterator[tuple[Slow, Sessions]]:
    """Sessions on a store that waits."""
    store = Slow(folder / "store.sqlite3")
    sessions = Sessions([words()], store=store)
    async with opened(sessions):
        yield store, sessions


async def test_an_answer_of_it_is_recorded_before_it_is_graded(tmp_path: Path) -> None:
    """While its step is written, there is no grade, and the session is at work."""
    async with slow(tmp_path) as (store, sessions):
        session = await begin(sessions, "plain")
        store.go_on = asyncio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(session.respond, "tea")
            await store.asked.wait()
            assert session.is_busy
            assert session.receipt is None
            assert session.state.shown == "open"
            store.go_on.set()
        assert session.receipt is not None
        assert session.receipt.reward == 1.0
        record = await store.load_trajectory(session.trajectory_id)
        assert record.receipt == session.receipt
        assert [step.kind for step in record.steps] == ["response"]


async def test_an_answer_whose_caller_leaves_while_it_is_written_is_graded(tmp_path: Path) -> None:
    """What was handed to the store cannot be taken back, so it counts."""
    async with slow(tmp_path) as (store, sessions):
        session = await begin(sessions, "plain")
        store.go_on = asyncio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(session.respond, "tea")
            await store.asked.wait()
            group.cancel_scope.cancel()
        store.go_on.set()
        await session.closed()
        assert session.receipt is not None
        assert session.receipt.reward == 1.0


async def test_of_two_answers_at_once_the_first_is_graded(tmp_path: Path) -> None:
    """The second waits for the first to be written, and is told that it is over."""
    async with slow(tmp_path) as (store, sessions):
        session = await begin(sessions, "plain")
        store.go_on = asyncio.Event()
        said: list[str] = []

        async def second() -> None:
            with pytest.raises((AlreadyAnswered, SessionEnded)) as caught:
                await session.respond("coffee")
            said.append(str(caught.value))

        async with anyio.create_task_group() as group:
            group.start_soon(session.respond, "tea")
            await store.asked.wait()
            group.start_soon(second)
            await anyio.lowlevel.checkpoint()
            store.go_on.set()
        assert len(said) == 1
        record = await store.load_trajectory(session.trajectory_id)
        assert [step.actions[0]["text"] for step in record.steps] == ["tea"]
        assert record.receipt is not None
        assert record.receipt.reward == 1.0


async def test_an_answer_that_cannot_be_recorded_is_not_submitted(tmp_path: Path) -> None:
    """Its caller is told, the session lives on, and the same or another answer is taken then."""
    async with slow(tmp_path) as (store, sessions):
        session = await begin(sessions, "plain")
        store.fails = True
        with pytest.raises(StoreFailed, match=r"was not submitted.*The disk is full"):
            await session.respond("coffee")
        assert session.state.shown == "open"
        await anyio.lowlevel.checkpoint()
        assert not session.is_busy
        store.fails = False
        receipt = await session.respond("tea")
        assert receipt is not None
        assert receipt.reward == 1.0
        record = await store.load_trajectory(session.trajectory_id)
        assert [step.actions[0]["text"] for step in record.steps] == ["tea"]


async def test_a_session_that_is_cancelled_while_its_answer_is_written_ends_so(
    tmp_path: Path,
) -> None:
    """The record has the answer, and no grade; its caller is told how it ended."""
    async with slow(tmp_path) as (store, sessions):
        session = await begin(sessions, "plain")
        store.go_on = asyncio.Event()

        async def respond() -> None:
            with pytest.raises(SessionEnded, match="cancelled"):
                await session.respond("tea")

        async with anyio.create_task_group() as group:
            group.start_soon(respond)
            await store.asked.wait()
            group.start_soon(session.cancel)
            await anyio.lowlevel.checkpoint()
            store.go_on.set()
        record = await store.load_trajectory(session.trajectory_id)
        assert record.receipt is not None
        assert record.receipt.outcome is Outcome.CANCELLED
        assert record.receipt.reward is None
        assert len(record.steps) == 1
