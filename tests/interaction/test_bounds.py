"""Limits and expiry: reaching one is a clear error, and everything else is as it was."""

# what is waited for happens in another process

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from peers import (
    BOARD,
    LEGACY,
    MODERN,
    Gate,
    HttpServer,
    Peer,
    child_environment,
    http_peer,
    http_server,
    load_all,
    load_when,
    serve_arguments,
    stdio_peer,
)
from skips import skip_here
from waiting import until

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server whose limits are within reach."""
    limits = {
        "sessions": 6, "sessions_per_caller": 3, "actions_per_step": 2, "argument_bytes": 2000,
        "queue": 2, "observation_chars": 200, "step_s": 0.5, "reply_s": 0.5,
    }  # fmt: skip
    options = [o for name, value in limits.items() for o in ("--limit", f"{name}={value}")]
    with http_server(tmp_path_factory.mktemp("narrow"), (BOARD,), *options) as running:
        yield running


@pytest.mark.long
async def test_reaching_a_limit_is_a_clear_error_and_the_session_lives_on(
    narrow: HttpServer, gates: Gates
) -> None:
    """Actions in a step, bytes of arguments, seconds of a step and calls that wait."""
    gate = gates("queue")
    async with http_peer(narrow, era=MODERN) as peer:
        task = await peer.start("collect", marker="limits", wanted=["tea"])
        session = task.session
        actions = [{"type": "type", "text": "x"}] * 3
        told = await peer.error("step", session=session, actions=actions)
        assert told.startswith("3 actions in one step; the limit is 2. Nothing was done")
        told = await peer.error("act", session=session, type="type", text="x" * 2000)
        assert re.match(r"act: the arguments have \d+ bytes; the limit is 2000\.", told)
        told = await peer.error("add_note", session=session, text="é" * 1200)
        assert re.match(r"add_note: the arguments have \d+ bytes; the limit is 2000\.", told)
        told = await peer.error("response", session=session, answer="x" * 2000)
        assert "the limit is 2000" in told
        told = await peer.error("act", session=session, type="wait", time=20_000)
        assert told.startswith("This call took longer than 0.5 s and was stopped. Its effects")
        assert (await peer.status(session))["steps"] == 1

        refused: list[str] = []

        async def act() -> None:
            reply = await peer.call("act", session=session, type="wait", time=10)
            if reply.is_error:
                refused.append(reply.text)

        async with anyio.create_task_group() as group:

            async def hold() -> None:
                await peer.call("step", session=session, actions=[gate.hold()])

            group.start_soon(hold)
            await gate.arrived()
            for _ in range(4):
                group.start_soon(act)
            await until(lambda: len(refused) == 2)
            gate.open()
        said = "2 calls already wait on this session; nothing was done. Wait for their replies"
        assert {text.partition(", then")[0] for text in refused} == {said}
        await peer.ok("act", session=session, type="type", text="tea", enter_after=True)
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0
        record = await peer.record(task)
    assert [s.performed for s in record.steps] == [0, 1, 1, 1, 1, 1]
    assert record.steps[0].error == "stopped after 0 of 1 actions"


async def test_a_long_observation_is_clipped_and_says_so(narrow: HttpServer) -> None:
    """The board answers with more than may be shown; the caller is told how much is missing."""
    async with http_peer(narrow, era=MODERN) as peer:
        task = await peer.start("collect", marker="m" * 500)
        looked = await peer.ok("step", session=task.session)
        assert len(looked.text) <= 200
        assert "more characters" in looked.text
        await peer.ok("cancel_task", session=task.session)


async def test_a_grading_that_outlasts_the_reply_goes_on_and_is_asked_for(
    narrow: HttpServer, gates: Gates
) -> None:
    """After reply_s the caller is told to ask again, by each tool that can submit an answer."""
    async with http_peer(narrow, era=MODERN) as peer:
        for tool in ("response", "act"):
            gate = gates(f"slow-{tool}")
            gradings = str(gate.folder / "gradings")
            task = await peer.start(
                "gated", entered=gate.entered, gate=gate.path, gradings=gradings
            )
            answer = (
                {"answer": "right"} if tool == "response" else {"type": "response", "text": "right"}
            )
            told = await peer.ok(tool, session=task.session, **answer)
            assert "is being graded, which takes a while; call task_status" in told.text
            status = await peer.status(task.session)
            assert status["state"] == "grading"
            gate.open()
            assert (await peer.ended(task.session))["reward"] == 1.0
            again = await peer.ok("response", session=task.session, answer="right")
            assert again.structured["reward"] == 1.0


async def test_sessions_are_limited_for_a_caller_and_for_all(narrow: HttpServer) -> None:
    """Ten starts at once end in exactly as many sessions as there are places."""
    async with http_peer(narrow, era=LEGACY) as first, http_peer(narrow, era=MODERN) as other:

        async def start(peer: Peer, started: list[str], refused: list[str]) -> None:
            reply = await peer.call("start_task", template="collect")
            (refused if reply.is_error else started).append(
                reply.text if reply.is_error else reply.structured["session"]
            )

        mine: tuple[list[str], list[str]] = ([], [])
        theirs: tuple[list[str], list[str]] = ([], [])
        for peer, (started, refused) in ((first, mine), (other, theirs)):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(start, peer, started, refused)
        assert (len(mine[0]), len(mine[1])) == (3, 7)
        advice = "Finish one with response, or end one with cancel_task."
        assert set(mine[1]) == {f"3 sessions are open (yours; the limit is 3). {advice}"}
        assert (len(theirs[0]), len(theirs[1])) == (3, 7), "a 2026-era caller is not recognised"
        assert set(theirs[1]) == {f"6 sessions are open (all callers'; the limit is 6). {advice}"}
        await first.ok("cancel_task", session=mine[0].pop())
        again = await first.start("collect", marker="again")
        assert "marker=again" in (await first.ok("step", session=again.session)).text
        for session in (*mine[0], again.session):
            await first.ok("cancel_task", session=session)
        for session in theirs[0]:
            await other.ok("cancel_task", session=session)


async def test_a_session_that_only_a_prompt_started_gives_its_place_away(
    narrow: HttpServer,
) -> None:
    """Previews of prompts never use up a caller's places; what is acted on is never taken."""
    async with http_peer(narrow, era=LEGACY) as peer:
        held = await peer.start("collect", marker="held")
        for marker in ("one", "two", "three", "four"):
            await peer.client.get_prompt("collect", {"marker": marker})
        last = await peer.start("collect", marker="last")
        for task, marker in ((held, "held"), (last, "last")):
            assert f"marker={marker}" in (await peer.ok("step", session=task.session)).text
            await peer.ok("cancel_task", session=task.session)
    expired = [
        r for r in await load_all(narrow.store)
        if r.task.args.get("marker") in ("one", "two", "three") and r.outcome is not None
    ]  # fmt: skip
    assert len(expired) >= 2
    assert {r.outcome for r in expired} == {"expired"}
    assert {r.error for r in expired} == {"It was untouched, and its place was needed."}


