"""Connections that drop, servers that are killed on either side, and peers that say nothing."""

# what is read is made by another process

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest
from bridging import (
    QUESTIONS,
    WORKBENCH,
    HudServer,
    bridged,
    ending,
    graded,
    relay,
    written,
)
from waiting import PATIENCE_S, until
from wire import TALK, Gate, served

from hud_mcp.errors import EnvironmentFailed, SessionEnded
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.bridge import bridge, control
from hud_mcp.record.values import Receipt
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio


async def test_a_dropped_connection_is_made_again(questions: HudServer, tmp_path: Path) -> None:
    """The session is resumed by its id: the same task is graded, and none is begun again."""
    async with (
        relay(questions.port) as way,
        bridged(way.url, tmp_path / "store.sqlite3") as asked,
    ):
        session = await asked.start("add", a=1, tag="-dropped")
        before = way.count
        way.drop()
        with anyio.fail_after(PATIENCE_S):
            while way.count == before:
                await session.step((), Look())
        assert way.count == before + 1
        way.drop()
        assert (await graded(session, "3")).reward == 1.0
    assert (questions.notes / "started-dropped").read_text() == "x"


async def test_a_drop_while_it_grades_is_lost_and_not_graded_as_another(
    questions: HudServer, tmp_path: Path
) -> None:
    """HUD drops a task whose grading is cut off; a task of somebody else that waits is left."""
    async with (
        relay(questions.port) as way,
        bridged(way.url, tmp_path / "store.sqlite3") as asked,
        bridged(questions.url, tmp_path / "other.sqlite3") as others,
    ):
        other = await others.start("add", a=5)
        session = await asked.start("slow", grading="never", tag="-cut")
        answering = asyncio.ensure_future(graded(session, "x"))
        await written(questions.notes / "grading-cut")
        way.drop()
        with pytest.raises(SessionEnded, match="does not have this session any more"):
            await answering
        receipt = await ending(session)
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
        assert (await graded(other, "7")).reward == 1.0


async def test_a_grade_whose_reply_was_lost_is_read_again(tmp_path: Path) -> None:
    """Of a server that keeps it, as one of this package does: the task is graded once."""
    env = load_environments([str(TALK)])[0]
    tally = tmp_path / "tally"
    async with (
        served(env, tmp_path / "theirs.sqlite3") as there,
        relay(there.port) as way,
        bridged(way.url, tmp_path / "ours.sqlite3") as asked,
    ):
        grading = Gate(str(tmp_path / "grading"))
        session = await asked.start("gated", grading=grading.path, tally=str(tally))
        answering = asyncio.ensure_future(graded(session, "x"))

        async def there_is_a_grade() -> bool:
            rows = await there.sessions.store.list_trajectories()
            return [row.outcome for row in rows] == ["graded"]

        await grading.reached()
        way.freeze()
        grading.open()
        await until(there_is_a_grade)
        way.drop()
        way.thaw()
        assert (await answering).reward == 0.5
    assert tally.read_text() == "x\n"


async def test_a_session_goes_on_after_our_server_was_stopped(
    questions: HudServer, tmp_path: Path
) -> None:
    """The next server takes up the HUD session that waits; its task is not begun again."""
    store = tmp_path / "store.sqlite3"
    async with bridged(questions.url, store) as first:
        touched = await first.start("add", a=1, tag="-restarted")
        await touched.step((), Look())
        untouched = await first.start("add", a=2, tag="-restarted")
    async with bridged(questions.url, store) as second:
        for n, before in ((1, touched), (2, untouched)):
            session = await second.find(before.id)
            assert isinstance(session, Session)
            assert session.prompt == before.prompt
            assert (await graded(session, str(n + 2))).reward == 1.0
    assert (questions.notes / "started-restarted").read_text() == "xx"
    assert (questions.notes / "graded-restarted").read_text() == "xx"


