"""Templates that look at their workspace's root: each sees its own session's folder there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from room import command
from waiting import PATIENCE_S, until

import hud_mcp.graders
from hud_mcp.errors import EnvironmentFailed, SessionEnded

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

Open = Callable[..., Any]


async def test_a_template_reads_at_the_root_what_the_agent_has_written(open_room: Open) -> None:
    """By pathlib, by a process of its own, and by a command in the sandbox; both ways."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("write", word="milk", number=4)
            assert session.prompt is not None
            assert session.prompt.text == f"Write milk into {room.root}/out.txt."
            assert session.prompt.extra == {"number": 4}
            assert "given to milk" in await command(session, "cat sub/given.txt")
            await command(session, f"echo milk > {room.root}/out.txt; echo more >> sub/given.txt")
            receipt = await session.respond("done")
            assert receipt is not None
            assert receipt.reward == 1.0
            assert receipt.info["answer"] == "done"
            assert receipt.info["names"] == ["out.txt", "sub"]
            assert receipt.info["cwd"] == "/workspace/sub"
            record = await room.record(session)
            for line in ("run 1 of milk", "info author: logged for milk", "found milk"):
                assert line in (record.logs or "")
            assert list(room.root.iterdir()) == [], "the root itself is never written"


@pytest.mark.long
async def test_what_is_not_done_is_not_graded_as_done(open_room: Open) -> None:
    """The same template, and an agent that does nothing, or the wrong thing."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            for line in ("true", "echo coffee > out.txt"):
                session = await room.start("write")
                await command(session, line)
                receipt = await session.respond("")
                assert receipt is not None
                assert receipt.reward == 0.0


@pytest.mark.long
async def test_eight_sessions_at_once_never_see_one_folder(open_room: Open) -> None:
    """Each writes its own word while the others do, and each grader finds that one alone."""
    words = [f"word{number}" for number in range(8)]
    seen: dict[str, Any] = {}

    async with open_room() as room:
        with anyio.fail_after(2 * PATIENCE_S):
            ready = anyio.Event()
            waiting: list[str] = []

            async def work(word: str) -> None:
                session = await room.start("write", word=word)
                await command(session, f"echo {word} > out.txt; echo {word} > only-{word}")
                waiting.append(word)
                if len(waiting) == len(words):
                    ready.set()
                await ready.wait()  # all of them are open now
                seen[word] = await session.respond("")
                seen[word, "log"] = (await room.record(session)).logs

            async with anyio.create_task_group() as group:
                for word in words:
                    group.start_soon(work, word)
    for word in words:
        assert seen[word].reward == 1.0
        assert seen[word].info["names"] == [f"only-{word}", "out.txt", "sub"]
        assert f"run 1 of {word}" in seen[word, "log"], "its module is its own"
        assert "found" in seen[word, "log"]
    assert len(words) == len({seen[word].info["found"] for word in words})


@pytest.mark.long
async def test_hooks_run_once_in_the_server(open_room: Open, tmp_path: Path) -> None:
    """However many sessions load the file."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            for _ in range(2):
                session = await room.start("write")
                await session.cancel()
    assert (tmp_path / "started").read_text() == "once\n"


@pytest.mark.long
async def test_sessions_begin_with_what_lies_in_the_root(open_room: Open, tmp_path: Path) -> None:
    """As it is when they start; a root that is not there is made."""
    root = tmp_path / "work" / "deep"
    with anyio.fail_after(PATIENCE_S):
        async with open_room(root="work/deep") as room:
            first = await room.start("write")
            assert root.is_dir()
            (root / "seed.txt").write_text("seeded\n")
            second = await room.start("write")
            assert "seeded" not in await command(first, "cat seed.txt")
            assert "seeded" in await command(second, "cat seed.txt; rm seed.txt")
    assert (root / "seed.txt").read_text() == "seeded\n"


