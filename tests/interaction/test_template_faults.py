"""What a client is told when a template is at fault, and what is true afterwards."""

# what is waited for happens in another process

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import (
    FAULTY,
    LEGACY,
    MODERN,
    Gate,
    HttpServer,
    Peer,
    http_peer,
    http_server,
    load_all,
    load_when,
    raw_stdio,
)
from waiting import PATIENCE_S, until

pytestmark = pytest.mark.anyio

SECRET = "THE-EXPECTED-ANSWER-IS-PLUM"
UNGRADED = re.compile(
    r"This session ended at \d\d:\d\d:\d\d UTC without a grade, because grading failed: "
)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with little patience for setups and gradings."""
    options = ("--limit", "setup_s=0.4", "--limit", "grade_s=0.4")
    with http_server(tmp_path_factory.mktemp("hasty"), (FAULTY,), *options) as running:
        yield running


@asynccontextmanager
async def neighbour(peer: Peer) -> AsyncIterator[None]:
    """Another session beside the fault: it must still act and be graded afterwards."""
    beside = await peer.start("holds_scopes")
    yield
    stepped = await peer.ok("act", session=beside.session, type="type", text="beside")
    assert "typed='beside'" in stepped.text
    graded = await peer.ok("response", session=beside.session, answer="yes")
    assert graded.structured["reward"] == 1.0
    record = await peer.record(beside)
    assert [s.kind for s in record.steps] == ["act", "response"]


@pytest.mark.parametrize(
    ("template", "logged"),
    [
        ("raises_in_grading", f"ValueError: {SECRET}, not pear"),
        ("yields_nan", "the template yielded nan as its reward; a reward is a finite number."),
        ("yields_infinity_in_a_dict", "the template yielded inf as its reward"),
        ("yields_text", f"the template yielded 'very good: {SECRET}' as its grade"),
        ("yields_once", "ended without a grade; yield one after the answer."),
        ("yields_thrice", "yielded a third time; yield the prompt and one grade."),
        ("exits", "SystemExit: 3"),
    ],
)
async def test_a_template_that_does_not_grade_is_a_failure_and_never_a_reward(
    http: Peer, template: str, logged: str
) -> None:
    """The client is told that grading failed, nothing of why; the record has file and line."""
    async with neighbour(http):
        task = await http.start(template)
        await http.ok("step", session=task.session, actions=[{"type": "type", "text": "x"}])
        told = await http.error("response", session=task.session, answer="pear")
        assert UNGRADED.match(told), told
        assert SECRET not in told
        assert "faulty.py" not in told
        assert await http.error("response", session=task.session, answer="pear") == told
        assert await http.error("act", session=task.session, type="type", text="y") == told
        assert await http.error("response", session=task.session, answer="plum") == told
    status = await http.status(task.session)
    assert status["state"] == "ended"
    assert status["receipt"]["outcome"] == "grading_failed"
    assert "reward" not in status["receipt"]
    record = await http.record(task)
    assert record.outcome == "grading_failed"
    assert record.reward is None
    assert logged in (record.error or "")
    assert re.search(r"faulty\.py:\d+", record.error or "")
    assert [s.kind for s in record.steps] == ["step", "response"]
    assert logged in (record.logs or "")


@pytest.mark.parametrize(
    ("template", "told", "logged"),
    [
        (
            "raises_in_setup",
            "The setup of template 'raises_in_setup' failed (ValueError).",
            f"ValueError: {SECRET}",
        ),
        (
            "never_yields",
            "The setup of template 'never_yields' failed (InvalidTemplate).",
            "ended without yielding a prompt.",
        ),
        (
            "yields_bad_prompt",
            "The setup of template 'yields_bad_prompt' failed (InvalidTemplate).",
            "the template yielded 7 as its prompt",
        ),
    ],
)
async def test_a_template_that_does_not_begin_is_refused_and_recorded(
    peer: Peer, template: str, told: str, logged: str
) -> None:
    """start_task and prompts/get say that it failed; the record says where; no session is held."""
    before = len(await load_all(peer.store, template=template))
    async with neighbour(peer):
        assert await peer.error("start_task", template=template) == told
    records = await load_all(peer.store, template=template)
    assert len(records) == before + 1
    record = records[-1]
    assert record.outcome == "environment_failed"
    assert record.prompt is None
    assert logged in (record.error or "")
    assert re.search(r"faulty\.py:\d+", record.error or "")


async def test_a_prompt_that_cannot_be_written_down_fails_alone(http: Peer) -> None:
    """A lone surrogate in a prompt fails that start; the writer goes on with everyone else's."""
    async with neighbour(http):
        told = await http.error("start_task", template="yields_surrogate")
        assert "yields_surrogate" in told or "record" in told
        assert "free space" not in told, "nothing is wrong with the store"
        assert "leave out the halves of characters" in told
        assert "faulty.py" not in told