@pytest.mark.long
async def test_sessions_expire_and_say_so_with_the_time(tmp_path: Path) -> None:
    """Idle, total and provisional times end a session as expired; a busy one is not idle."""
    limits = ("--limit", "idle_s=1.5", "--limit", "total_s=4", "--limit", "provisional_s=0.5")
    gate = Gate(tmp_path, "busy")
    with http_server(tmp_path, (BOARD,), *limits) as server:
        async with http_peer(server, era=LEGACY) as peer:
            began = time.monotonic()
            idle = await peer.start("collect", marker="idle")
            used = await peer.start("collect", marker="used")
            busy = await peer.start("collect", marker="busy")
            shown = await peer.client.get_prompt("collect", {"marker": "shown"})
            previewed = re.search(r"sess-\w+", shown.messages[-1].content.text)
            assert previewed is not None
            said: dict[str, str] = {}

            async def is_over() -> bool:
                reply = await peer.call("step", session=used.session)
                if reply.is_error:  # it may have come while the end was being recorded
                    assert "It was open for 4 s, the longest allowed." in reply.text
                return reply.is_error

            async def use() -> None:
                await until(is_over)
                assert (await peer.ended(used.session))["outcome"] == "expired"
                said["used"] = await peer.error("step", session=used.session)

            async def hold() -> None:
                reply = await peer.call("step", session=busy.session, actions=[gate.hold()])
                said["busy"] = reply.text

            async with anyio.create_task_group() as group:
                group.start_soon(use)
                group.start_soon(hold)
                for name, session in (("previewed", previewed[0]), ("idle", idle.session)):
                    assert (await peer.ended(session))["outcome"] == "expired"
                    said[name] = await peer.error("step", session=session)
                assert (await peer.status(busy.session))["state"] == "open", "busy is not idle"
                await until(lambda: len(said) == 4)
            assert time.monotonic() - began > 4
    at = r"This session expired at \d\d:\d\d:\d\d UTC: "
    end = r" start_task begins another\."
    assert re.fullmatch(at + r"Nobody acted on it for 0\.5 s\." + end, said["previewed"])
    assert re.fullmatch(at + r"It was idle for 1\.5 s\." + end, said["idle"])
    assert re.fullmatch(at + r"It was open for 4 s, the longest allowed\." + end, said["used"])
    assert "longest allowed" in said["busy"] or "session is over" in said["busy"]
    record = await load_when(server.store, used.trajectory, lambda r: r.outcome is not None)
    assert record.outcome == "expired"
    assert record.reward is None
    assert [s.index for s in record.steps] == list(range(len(record.steps)))


