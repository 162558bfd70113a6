"""A server that is killed at any moment takes no task with it."""

import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import pytest
from peers import BOARD, ENVIRONMENTS, FAULTY, MODERN, Gate, stdio_peer
from phoenix import Call, Conversation, Phoenix, act, phoenix, step
from waiting import PATIENCE_S, let_pass, until

from hud_mcp.environment.environment import imported_files
from hud_mcp.loading.source import load_environments
from hud_mcp.record.trajectory import Trajectory

pytestmark = [pytest.mark.anyio]

Gates = Callable[[str], Gate]
PAGE = str(ENVIRONMENTS / "page.py")
BOUND_S = 120.0

CARL_SESSION = "sess-fb6c15c466cd0c85242f0ee2b0004f0d"
"""The session in `carl_session.sql`: six steps under another gravity."""

CARTPOLE_SESSION = "sess-2a129a0820f97018194d2d3f94eb5cac"
"""The session in `cartpole_session.sql`: five steps, the last with a look."""

PAGE_SESSION = "sess-2c5c2069efadf4abd9625bef9e7c478d"
"""The session in `page_session.sql`: a field was filled in, and nothing sent."""


@pytest.fixture(scope="module")
async def bird(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Phoenix]:
    """One store, and as many servers one after the other as the tests kill."""
    async with phoenix(tmp_path_factory.mktemp("phoenix"), (BOARD, PAGE)) as found:
        yield found


def typed(text: str, *, enter: bool = True) -> dict[str, Any]:
    """An action that types."""
    return {"type": "type", "text": text, "enter_after": enter}


def right(bird: Phoenix) -> Conversation:
    """A conversation with steps of every kind, that is worth 1."""
    script = (
        step(),
        step(typed("tea"), {"type": "click", "x": 20, "y": 10}),
        act("custom", action="refuse"),
        Call("count_notes", {}),
        act("type", text="mil"),
        step(typed("k"), {"type": "custom", "action": "refuse"}, typed("never")),
        Call("screenshot", {}),
    )
    return Conversation(bird, "collect", {"marker": "right"}, script, "done")


def by_tool(bird: Phoenix) -> Conversation:
    """One whose world is changed by a tool, that is worth 0.25."""
    script = (
        Call("add_note", {"text": "tea"}),
        act("type", text="milk", enter_after=True),
        Call("broken_tool", {}),
        step(),
    )
    return Conversation(bird, "collect", {"marker": "tool"}, script, "another answer")


def wrong(bird: Phoenix) -> Conversation:
    """One that is worth nothing."""
    script = (act("click", x=1, y=2), act("press", keys=["enter"]), step(typed("coffee")))
    return Conversation(bird, "collect", {"marker": "wrong"}, script, "done")


def ordered(bird: Phoenix) -> Conversation:
    """One in a real browser, that is worth 1."""
    script = (
        step(),
        act("type", selector="#what", text="tea"),
        step({"type": "wait", "time": 50}),
        act("click", selector="#send"),
        step(),
    )
    return Conversation(bird, "order", {"what": "tea"}, script, "1")


KINDS = (right, by_tool, wrong)


def told(record: Trajectory) -> list[Any]:
    """What must not differ between a disturbed conversation and an undisturbed one."""
    return [
        (s.kind, s.actions, s.performed, s.error, s.observation_text, s.screenshot)
        for s in record.steps
    ]


async def check(conversation: Conversation, undisturbed: Trajectory) -> None:
    """The record is complete, each step is there once, and the grade is what it should be."""
    record = await conversation.record()
    assert told(record) == told(undisturbed)
    assert [s.index for s in record.steps] == list(range(len(record.steps)))
    assert record.receipt is not None
    assert undisturbed.receipt is not None
    assert record.outcome == "graded"
    assert record.reward == undisturbed.reward
    assert record.receipt.subscores == undisturbed.receipt.subscores
    assert record.receipt.answer_digest == undisturbed.receipt.answer_digest
    for receipt in conversation.receipts:
        assert receipt["reward"] == record.reward
    again = await conversation.bird.call(
        "response", session=conversation.session, answer=conversation.answer
    )
    assert again["structuredContent"]["reward"] == record.reward


async def undisturbed(bird: Phoenix, make: Callable[[Phoenix], Conversation]) -> Trajectory:
    """The same conversation with a server that lives."""
    conversation = make(bird)
    await conversation.play()
    return await conversation.record()