async def test_scopes_that_a_template_holds_across_its_yields_work(peer: Peer) -> None:
    """Task groups and timeouts held while suspended run on, and do not meet other sessions'."""
    async with neighbour(peer):
        first, second = await peer.start("holds_scopes"), await peer.start("holds_scopes")
        for task, answer, reward in ((first, "yes", 1.0), (second, "no", 0.0)):
            await peer.ok("step", session=task.session)
            graded = await peer.ok("response", session=task.session, answer=answer)
            assert graded.structured["reward"] == reward


@pytest.mark.parametrize("seconds", [0.0, 0.2])
@pytest.mark.parametrize(
    "template", ["grades_at_its_own_deadline", "grades_at_an_asyncio_deadline"]
)
async def test_a_held_timeout_that_fires_while_suspended_grades(
    http: Peer, template: str, seconds: float
) -> None:
    """A template may end the task at a deadline of its own, with the grade that it then yields."""
    async with neighbour(http):
        task = await http.start(template, seconds=seconds)
        receipt = await http.ended(task.session)
        assert (receipt["outcome"], receipt["reward"]) == ("graded", 0.25)
        told = await http.error("act", session=task.session, type="type", text="late")
        assert re.match(r"This session was graded at \d\d:\d\d:\d\d UTC; its grade stands", told)
        assert await http.error("response", session=task.session, answer="late") == told
    record = await http.record(task)
    assert (record.outcome, record.reward, record.steps) == ("graded", 0.25, ())
    quick = await http.start(template, seconds=60)
    graded = await http.ok("response", session=quick.session, answer="in time")
    assert graded.structured["reward"] == 1.0


async def test_a_held_timeout_that_fires_during_a_step_cuts_it_off(
    peer: Peer, gates: Callable[[str], Gate]
) -> None:
    """The world is the grader's alone from then on; the step's caller is told so."""
    gate = gates("deadline")
    task = await peer.start("grades_at_its_own_deadline", seconds=0.5)
    actions = [{"type": "type", "text": "a"}, gate.hold(), {"type": "type", "text": "b"}]
    told = await peer.error("step", session=task.session, actions=actions)
    assert "session" in told
    assert "over" in told or "graded" in told
    assert (await peer.ended(task.session))["reward"] == 0.25
    record = await peer.record(task)
    assert [(s.performed, s.error) for s in record.steps] == [(1, "stopped after 1 of 3 actions")]


async def test_a_held_timeout_whose_error_escapes_is_a_failed_grading(http: Peer) -> None:
    """Without a grade at its deadline, the session ends as grading_failed, with the line."""
    async with neighbour(http):
        task = await http.start("fails_at_its_own_deadline", seconds=0.2)
        receipt = await http.ended(task.session)
        assert receipt["outcome"] == "grading_failed"
    record = await http.record(task)
    assert "TimeoutError" in (record.error or "")