async def test_a_session_whose_hud_server_ended_meanwhile_is_lost(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """A HUD server at the same address that does not know it must not grade another task."""
    store = tmp_path / "store.sqlite3"
    hud = mortal()
    async with bridged(hud.url, store) as first:
        before = await first.start("add", a=1)
    hud.kill()
    hud = mortal(QUESTIONS, hud.port)
    async with bridged(hud.url, store) as second:
        with pytest.raises(SessionEnded, match="does not have this session any more"):
            await second.find(before.id)
        found = await second.find(before.id)
        receipt = found.receipt if isinstance(found, Session) else found
        assert isinstance(receipt, Receipt)
        assert (receipt.outcome, receipt.reward) == (Outcome.LOST, None)
    assert (hud.notes / "started").read_text() == "x"


async def test_a_hud_server_killed_between_start_and_answer_is_no_reward(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """The answer is told that the server is gone, and the outcome is the environment's."""
    hud = mortal()
    async with bridged(hud.url, tmp_path / "store.sqlite3") as asked:
        session = await asked.start("add", a=1)
        hud.kill()
        with pytest.raises((SessionEnded, EnvironmentFailed), match="cannot be reached any more"):
            await graded(session, "3")
        receipt = await ending(session)
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
        with pytest.raises(EnvironmentFailed, match="cannot be reached"):
            await asked.start("add", a=1)


async def test_a_hud_server_killed_while_it_grades_is_no_reward(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """The same in the middle of a grade."""
    hud = mortal()
    async with bridged(hud.url, tmp_path / "store.sqlite3") as asked:
        session = await asked.start("slow", grading="never")
        answering = asyncio.ensure_future(graded(session, "x"))
        await written(hud.notes / "grading")
        hud.kill()
        with pytest.raises(SessionEnded, match="cannot be reached any more"):
            await answering
        assert (await ending(session)).outcome is Outcome.ENVIRONMENT_FAILED


async def test_a_hud_server_killed_while_it_starts_is_an_error(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """The same in the middle of a start."""
    hud = mortal()
    async with bridged(hud.url, tmp_path / "store.sqlite3") as asked:
        starting = asyncio.ensure_future(asked.start("slow", setup="never"))
        await written(hud.notes / "setup")
        hud.kill()
        with pytest.raises(EnvironmentFailed, match="ended while it started 'slow'"):
            await starting


async def test_a_first_command_that_is_cut_off_leaves_the_shell_usable(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """HUD's server makes its sandbox then, and where it is cut off, it never has one."""
    hud = mortal(WORKBENCH)
    async with bridged(hud.url, tmp_path / "store.sqlite3") as bench:
        session = await bench.start("total")
        before = len(psutil.Process(hud.process.pid).children(recursive=True))
        using = asyncio.ensure_future(bench.use(session, "run_command", command="sleep 60"))
        processes = psutil.Process(hud.process.pid)
        await until(lambda: len(processes.children(recursive=True)) != before)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert await bench.use(session, "run_command", command="echo here") == "here"


async def test_sessions_that_begin_at_once_all_have_a_shell(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """HUD's server refuses those that come while it makes its sandbox; here they wait for it."""
    async with bridged(mortal(WORKBENCH).url, tmp_path / "store.sqlite3") as bench:
        sessions = [await bench.start("total") for _ in range(4)]
        said = await asyncio.gather(
            *(bench.use(each, "run_command", command="echo here") for each in sessions)
        )
        assert said == ["here"] * 4


@pytest.mark.parametrize("tool", ["run_command", "calc_wait"])
async def test_a_hud_server_killed_in_the_middle_of_a_tool_is_no_reward(
    tool: str, mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """A command and a tool call are cut off, the session ends, and says why."""
    hud = mortal(WORKBENCH)
    async with bridged(hud.url, tmp_path / "store.sqlite3") as bench:
        session = await bench.start("total")
        command = "echo x > begun; sleep 60"
        given = {"command": command} if tool == "run_command" else {"name": "never"}
        using = asyncio.ensure_future(bench.use(session, tool, **given))
        begun = "root/begun" if tool == "run_command" else "never-begun"
        await written(hud.notes / begun)
        hud.kill()
        with pytest.raises(EnvironmentFailed, match="cannot be reached any more"):
            await using
        receipt = await ending(session)
        assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)


async def test_a_server_that_says_nothing_does_not_hang_us(
    questions: HudServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait has a bound: of the first hello, of a resume, and of a grade."""
    monkeypatch.setattr(control, "REPLY_S", 0.5)
    async with relay(questions.port) as way:
        way.freeze()
        with (
            anyio.fail_after(PATIENCE_S),
            pytest.raises(EnvironmentFailed, match="cannot be reached"),
        ):
            await bridge(way.url)
    async with (
        relay(questions.port) as way,
        bridged(way.url, tmp_path / "store.sqlite3", grade_s=1.0) as asked,
    ):
        session = await asked.start("add", a=1)
        mute = await asked.start("add", a=1)
        way.freeze()
        with pytest.raises(SessionEnded, match=r"longer than 1 s"):
            await graded(session, "3")
        assert (await ending(session)).outcome is Outcome.GRADING_FAILED
        way.drop()
        with anyio.fail_after(PATIENCE_S):
            while not mute.state.is_over:  # it has nothing to look at: when it notices is not fixed
                with contextlib.suppress(EnvironmentFailed, SessionEnded):
                    await mute.step((), Look())
        assert (await ending(mute)).outcome is Outcome.ENVIRONMENT_FAILED