@pytest.mark.long
async def test_a_conversation_goes_on_wherever_its_server_is_killed(
    bird: Phoenix, gates: Gates
) -> None:
    """Before each call of three scripts, and within a step: 22 places, in one server that dies."""
    with anyio.fail_after(BOUND_S):
        expected = {make: await undisturbed(bird, make) for make in KINDS}
        ready: list[Conversation] = []
        makers: list[Callable[[Phoenix], Conversation]] = []
        for make in KINDS:
            length = len(make(bird).script)
            for place in range(length + 1):  # before each call, and before the answer
                conversation = make(bird)
                ready.append(conversation)
                makers.append(make)
                await conversation.start()
                for call in conversation.script[:place]:
                    await conversation.perform(call)
        async with anyio.create_task_group() as group:
            held = [Gate(gates("x").folder, f"during {i}") for i in range(5)]
            waiting = [holding(bird, gate) for gate in held]
            for conversation in waiting:  # in the middle of a step
                group.start_soon(conversation.play)
            for gate in held:
                await gate.arrived()
            kills = bird.kills
            for gate in held:
                gate.open()
            bird.kill()
            await bird.start()
        assert bird.kills == kills + 1
        async with anyio.create_task_group() as group:
            for conversation in ready:
                group.start_soon(conversation.play)
        for conversation, make in zip(ready, makers, strict=True):
            await check(conversation, expected[make])
        for conversation in waiting:
            record = await conversation.record()
            assert (record.outcome, record.reward) == ("graded", 1.0)
            assert len(record.steps) == len(conversation.script) + 1


def holding(bird: Phoenix, gate: Gate) -> Conversation:
    """One that stops in the middle of a step of three actions, until its gate is open."""
    script = (step(typed("tea")), step(typed("mil", enter=False), gate.hold(), typed("k")))
    return Conversation(bird, "collect", {"marker": gate.name}, script, "done")


@pytest.mark.long
async def test_a_grading_that_its_server_s_death_cut_off_is_done_by_the_next(
    bird: Phoenix, tmp_path: Path
) -> None:
    """Without any call of the client: the answer is recorded, and so is one receipt."""
    gate, gradings = Gate(tmp_path, "grading"), tmp_path / "gradings"
    arguments = {"entered": gate.entered, "gate": gate.path, "gradings": str(gradings)}
    conversation = Conversation(bird, "gated", arguments, (), "right")
    with anyio.fail_after(BOUND_S):
        await conversation.start()
        async with anyio.create_task_group() as group:
            group.start_soon(conversation.respond)
            await gate.arrived()
            bird.kill()
            gate.open()
            group.cancel_scope.cancel()
        await bird.start()
        ended = partial(
            bird.query, "SELECT 1 FROM sessions WHERE id=? AND ended_at", conversation.trajectory
        )
        await until(ended)
        record = await conversation.record()
        assert (record.outcome, record.reward) == ("graded", 1.0)
        assert gradings.read_text() == "right\nright\n", "the first one never came to its end"
        again = await bird.call("response", session=conversation.session, answer="right")
        assert again["structuredContent"]["reward"] == 1.0
        other = await bird.call("response", session=conversation.session, answer="other")
        assert other.get("isError")
        assert "was graded at" in other["content"][0]["text"]


@pytest.mark.long
async def test_the_moment_of_the_commit_loses_and_repeats_nothing(bird: Phoenix) -> None:
    """Killed as soon as a step, an answer or a receipt is in the store: it is there once."""
    with anyio.fail_after(BOUND_S):
        expected = await undisturbed(bird, right)
        for place in ("step", "answer", "receipt"):
            conversations = [right(bird) for _ in range(3)]
            for conversation in conversations:
                await conversation.start()
            count = len(conversations[0].script)
            first = conversations[0].trajectory
            seen = {
                "step": f"SELECT 1 FROM steps WHERE session_id='{first}' AND step={count // 2}",
                "answer": f"SELECT 1 FROM sessions WHERE id='{first}' AND answered_at",
                "receipt": f"SELECT 1 FROM sessions WHERE id='{first}' AND ended_at",
            }[place]
            async with anyio.create_task_group() as group:
                for conversation in conversations:
                    group.start_soon(conversation.play)
                with anyio.fail_after(PATIENCE_S):
                    while not bird.query(seen):  # another process writes it
                        await anyio.lowlevel.checkpoint()
                await bird.kill_and_start()
            for conversation in conversations:
                await check(conversation, expected)