@pytest.mark.long
async def test_a_root_that_each_load_makes_anew_is_the_sessions_folder(
    temporary_files: Path, open_room: Open
) -> None:
    """As `mkdtemp` at the top of a file does; nothing is left among the temporary files."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room(root=None) as room:
            assert room.root.parent == temporary_files
            session = await room.start("write", word="salt")
            assert session.prompt is not None
            there = session.prompt.text.split()[-1].removesuffix("/out.txt.")
            assert there != str(room.root)
            await command(session, "echo salt > out.txt")
            receipt = await session.respond("")
            assert receipt is not None
            assert receipt.reward == 1.0
            await session.closed()
            left = [name for name in names(temporary_files) if name.startswith("rooms-")]
            assert left == [room.root.name]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("when", "logged"),
    [
        ("grading", r"rooms\.py:\d+: FileNotFoundError: .*missing\.txt"),
        ("exit", r"rooms\.py:\d+: SystemExit: 3"),
        ("nan", r"rooms\.py:\d+: .*yielded nan as its reward"),
        ("die", r"rooms\.py:\d+: the template's process ended with exit code 7"),
    ],
)
async def test_what_raises_in_grading_is_named_with_file_and_line(
    open_room: Open, when: str, logged: str
) -> None:
    """It is not a reward, and the agent is told nothing of why."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("raises", when=when)
            with pytest.raises(SessionEnded) as told:
                await session.respond("")
            record = await room.record(session)
    assert record.outcome == "grading_failed"
    assert record.reward is None
    assert re.search(logged, record.error or ""), record.error
    assert "rooms.py" not in str(told.value)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("line", "how", "reason"),
    [
        ("rm out.txt", "read", "out.txt is not there"),
        ("rm out.txt", "bytes", "out.txt is not there"),
        ("rm out.txt", "copy", "out.txt is not there"),
        ("rm out.txt", "move", "out.txt is not there"),
        ("rm out.txt", "group", "out.txt is not there"),
        ("rm out.txt", "grader", "out.txt is not there"),
        ("rm out.txt", "from there", "out.txt is not there"),
        ("rm out.txt; mkdir out.txt", "read", "out.txt: Is a directory"),
        ("rm out.txt; ln -s /etc/passwd out.txt", "read", "out.txt: Too many levels"),
        ("rmdir sub; touch sub", "work in", "sub: Not a directory"),
        ("cat /dev/zero > big", "write", "there is no room left in the folder"),
        ("chmod -x out.txt", "run", "out.txt: Permission denied"),
        ("rmdir sub", "within", "sub is not there"),
        ("true", "broken", "The ledger is torn."),
    ],
)
async def test_a_file_of_the_agents_that_cannot_be_opened_is_graded_0_as_its_doing(
    open_room: Open, line: str, how: str, reason: str
) -> None:
    """However the template opens it, and whoever says so; the record names the line that did."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("opens", how=how)
            await command(session, line)
            receipt = await session.respond("")
            record = await room.record(session)
    assert receipt is not None
    assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent")
    assert reason in (receipt.content or "")
    assert re.search(rf"rooms\.py:\d+: .*{reason}", record.error or "", re.DOTALL), record.error


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "logged"),
    [
        ("not beside", "FileNotFoundError: .*missing.txt"),
        ("copy to nowhere", "FileNotFoundError: .*nowhere"),
        ("move to nowhere", "FileNotFoundError: .*nowhere"),
        ("no program", "FileNotFoundError: .*no-such-program"),
        ("elsewhere full", "No space left on device"),
        ("words", "FileNotFoundError: out.txt is expected"),
    ],
)
async def test_an_authors_own_mistake_with_files_is_no_reward(
    open_room: Open, how: str, logged: str
) -> None:
    """What is not in the workspace, and what the system did not say of a path in it."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("opens", how=how)
            await command(session, "echo done > out.txt")
            with pytest.raises(SessionEnded):
                await session.respond("")
            record = await room.record(session)
    assert (record.outcome, record.cause, record.reward) == ("grading_failed", "machine", None)
    assert re.search(logged, record.error or ""), record.error


@pytest.mark.long
async def test_a_file_that_is_missing_in_the_setup_is_nobody_elses_than_its_authors(
    open_room: Open,
) -> None:
    """The agent had not begun."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            with pytest.raises(EnvironmentFailed, match=r"failed \(FileNotFoundError\)\.$"):
                await room.start("opens", how="read", when="setup")
            record = await room.last()
    assert (record.outcome, record.cause) == ("environment_failed", "machine")


@pytest.mark.long
async def test_what_raises_in_the_setup_is_named_with_file_and_line(open_room: Open) -> None:
    """The session ends, and the agent hears the exception's class alone."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            with pytest.raises(EnvironmentFailed, match=r"'raises' failed \(ValueError\)\.$"):
                await room.start("raises", when="setup")
            record = await room.last()
    assert record.outcome == "environment_failed"
    assert re.search(r"rooms\.py:\d+: ValueError: THE-EXPECTED-WORD", record.error or "")


