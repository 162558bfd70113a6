"""Who sees what: every byte that a client receives is searched for what it may not see."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from peers import (
    ENVELOPE,
    ENVIRONMENTS,
    LEGACY,
    MODERN,
    RawHttp,
    RawStdio,
    Way,
    http_server,
    load_all,
    raw_http,
    raw_stdio,
)

pytestmark = pytest.mark.anyio

SOURCE = str(ENVIRONMENTS / "confidential.py")
TASKS = str(ENVIRONMENTS / "confidential_tasks.jsonl")

KEYS = [
    b"ARGUMENT-MARK", b"METADATA-MARK", b"WRONG-ANSWER-MARK", b"GRADE-INFO-MARK", b"EXCEPTION-MARK",
    b"TARGET-MARK", b"CONFIG-MARK", b"SOURCE-MARK", b"WEAK-MARK", b"held_to", b"turns_down",
    b"SUBSCORE-INFO-MARK", b"LOG-MARK", b"490817", b"confidential.py", b"store.sqlite3",
]  # fmt: skip
"""Of no concern to an agent under any policy."""

GRADES = [b"731958", b"617283", b"617284", b"584930", b"SUBSCORE-NAME-MARK", b"CHILD-NAME-MARK",
          b"CONTENT-MARK"]  # fmt: skip
"""Of a grade: seen by nobody under `hidden`, and not before the end under `on_submit`."""

STEP_REWARD = b"263748"


@dataclass
class Wire:
    """A raw client of any kind, and what it has received."""

    raw: RawStdio | RawHttp
    era: str
    sessions: list[str] = field(default_factory=list)

    @property
    def received(self) -> bytes:
        """Every byte so far."""
        raw = self.raw
        return bytes(raw.written if isinstance(raw, RawStdio) else raw.received)

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer, an error too."""
        if isinstance(self.raw, RawStdio) and self.era == MODERN:
            params = {**params, "_meta": ENVELOPE}
        return await self.raw.request(method, params)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]

    async def start(self, task: str) -> str:
        """Start a task."""
        begun = await self.call("start_task", task=task)
        session = begun["structuredContent"]["session"]
        self.sessions.append(session)
        return session


@asynccontextmanager
async def wire(way: Way, folder: Path, *options: str) -> AsyncIterator[Wire]:
    """Connect without the SDK, so that nothing that arrives is lost."""
    more = ("--taskset", TASKS, *options)
    if way.transport == "stdio":
        async with raw_stdio(folder, (SOURCE,), *more) as raw:
            if way.era == LEGACY:
                await raw.hello()
            yield Wire(raw, way.era)
    else:
        with http_server(folder, (SOURCE,), *more) as server:
            async with raw_http(server.url, way.era) as raw:
                yield Wire(raw, way.era)


async def whole_conversation(wire: Wire) -> bytes:
    """Do everything that a client can do; return what had arrived before the first answer."""
    for method in (
        "tools/list", "prompts/list", "resources/list", "resources/templates/list",
    ):  # fmt: skip
        await wire.request(method, {})
    await wire.request("resources/read", {"uri": "hud://environments/confidential"})
    await wire.call("list_tasks")
    reference = {"type": "ref/prompt", "name": "task"}
    argument = {"name": "id", "value": ""}
    await wire.request("completion/complete", {"ref": reference, "argument": argument})
    reference = {"type": "ref/prompt", "name": "guess"}
    argument = {"name": "expected", "value": ""}
    await wire.request("completion/complete", {"ref": reference, "argument": argument})
    await wire.request("prompts/get", {"name": "task", "arguments": {"id": "guess-1"}})
    session = await wire.start("guess-1")
    await wire.call("step", session=session)
    prize = {"type": "custom", "action": "prize"}
    await wire.call("act", session=session, **prize)
    await wire.call("step", session=session, actions=[prize])
    await wire.call("screenshot", session=session)
    await wire.call("step", session=session, actions=[{"type": "custom", "action": "raise"}])
    await wire.call("task_status", session=session)
    uri = f"hud://sessions/{session}/trajectory"
    await wire.request("resources/read", {"uri": uri})
    before = wire.received

    for _ in range(2):
        await wire.call("response", session=session, answer="pear")
    await wire.call("response", session=session, answer="plum")
    await wire.call("step", session=session)
    await wire.call("task_status", session=session)
    await wire.request("resources/read", {"uri": uri})
    inline = await wire.start("guess-1")
    answer = {"type": "response", "text": "pear"}
    await wire.call("step", session=inline, actions=[prize, answer])
    await wire.request("prompts/get", {"name": "task", "arguments": {"id": "asked-1"}})
    for task in (
        "fail-1", "talk-1", "asked-1", "asked-raises", "asked-refuses", "asked-words",
    ):  # fmt: skip
        failed = await wire.start(task)
        for tool, more in (
            ("response", {"answer": "pear"}), ("task_status", {}), ("step", {}),
            ("response", {"answer": "plum"}), ("cancel_task", {}),
        ):  # fmt: skip
            await wire.call(tool, session=failed, **more)
        uri = f"hud://sessions/{failed}/trajectory"
        await wire.request("resources/read", {"uri": uri})
    early = await wire.call("start_task", task="early-1")
    assert early["isError"]
    await wire.request("prompts/get", {"name": "fail_early", "arguments": {"expected": "x"}})
    return before