@pytest.mark.long
async def test_a_task_that_was_being_prepared_is_lost_and_said_to_be(
    bird: Phoenix, tmp_path: Path
) -> None:
    """Nobody knows its id: it ends as lost, and the client starts another."""
    gate = Gate(tmp_path, "start")
    arguments = {"entered": gate.entered, "gate": gate.path}
    conversation = Conversation(bird, "gated_start", arguments, (), "yes")
    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(conversation.play)
            await gate.arrived()
            bird.kill()
            gate.open()
            await bird.start()
        assert conversation.begun == 2
        record = await conversation.record()
        assert (record.outcome, record.reward) == ("graded", 1.0)
        query = "SELECT receipt ->> 'outcome', receipt ->> 'error' FROM sessions WHERE id != ? "
        query += "AND task ->> 'template' = 'gated_start'"
        lost = partial(bird.query, query + " AND ended_at", conversation.trajectory)
        await until(lost)
        assert lost() == [("lost", "Its server ended while it was being prepared.")]


@pytest.mark.parametrize(
    "life",
    [
        pytest.param(0, marks=pytest.mark.long),
        *(pytest.param(life, marks=pytest.mark.stress) for life in range(1, 8)),
    ],
)
async def test_a_server_may_be_killed_at_any_moment(bird: Phoenix, life: int) -> None:
    """Five conversations at once, and a random moment within them; each ends as if undisturbed."""
    drawn = random.Random()
    with anyio.fail_after(BOUND_S):
        makers = [KINDS[(life + i) % len(KINDS)] for i in range(5)]
        expected = {make: await undisturbed(bird, make) for make in set(makers)}
        conversations = [make(bird) for make in makers]
        delay_s = drawn.uniform(0, 0.4)
        async with anyio.create_task_group() as group:
            for conversation in conversations:
                group.start_soon(conversation.play)
            await let_pass(delay_s)  # any moment will do: that is the claim
            await bird.kill_and_start()
        for conversation, make in zip(conversations, makers, strict=True):
            await check(conversation, expected[make])


@pytest.mark.long
@pytest.mark.sample
@pytest.mark.browser
async def test_a_browser_comes_back_with_its_page_and_its_site(bird: Phoenix) -> None:
    """Killed before each call and in the middle of one, each session goes on where it was."""
    with anyio.fail_after(BOUND_S):
        expected = await undisturbed(bird, ordered)
        conversations = [ordered(bird) for _ in range(len(expected.steps))]
        for place, conversation in enumerate(conversations):
            await conversation.start()
            for call in conversation.script[:place]:
                await conversation.perform(call)
        waiting = Conversation(bird, "order", {"what": "x"}, (act("wait", time=1500),), "1")
        await waiting.start()
        async with anyio.create_task_group() as group:
            group.start_soon(waiting.play)
            await anyio.wait_all_tasks_blocked()
            await bird.kill_and_start()
        async with anyio.create_task_group() as group:
            for conversation in conversations:
                group.start_soon(conversation.play)
        for conversation in conversations:
            record = await conversation.record()
            assert [s[:5] for s in told(record)] == [s[:5] for s in told(expected)]
            assert (record.outcome, record.reward) == ("graded", 1.0)
        record = await waiting.record()
        assert (record.outcome, record.reward, len(record.steps)) == ("graded", 0.0, 2)


@pytest.mark.long
async def test_every_receipt_is_its_own_session_s(bird: Phoenix) -> None:
    """Over every conversation of this file; and no server had a traceback to tell of."""
    rows = bird.query("SELECT id, receipt ->> 'trajectory' FROM sessions WHERE ended_at")
    assert rows
    assert [row for row in rows if row[0] != row[1]] == []
    assert "Traceback" not in bird.log()
    assert bird.query("SELECT count(*) FROM servers") == [(1,)], "the dead are buried"


@pytest.mark.long
async def test_a_session_goes_on_in_the_next_process_of_a_client_that_starts_one_a_call(
    tmp_path: Path,
) -> None:
    """As frameworks do over stdio: each call has a process of its own, the session none."""
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as peer:
            task = await peer.start("collect", marker="many processes")
        for text in ("tea", "milk"):
            async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as peer:
                action = {"type": "type", "text": text, "enter_after": True}
                await peer.ok("act", session=task.session, **action)
        async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as peer:
            graded = await peer.ok("response", session=task.session, answer="done")
            assert graded.structured["reward"] == 1.0
            assert len((await peer.record(task)).steps) == 3