@pytest.mark.long
async def test_a_third_yield_makes_a_grade_ambiguous(open_room: Open) -> None:
    """As in the server's own process."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("thrice")
            with pytest.raises(SessionEnded):
                await session.respond("")
            record = await room.record(session)
    assert "yielded a third time" in (record.error or "")


@pytest.mark.long
@pytest.mark.parametrize("phase", ["setup", "grading", "waits"])
async def test_a_bound_ends_a_template_with_all_that_it_has_started(
    open_room: Open, tmp_path: Path, phase: str
) -> None:
    """One that blocks is killed; one that waits cleans up first."""
    marker = tmp_path / "marker"
    with anyio.fail_after(PATIENCE_S):
        async with open_room(setup_s=10, grade_s=0.5) as room:
            if phase == "setup":
                with pytest.raises(EnvironmentFailed, match="took longer than 10 s"):
                    await room.start("blocks", marker=str(marker), phase=phase)
            else:
                session = await room.start("blocks", marker=str(marker), phase=phase)
                assert sleepers(marker)
                with pytest.raises(SessionEnded, match="grading failed"):
                    await session.respond("")
            record = await room.last()
            assert "blocking" in (record.logs or "")
            assert "took longer than" in (record.error or "")
            await until(lambda: not sleepers(marker))
            if phase == "waits":
                assert marker.read_text() == "cleaned up"


@pytest.mark.long
async def test_a_template_is_told_that_its_session_is_over(open_room: Open, tmp_path: Path) -> None:
    """The same exception as in the server's process, and its cleanup runs."""
    marker = tmp_path / "marker"
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("held", marker=str(marker))
            await session.cancel()
            assert marker.read_text() == "SessionOver: cancelled"
            assert (await room.record(session)).outcome == "cancelled"


@pytest.mark.long
async def test_a_timeout_that_a_template_holds_across_its_yield_fires(
    open_room: Open, tmp_path: Path
) -> None:
    """It grades by itself, and nobody had to answer."""
    marker = tmp_path / "marker"
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("held", marker=str(marker), seconds=0.3)
            await session.over()
            record = await room.record(session)
            again = await room.start("held", marker=str(marker), seconds=300)
            receipt = await again.respond("")
    assert (record.outcome, record.reward) == ("graded", 0.25)
    assert receipt is not None
    assert receipt.reward == 1.0


@pytest.mark.long
async def test_a_graders_commands_run_in_the_session(open_room: Open) -> None:
    """Several at once, refused as a shell refuses them, and stopped when they are cancelled."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("commands")
            receipt = await session.respond("")
    assert receipt is not None
    info = receipt.info
    assert info == {"kind": "ActionFailed TimeoutError", "codes": [0, 1, 2, 3], "left": ""}


@pytest.mark.long
async def test_a_link_of_the_agents_leads_nowhere(open_room: Open, tmp_path: Path) -> None:
    """It would show the template its own file, which has the expected word in it."""
    source = tmp_path / "files" / "rooms.py"
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            for target in (source, Path(f"/proc/self/root{source}")):
                session = await room.start("linked")
                await command(session, f"ln -s {target} out.txt")
                receipt = await session.respond("")
                assert receipt is not None
                assert (receipt.reward, receipt.cause) == (0.0, "agent")
                assert "Too many levels" in ((await room.record(session)).error or "")
            session = await room.start("linked", own=True)
            assert "real" in await command(session, "cat out.txt")
            receipt = await session.respond("")
    assert receipt is not None
    assert receipt.reward == 1.0, "links that the template has made are followed"


@pytest.mark.long
async def test_a_template_imports_nothing_that_an_agent_has_written(
    open_room: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the folder is among those that the author imports from."""
    monkeypatch.syspath_prepend(str(tmp_path / "work"))
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("imports")
            await command(session, "echo 'reward = 1.0' > planted.py")
            with pytest.raises(SessionEnded, match="grading failed"):
                await session.respond("")
            assert "ModuleNotFoundError" in ((await room.record(session)).error or "")


async def test_an_agent_cannot_leave_its_folder_through_that_of_the_template(
    open_room: Open,
) -> None:
    """It sees the root's name, and beside it nothing of the machine."""
    with anyio.fail_after(PATIENCE_S):
        async with open_room() as room:
            session = await room.start("write")
            around = await command(session, f"ls -a {room.root.parent}; cd {room.root}/..; ls -a")
            assert "store.sqlite3" not in around
            assert "files" not in around
            outside = await command(session, f"echo x > {room.root}/../escaped; echo code $?")
            assert "code 0" not in outside or not (room.root.parent / "escaped").exists()
            mounts = await command(session, "umount /workspace; echo code $?; ls /proc/1/fd")
            assert "code 0" not in mounts


@pytest.mark.skipif(
    not hasattr(hud_mcp.graders, "BashGrader"), reason="BashGrader comes with another change"
)
async def test_the_repair_of_a_hud_author_is_graded_by_its_tests(open_room: Open) -> None:
    """1.0 for a repair, little for none; the command names the root, where HUD's would find it."""
    repair = "sed -i 's/ - 1//' total.py"
    with anyio.fail_after(PATIENCE_S):
        async with open_room("repairs") as room:
            for line, reward in ((repair, 1.0), ("true", 0.25), ("rm total.py", 0.0)):
                session = await room.start("fix")
                await command(session, line)
                receipt = await session.respond("")
                assert receipt is not None
                assert receipt.reward == reward


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return [path.name for path in folder.iterdir()]


def sleepers(marker: Path) -> list[psutil.Process]:
    """What `blocks` has started with this marker and nobody has ended."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.cmdline()[-2:] == ["sleeper", str(marker)]:
                found.append(process)
        except psutil.Error:
            continue
    return found