async def test_a_child_task_that_crashes_while_suspended_ends_its_session_alone(
    http: Peer, gates: Callable[[str], Gate]
) -> None:
    """The crash of a held task group's child is recorded, and told without its text."""
    gate = gates("crash")
    async with neighbour(http):
        task = await http.start("child_crashes", gate=gate.path)
        await http.ok("step", session=task.session)
        gate.open()
        receipt = await http.ended(task.session)
        assert receipt["outcome"] == "grading_failed"
        assert SECRET not in await http.error("step", session=task.session)
    record = await http.record(task)
    assert SECRET in (record.error or "")


async def test_a_template_that_fails_after_its_grade_is_graded_all_the_same(http: Peer) -> None:
    """The grade stands; what went wrong in the cleanup is in the log."""
    for template, logged in (
        ("raises_at_teardown", "RuntimeError: teardown failed on its own"),
        ("world_will_not_close", "the board is screwed to the wall"),
    ):
        async with neighbour(http):
            task = await http.start(template)
            graded = await http.ok("response", session=task.session, answer="")
            assert graded.structured["outcome"] == "graded"
        record = await load_when(
            http.store, task.trajectory, lambda r, logged=logged: logged in (r.logs or "")
        )
        assert record.outcome == "graded"
        assert record.error is None


@pytest.mark.long
async def test_what_hangs_is_stopped_in_time_and_says_so(hasty: HttpServer) -> None:
    """Setup, grading and cleaning up are bounded, whether the template listens or not.

    One that hangs after its grade is graded all the same. All of them at once, for one that does
    not listen is given up only after some seconds more.
    """
    async with http_peer(hasty, era=MODERN) as peer, neighbour(peer):

        async def begin(template: str) -> None:
            told = await peer.error("start_task", template=template)
            assert told == "Its setup took longer than 0.4 s and was stopped."

        async def end(template: str) -> None:
            task = await peer.start(template)
            told = await peer.error("response", session=task.session, answer="x")
            assert "Its grading took longer than 0.4 s and was stopped." in told
            assert await peer.error("step", session=task.session) == told

        async def clean_up(template: str) -> None:
            task = await peer.start(template)
            graded = await peer.ok("response", session=task.session, answer="")
            assert (graded.structured["outcome"], graded.structured["reward"]) == ("graded", 0.75)

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for template in ("hangs_in_setup", "ignores_cancellation_in_setup"):
                    group.start_soon(begin, template)
                for template in ("hangs_in_grading", "ignores_cancellation_in_grading"):
                    group.start_soon(end, template)
                for template in ("hangs_at_teardown", "ignores_cancellation_at_teardown"):
                    group.start_soon(clean_up, template)
    records = {r.task.template: r for r in await load_all(hasty.store)}
    for template in ("hangs_in_setup", "ignores_cancellation_in_setup"):
        assert records[template].outcome == "environment_failed"
        assert records[template].error == "Its setup took longer than 0.4 s and was stopped."
    for template in ("hangs_in_grading", "ignores_cancellation_in_grading"):
        assert records[template].outcome == "grading_failed"
        assert records[template].reward is None
        assert "grading took longer than 0.4 s" in (records[template].error or "")
    for template in ("hangs_at_teardown", "ignores_cancellation_at_teardown"):
        assert (records[template].outcome, records[template].reward) == ("graded", 0.75)
        assert (
            "took too long to clean up" in (records[template].logs or "") or "ignores" in template
        )