CANNOT_START: list[tuple[tuple[str, ...], str]] = [
    (("--limit", "sesions=3"), "Did you mean 'sessions'?"),
    (("--limit", "idle_s=never"), "--limit idle_s"),
    (("--limit", "queue=0"), "--limit queue"),
    (("--http", "0.0.0.0:0"), "give a --token"),
    (("--http", "127.0.0.1:http"), "HOST:PORT"),
    (("--http", "127.0.0.1:80@evil.example:8000"), "HOST:PORT"),
    (("--token-file", "nowhere.tokens"), "--token-file nowhere.tokens cannot be read"),
    (("--http", "127.0.0.1:0", "--token", "ann=short"), "at least 8 characters"),
    (("--taskset", "nowhere.jsonl"), "nowhere.jsonl"),
    (("--taskset", "quickstart", "--split", "dev"), "quickstart has no split 'dev'"),
]


@pytest.mark.long
async def test_a_server_that_cannot_start_says_why_and_exits(tmp_path: Path) -> None:
    """One line on stderr, nothing on stdout, status 1, and nothing made."""
    store = tmp_path / "made" / "store.sqlite3"

    async def serve(options: tuple[str, ...], words: str) -> None:
        done = await anyio.run_process(
            [sys.executable, *serve_arguments((BOARD,), store, *options)],
            check=False,
            stdin=subprocess.DEVNULL,
            env=child_environment(),
        )
        errors = done.stderr.decode()
        assert done.returncode == 1, errors
        assert done.stdout == b""
        assert words in errors
        assert "Traceback" not in errors

    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            for options, words in CANNOT_START:
                group.start_soon(serve, options, words)
    assert not store.parent.exists()