@pytest.mark.long
async def test_a_game_whose_rules_its_start_has_told_goes_on_in_the_next_process(
    tmp_path: Path,
) -> None:
    """A replay, whose first look would tell the rules, sees the same as the record."""
    push = {"type": "custom", "action": "step", "args": {"action": 1}}
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, ("gym:CartPole-v1",), era=MODERN) as peer:
            task = await peer.start("balance")
            await peer.ok("step", session=task.session, actions=[push])
        async with stdio_peer(tmp_path, ("gym:CartPole-v1",), era=MODERN) as peer:
            seen = await peer.ok("step", session=task.session, actions=[push])
            assert "Step 2 of" in seen.text
            assert "A pole stands" not in seen.text, "the rules are told once"
            graded = await peer.ok("response", session=task.session, answer="done")
            assert graded.structured["reward"] == 2 / 200


@pytest.mark.long
async def test_a_contextual_game_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its replay sees the same, and its digest has files of its environment alone.

    The session is as an earlier version left it, whose modules had other names and places.
    """
    (environment,) = load_environments(["gym:CARLCartPole"])
    assert list(environment.world.files(environment.folder)) == []
    assert {file.parent for file in imported_files(environment.file)} == {environment.folder}
    with sqlite3.connect(tmp_path / "store.sqlite3") as file:
        file.executescript((Path(__file__).parents[1] / "data" / "carl_session.sql").read_text())
        of = (environment.version, environment.digest)
        file.execute("UPDATE sessions SET environment_version = ?, environment_digest = ?", of)
    file.close()
    push = {"type": "custom", "action": "step", "args": {"action": 1}}
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, ("gym:CARLCartPole",), era=MODERN) as peer:
            seen = await peer.ok("step", session=CARL_SESSION, actions=[push])
            assert "Step 7 of" in seen.text
            told = await peer.ok("task_status", session=CARL_SESSION)
            assert "Context: gravity 1.62, masscart 1, masspole 0.1, length 1.5" in told.text
            graded = await peer.ok("response", session=CARL_SESSION, answer="done")
            assert graded.structured["reward"] == 7 / 200


@pytest.mark.long
async def test_a_game_that_read_otherwise_in_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its steps are repeated; its texts, which have another form now, are not compared."""
    (environment,) = load_environments(["gym:CartPole-v1"])
    with sqlite3.connect(tmp_path / "store.sqlite3") as file:
        file.executescript(
            (Path(__file__).parents[1] / "data" / "cartpole_session.sql").read_text()
        )
        (row,) = file.execute("SELECT row FROM steps ORDER BY step DESC LIMIT 1").fetchone()
        assert "pole angular velocity: -0.2928 rad/s" in row
        of = (environment.version, environment.digest)
        file.execute("UPDATE sessions SET environment_version = ?, environment_digest = ?", of)
    file.close()
    push = {"type": "custom", "action": "step", "args": {"action": 1}}
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, ("gym:CartPole-v1",), era=MODERN) as peer:
            seen = await peer.ok("step", session=CARTPOLE_SESSION)
            assert "Step 5 of" in seen.text
            assert "pole angular velocity: -0.2928\n" in f"{seen.text}\n"
            seen = await peer.ok("step", session=CARTPOLE_SESSION, actions=[push])
            assert "Step 6 of" in seen.text
            graded = await peer.ok("response", session=CARTPOLE_SESSION, answer="done")
            assert graded.structured["reward"] == 6 / 200