@pytest.mark.parametrize("template", ["answers_its_dismissal", "holds_scopes"])
async def test_a_cancelled_task_ends_as_cancelled_whatever_its_template_does(
    peer: Peer, template: str
) -> None:
    """A template that swallows its dismissal, or holds scopes, is ended all the same."""
    async with neighbour(peer):
        task = await peer.start(template)
        await peer.ok("step", session=task.session)
        cancelled = await peer.ok("cancel_task", session=task.session)
        assert cancelled.structured == {"outcome": "cancelled"}
        again = await peer.ok("cancel_task", session=task.session)
        assert again.structured == {"outcome": "cancelled"}
        told = await peer.error("response", session=task.session, answer="x")
        assert re.match(
            r"This session was cancelled at \d\d:\d\d:\d\d UTC: It was cancelled by the client\. "
            r"start_task begins another\.",
            told,
        )
    record = await peer.record(task)
    assert (record.outcome, record.reward) == ("cancelled", None)


async def test_a_cancelled_templates_cleanup_runs(http: Peer, tmp_path: Path) -> None:
    """A template that waits for its answer is told that there will be none."""
    note = tmp_path / "end.txt"
    task = await http.start("notes_its_end", path=str(note))
    await http.ok("cancel_task", session=task.session)
    assert note.read_text().startswith("SessionOver")


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_nothing_but_the_protocol_reaches_standard_output(tmp_path: Path, era: str) -> None:
    """Prints, writes to descriptor 1, children and warnings go elsewhere; prints are recorded."""
    modern = era == MODERN
    async with raw_stdio(tmp_path, (FAULTY,)) as raw:
        if not modern:
            await raw.hello()
        begun = await raw.call("start_task", modern=modern, template="prints_everywhere")
        session = begun["structuredContent"]["session"]
        action = {"type": "custom", "action": "print", "args": {"text": "printed by the world"}}
        await raw.call("act", modern=modern, session=session, **action)
        graded = await raw.call("response", modern=modern, session=session, answer="pear")
        assert graded["structuredContent"]["reward"] == 1.0
        trajectory = begun["_meta"]["hud-mcp/start"]["trajectory"]
        await raw.close_stdin()
        assert await raw.exit_status() == 0
        await raw.eof.wait()
    # RawStdio fails on any line that is no JSON-RPC; this is that nothing slipped into one.
    for words in (b"printed", b"wrote", b"written", b"echoed", b"flushed", b"warning"):
        assert words not in raw.written
    record = await load_when(raw.store, trajectory, lambda r: r.outcome is not None)
    lines = [line.partition(" ")[2] for line in (record.logs or "").splitlines()]
    for words in (
        "printed in setup", "printed in two parts", "written to sys.stdout",
        "printed by the world", "printed in grading: pear", "printed in teardown",
        "without a line's end",
    ):  # fmt: skip
        assert words in lines
    stderr = raw.log.read_text()
    for words in (
        "written to descriptor 1", "child printed", "child wrote", "shell echoed", "flushed",
        "a warning of the template's",
    ):  # fmt: skip
        assert words in stderr


@pytest.mark.long
async def test_a_server_with_templates_that_do_not_listen_still_stops(tmp_path: Path) -> None:
    """A template that swallows every cancellation keeps no process alive, and its end is known."""
    async with raw_stdio(tmp_path, (FAULTY,)) as raw:
        await raw.hello()
        begun = await raw.call("start_task", template="ignores_cancellation_in_grading")
        session = begun["structuredContent"]["session"]
        response = await raw.post("response", {"session": session, "answer": "x"})
        starting = await raw.post("start_task", {"template": "ignores_cancellation_in_setup"})

        async def both_are_held() -> bool:
            return len(await load_all(raw.store)) == 2 and await raw.state(session) == "grading"

        await until(both_are_held)
        await raw.close_stdin()
        assert await raw.exit_status() == 0
        await raw.eof.wait()
    assert raw.answers[response]["error"]["code"] == -32000
    assert raw.answers[starting]["error"]["code"] == -32000
    assert "Traceback" not in raw.log.read_text()
    ends = {r.task.template: r.outcome for r in await load_all(raw.store)}
    assert ends == {
        "ignores_cancellation_in_grading": None,  # the next server grades it
        "ignores_cancellation_in_setup": "cancelled",
    }
