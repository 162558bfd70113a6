"""A server is killed, and calls come while the next one brings their session back."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import ENVIRONMENTS, Gate, raw_stdio
from phoenix import Phoenix, phoenix

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.browser,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("machine"),
]

REVIVED = str(ENVIRONMENTS / "revived.py")
BOUND_S = 120.0
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Work:
    """What is right in one world: before the server's death, and after it."""

    template: str
    before: tuple[Call, ...]
    after: Call


def typed(text: str, **more: Any) -> Call:
    """A call that types."""
    return "act", {"type": "type", "text": text, **more}


def ran(command: str) -> Call:
    """A call that runs a command."""
    return "run_command", {"command": command}


def took(*actions: int) -> Call:
    """A call that takes steps."""
    return "act", {"type": "custom", "action": "step", "args": {"actions": list(actions)}}


WORKS = {
    "none": Work("say", (), ("task_status", {})),
    "custom": Work("jot", (typed("tea", enter_after=True),), typed("milk", enter_after=True)),
    "gymnasium": Work("hold", (took(0), took(1)), took(0)),
    "shell": Work("file", (ran("echo tea > NOTE"),), ran("echo milk >> NOTE")),
    "browser": Work(
        "buy", (typed("tea", selector="#what"),), ("act", {"type": "click", "selector": "#send"})
    ),
}
each_world = pytest.mark.parametrize(
    "world",
    [
        pytest.param(name, marks=[pytest.mark.stress] * (name in ("custom", "gymnasium")))
        for name in WORKS
    ],
)


def closed(gate: Gate) -> Gate:
    """The gate, closed again, with nobody there."""
    for path in (gate.path, gate.entered):
        Path(path).unlink(missing_ok=True)
    return gate


def text_of(reply: dict[str, Any]) -> str:
    """The words of a reply."""
    return "\n".join(c["text"] for c in reply["content"] if c["type"] == "text")


@pytest.mark.long
@each_world
async def test_work_and_its_answer_in_one_instant_after_a_death_are_graded_whole(
    tmp_path: Path, world: str
) -> None:
    """Over stdio, on one pipe: the second server dies in the middle too, the third grades 1."""
    work, gate = WORKS[world], Gate(tmp_path, "g")
    with anyio.fail_after(BOUND_S):
        gate.open()
        async with raw_stdio(tmp_path, (REVIVED,)) as first:
            await first.hello()
            arguments = {"gate": str(tmp_path / "g")}
            begun = await first.call("start_task", template=work.template, arguments=arguments)
            assert not begun.get("isError"), begun
            session = begun["structuredContent"]["session"]
            for name, given in work.before:
                reply = await first.call(name, session=session, **given)
                assert not reply.get("isError"), reply
            first.process.kill()
        closed(gate)
        name, given = work.after
        async with raw_stdio(tmp_path, (REVIVED,)) as second:
            await second.hello()
            await second.post(name, {"session": session, **given})
            await gate.arrived()
            second.process.kill()
        closed(gate)
        async with raw_stdio(tmp_path, (REVIVED,)) as third:
            await third.hello()
            worked = await third.post(name, {"session": session, **given})
            answered = await third.post("response", {"session": session, "answer": "done"})
            await gate.arrived()
            again = await third.post("response", {"session": session, "answer": "done"})
            asked = await third.post("task_status", {"session": session})
            gate.open()
            reply = (await third.answer(worked))["result"]
            assert not reply.get("isError"), reply
            for each in (answered, again):
                graded = (await third.answer(each))["result"]
                assert not graded.get("isError"), graded
                assert graded["structuredContent"]["reward"] == 1.0
            status = (await third.answer(asked))["result"]["structuredContent"]
            assert status["state"] in ("open", "grading", "ended")
            assert third.order.index(worked) < third.order.index(answered)


@pytest.mark.long
@each_world
async def test_calls_of_several_connections_wait_for_the_world(tmp_path: Path, world: str) -> None:
    """Over HTTP: one begins the resuming, the others come while it is under way."""
    work, gate = WORKS[world], Gate(tmp_path, "g")
    replies: dict[str, dict[str, Any]] = {}

    async def call(bird: Phoenix, key: str, name: str, **given: Any) -> None:
        replies[key] = await bird.call(name, session=session, **given)

    with anyio.fail_after(BOUND_S):
        gate.open()
        async with phoenix(tmp_path, (REVIVED,)) as bird:
            arguments = {"gate": str(tmp_path / "g")}
            begun = await bird.call("start_task", template=work.template, arguments=arguments)
            assert not begun.get("isError"), begun
            session = begun["structuredContent"]["session"]
            for name, given in work.before:
                reply = await bird.call(name, session=session, **given)
                assert not reply.get("isError"), reply
            bird.kill()
            closed(gate)
            await bird.start()
            async with anyio.create_task_group() as group:
                name, given = work.after
                group.start_soon(partial(call, bird, "work", name, **given))
                await gate.arrived()
                for key in ("first", "second"):
                    group.start_soon(partial(call, bird, key, "response", answer="done"))
                group.start_soon(call, bird, "status", "task_status")
                gate.open()
            assert not replies["work"].get("isError"), replies["work"]
            for key in ("first", "second"):
                assert not replies[key].get("isError"), replies[key]
                assert replies[key]["structuredContent"]["reward"] == 1.0
            assert not replies["status"].get("isError"), replies["status"]
            assert "Traceback" not in bird.log()