@pytest.mark.long
@pytest.mark.browser
async def test_a_page_that_read_otherwise_in_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its refs still name what they named, though its text has another form now."""
    (environment,) = load_environments([PAGE])
    with sqlite3.connect(tmp_path / "store.sqlite3") as file:
        file.executescript((Path(__file__).parents[1] / "data" / "page_session.sql").read_text())
        of = (environment.version, environment.digest)
        file.execute("UPDATE sessions SET environment_version = ?, environment_digest = ?", of)
    file.close()
    send = {"type": "click", "ref": "e5"}
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (PAGE,), era=MODERN) as peer:
            seen = await peer.ok("step", session=PAGE_SESSION)
            assert 'textbox "What" [e4 focused]: tea' in seen.text
            seen = await peer.ok("step", session=PAGE_SESSION, actions=[send])
            assert "status: Order number 1: tea." in seen.text
            graded = await peer.ok("response", session=PAGE_SESSION, answer="1")
            assert graded.structured["reward"] == 1


@pytest.mark.long
async def test_an_end_is_told_the_same_by_the_next_process(tmp_path: Path) -> None:
    """The receipt, its words, and why a session was lost: also to a host that shows text alone."""
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (BOARD, FAULTY), era=MODERN) as peer:
            task = await peer.start("collect", marker="twice")
            lost = await peer.start("forgets", mark=str(tmp_path / "mark"))
            first = await peer.ok("response", session=task.session, answer="done")
            said = await peer.ok("task_status", session=task.session)
        async with stdio_peer(tmp_path, (BOARD, FAULTY), era=MODERN) as peer:
            again = await peer.ok("response", session=task.session, answer="done")
            assert (again.structured, again.text) == (first.structured, first.text)
            found = await peer.ok("task_status", session=task.session)
            assert found.structured["receipt"] == said.structured["receipt"]
            assert found.structured["session"] == task.session
            assert first.text in found.text
            assert "reward" in found.text
            await peer.error("step", session=lost.session)
        async with stdio_peer(tmp_path, (BOARD, FAULTY), era=MODERN) as peer:
            gone = await peer.ok("task_status", session=lost.session)
            assert "now yields another prompt" in gone.text


@pytest.mark.long
async def test_a_session_that_another_living_server_runs_is_left_to_it(tmp_path: Path) -> None:
    """The second server says so, changes nothing, and takes it over once it is free."""
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as other:
            async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as peer:
                task = await peer.start("collect", marker="owned")
                await peer.ok("act", session=task.session, type="type", text="te")
                told = await other.error("act", session=task.session, type="type", text="x")
                assert "Another server process runs this session" in told
                await peer.ok("act", session=task.session, type="type", text="a", enter_after=True)
            seen = await other.ok("step", session=task.session)
            assert "notes=['tea']" in seen.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("template", "why"),
    [("forgets", "now yields another prompt"), ("cannot_open_twice", "could not be resumed")],
)
async def test_what_cannot_come_back_is_lost_with_the_reason(
    tmp_path: Path, template: str, why: str
) -> None:
    """It is never graded; the record and whoever asks are told why."""
    mark = str(tmp_path / "mark")
    with anyio.fail_after(BOUND_S):
        async with stdio_peer(tmp_path, (FAULTY,), era=MODERN) as peer:
            task = await peer.start(template, mark=mark)
        async with stdio_peer(tmp_path, (FAULTY,), era=MODERN) as peer:
            told = await peer.error("response", session=task.session, answer="x")
            assert "was lost at" in told
            assert why in told
            record = await peer.record(task)
            assert (record.outcome, record.reward) == ("lost", None)
            assert why in (record.error or "")
            assert "was lost at" in await peer.error("step", session=task.session)


@pytest.mark.stress
async def test_a_grading_that_kills_its_server_is_not_tried_for_ever(tmp_path: Path) -> None:
    """After the third server, that is the outcome; the fourth lives."""
    with anyio.fail_after(BOUND_S):
        bird = Phoenix(tmp_path, (FAULTY,))
        await bird.start()
        arguments = {"mark": str(tmp_path / "mark")}
        conversation = Conversation(bird, "kills_its_server", arguments, (), "x")
        await conversation.start()
        for attempt in range(3):
            if attempt == 0:
                with pytest.raises(httpx.TransportError):
                    await bird.call("response", session=conversation.session, answer="x")
            await anyio.to_thread.run_sync(bird.wait)  # the others grade without being asked
            await bird.start()
        told = await bird.call("response", session=conversation.session, answer="x")
        assert "each of the 3 times that its answer was graded" in told["content"][0]["text"]
        record = await conversation.record()
        assert (record.outcome, record.reward) == ("lost", None)
        bird.kill()
    assert [await anyio.Path(tmp_path, f"mark{i}").exists() for i in range(4)] == [True] * 3 + [
        False
    ]


@pytest.mark.long
async def test_a_session_is_not_brought_back_under_another_source(tmp_path: Path) -> None:
    """A template that was edited meanwhile would grade what it did not ask."""
    source = tmp_path / "env.py"
    text = (
        "from hud_mcp import Environment\n"
        "env = Environment('edited')\n"
        "@env.template()\n"
        "async def ask():\n"
        "    answer = yield 'Say yes.'\n"
        "    yield answer == 'yes'\n"
    )
    with anyio.fail_after(BOUND_S):
        await anyio.Path(source).write_text(text)
        async with stdio_peer(tmp_path, (str(source),), era=MODERN) as peer:
            task = await peer.start("ask")
        await anyio.Path(source).write_text(text.replace("== 'yes'", "!= 'yes'"))
        async with stdio_peer(tmp_path, (str(source),), era=MODERN) as peer:
            told = await peer.error("response", session=task.session, answer="yes")
            assert "source has changed" in told
            assert (await peer.record(task)).outcome == "lost"