@pytest.mark.long
async def test_a_full_disk_is_told_and_made_good_once_there_is_space(tmp_path: Path) -> None:
    """The session lives on; when there is space again, each step is recorded exactly once."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, kilobytes=900):
        async with stdio_peer(disk, (BOARD,), era=MODERN) as peer:
            task = await peer.start("collect", marker="full", wanted=["ab"])
            beside = await peer.start("collect", marker="beside", wanted=["tea"])
            await peer.ok("act", session=task.session, type="type", text="a")
            filler = disk / "filler"
            fill(filler)
            told = await peer.error("act", session=task.session, type="type", text="b")
            assert told.startswith("This call was performed, but not recorded.")
            assert "do not repeat its actions" in told
            assert str(disk) not in told
            told = await peer.error("response", session=beside.session, answer="done")
            assert told.startswith("The answer was not submitted, because it cannot be recorded.")
            refused = await peer.error("start_task", template="collect")
            assert "could not be written" in refused
            assert (await peer.status(task.session))["state"] == "open"
            assert (await peer.status(beside.session))["state"] == "open"

            filler.unlink()
            seen = await peer.ok("act", session=task.session, type="press", keys=["enter"])
            assert "notes=['ab']" in seen.text
            graded = await peer.ok("response", session=task.session, answer="done")
            assert graded.structured["reward"] == 1.0
            await peer.ok("act", session=beside.session, type="type", text="tea", enter_after=True)
            graded = await peer.ok("response", session=beside.session, answer="done")
            assert graded.structured["reward"] == 1.0
            first, second = await peer.record(task), await peer.record(beside)
            assert [s.actions[0].get("text") for s in first.steps] == ["a", "b", None, "done"]
            assert [s.index for s in first.steps] == [0, 1, 2, 3]
            assert [s.kind for s in second.steps] == ["act", "response"]
            assert len(await load_all(peer.store)) == 2, "what could not begin was not begun"


@pytest.mark.long
async def test_a_disk_that_fills_up_while_grading_loses_no_grade(tmp_path: Path) -> None:
    """The caller is told that the end is not recorded; the same answer again gets the receipt."""
    disk = tmp_path / "disk"
    disk.mkdir()
    gate, late = Gate(tmp_path, "grading"), Gate(tmp_path, "late")
    gradings = tmp_path / "gradings"
    with small_disk(disk, kilobytes=900):
        async with stdio_peer(disk, (BOARD,), era=MODERN) as peer:
            filler = disk / "filler"
            tasks = [
                await peer.start("gated", entered=g.entered, gate=g.path, gradings=str(gradings))
                for g in (gate, late)
            ]
            said: list[str] = []

            async def answer(session: str) -> None:
                said.append(await peer.error("response", session=session, answer="right"))

            async with anyio.create_task_group() as group:
                for task in tasks:
                    group.start_soon(answer, task.session)
                await gate.arrived()
                await late.arrived()
                fill(filler)
                gate.open()
                late.open()
            for told in said:
                assert told.startswith("The task has ended, but its end is not recorded yet.")
            assert (await peer.record(tasks[0])).outcome is None
            filler.unlink()
            graded = await peer.ok("response", session=tasks[0].session, answer="right")
            assert graded.structured["reward"] == 1.0
            # Nobody asks again for the second one: it is written all the same.
            for task in tasks:
                record = await load_when(
                    peer.store, task.trajectory, lambda r: r.outcome is not None
                )
                assert record.reward == 1.0
                assert [s.kind for s in record.steps] == ["response"]
            assert gradings.read_text() == "right\nright\n"


class small_disk:  # noqa: N801  # used as a function
    """A file system of its own with little room, where this process may mount one."""

    def __init__(self, folder: Path, *, kilobytes: int) -> None:
        self._folder, self._size = folder, f"{kilobytes}k"

    def __enter__(self) -> None:
        mount = shutil.which("mount")
        options = ("-t", "tmpfs", "-o", f"size={self._size}", "tmpfs", str(self._folder))
        done = None if mount is None else subprocess.run([mount, *options], check=False)
        if done is None or done.returncode != 0:
            skip_here("a small file system can only be mounted by root")

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self._folder)], check=True)


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