def found(marks: list[bytes], received: bytes) -> list[bytes]:
    """Those marks that are somewhere in the bytes."""
    return [m for m in marks if m in received]


@pytest.mark.sampled(1)
async def test_under_hidden_no_byte_of_a_conversation_carries_a_grade_or_a_key(
    way: Way, tmp_path: Path
) -> None:
    """Not in text, structured content, meta, headers, errors or resources; the record has it."""
    async with wire(way, tmp_path, "--reward", "hidden") as client:
        await whole_conversation(client)
        received = client.received
    assert b"Which word am I thinking of?" in received
    assert b"Your answer was received and graded" in received
    assert found([*KEYS, *GRADES, STEP_REWARD, b"STEP-INFO-MARK"], received) == []
    assert not re.search(rb'"(reward|score|subscores)"', without_listings(received))
    records = [r for r in await load_all(tmp_path / "store.sqlite3") if r.task.id == "guess-1"]
    rewards = [r.reward for r in records if r.reward is not None]
    assert rewards == [0.731958264, 0.731958264]
    assert all(r.receipt.info["expected"] == "ARGUMENT-MARK" for r in records if r.receipt)
    assert all(s.reward == 0.263748591 for r in records for s in r.steps if s.reward is not None)
    assert all(r.task.metadata == {"solution": "METADATA-MARK"} for r in records)
    asked = [r for r in await load_all(tmp_path / "store.sqlite3") if r.task.prompt]
    ended = {r.task.id: (str(r.outcome), r.reward) for r in asked}
    failed = ("grading_failed", None)
    assert ended == {
        "asked-1": ("graded", 0.731958264), "asked-raises": failed, "asked-refuses": failed,
        "asked-words": failed,
    }  # fmt: skip
    texts = [r.receipt.error or "" for r in asked if r.receipt and r.reward is None]
    assert sum("ARGUMENT-MARK" in text for text in texts) == 3, "the record says what went wrong"


@pytest.mark.long
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("policy", "way"),
    [
        ("on_submit", Way("stdio", MODERN)),
        (None, Way("http", LEGACY)),
        ("per_step", Way("stdio", LEGACY)),
        ("per_step", Way("http", MODERN)),
    ],
    ids=str,
)
async def test_under_every_policy_no_answer_key_leaves_the_server(
    tmp_path: Path, policy: str | None, way: Way
) -> None:
    """A grade is shown after the answer and no sooner; what it was compared with never is."""
    options = () if policy is None else ("--reward", policy)
    async with wire(way, tmp_path, *options) as client:
        before = await whole_conversation(client)
        received = client.received
    assert found(KEYS, received) == []
    assert found(GRADES, before) == []
    assert found([b"731958", b"CONTENT-MARK", b"SUBSCORE-NAME-MARK"], received) != []
    assert (STEP_REWARD in received) is (policy == "per_step")


@pytest.mark.long
async def test_no_message_shows_another_callers_session(tmp_path: Path) -> None:
    """Two clients of one server: neither ever receives a byte of the other's id."""
    with http_server(tmp_path, (SOURCE,), "--taskset", TASKS) as server:
        for first_era, second_era in ((LEGACY, LEGACY), (LEGACY, MODERN)):
            async with (
                raw_http(server.url, first_era) as one,
                raw_http(server.url, second_era) as two,
            ):
                first, second = Wire(one, first_era), Wire(two, second_era)
                await first.start("guess-1")
                await whole_conversation(second)
                await first.start("guess-1")
                await whole_conversation(first)
                for reader, other in ((first, second), (second, first)):
                    reference = {
                        "type": "ref/resource", "uri": "hud://sessions/{session}/trajectory",
                    }  # fmt: skip
                    argument = {"name": "session", "value": "sess-"}
                    await reader.request(
                        "completion/complete", {"ref": reference, "argument": argument}
                    )
                    assert other.sessions
                    for session in other.sessions:
                        assert session.encode() not in reader.received
        log = server.logged()
    assert "sess-" not in log


def without_listings(received: bytes) -> bytes:
    """What was received without the tools' and templates' descriptions, which explain rewards."""
    kept = []
    for line in received.splitlines():
        text = line.removeprefix(b"data: ")
        if not text.startswith(b"{"):
            continue
        result = json.loads(text).get("result", {})
        if not {"tools", "prompts"} & set(result):
            kept.append(text)
    return b"\n".join(kept)
