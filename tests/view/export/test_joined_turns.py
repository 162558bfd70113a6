"""A turn that a gateway has seen names the steps of its calls, in every form of the record."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from recording import START, Recorded
from tables import each_of
from test_atif import check

from hud_mcp.plugins.view.export import export_atif, export_parquet
from hud_mcp.plugins.view.web.trajectory import StepRows
from hud_mcp.record.transcript import transcript
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.values.action import parse_actions
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio

LOOK = {"name": "mcp__hud-mcp__step", "arguments": {"actions": []}}
SHELF, TILL = "A shelf with a lamp.\nbutton “Buy” [e1]", "A till.\nbutton “Pay” [e2]"


def call(number: int, of: dict[str, Any] = LOOK) -> dict[str, Any]:
    """A call with the id of its number."""
    return {**of, "id": f"toolu_{number}"}


def result(text: str, *numbers: int) -> list[dict[str, Any]]:
    """The messages of a request that gives a text as the result of calls."""
    parts = [{"result": f"<context>\n{text}\n</context>", "id": f"toolu_{n}"} for n in numbers]
    return [{"role": "assistant", "turn": 0}, {"role": "tool", "parts": parts}]


class Session:
    """A session that turns and steps are added to, in the order of their events."""

    def __init__(self, record: Recorded, name: str) -> None:
        self.record, self.name = record, name
        self.turns = self.steps = 0

    async def turn(self, *calls: dict[str, Any], after: int | None = None, **more: Any) -> None:
        """Record a reply."""
        at = START + timedelta(seconds=self.turns)
        times = {"started_at": at, "ended_at": at, "after": after, "calls": calls}
        self.turns += 1
        await self.record.store.add_seen_turn(
            self.name, ModelTurn.model_validate({**times, **more})
        )

    async def step(self, text: str, *actions: dict[str, Any], **more: Any) -> None:
        """Record a step."""
        taken = [each.model_dump(mode="json", exclude_none=True) for each in parse_actions(actions)]
        fields = {"kind": "step", "performed": len(actions), "observation_text": text, **more}
        step = TrajectoryStep(
            index=self.steps, actions=taken, started_at=START, ended_at=START, **fields
        )
        self.steps += 1
        await self.record.store.add_step(self.name, step, None)

    async def joined(self) -> list[tuple[int | None, ...]]:
        """The steps of the calls of each turn."""
        found = await self.record.store.load_trajectory(self.name, turns=True)
        return [turn.call_steps for turn in found.turns]


@pytest.fixture
async def parallel(record: Recorded) -> Session:
    """Two agents look at once, and the second one's call comes first; then one answers."""
    session = Session(record, await record.add(outcome=None))
    click = {"name": "step", "arguments": {"actions": {"type": "click", "ref": "e1"}}}
    answer = {"name": "mcp__hud-mcp__response", "arguments": {"answer": "12"}}
    await session.turn(call(0), text="Look at the shelf.")
    await session.turn(call(1), text="Look at the till.")
    await session.step(TILL)
    await session.step(SHELF)
    await session.turn(call(2, click), after=0, messages=result(SHELF, 0), text="Buy.")
    await session.turn(text="A title")
    await session.step("Bought.", {"type": "click", "ref": "e1"})
    await session.turn(call(3, answer), after=1, messages=result(TILL, 1))
    await session.step("", {"type": "response", "text": "12"}, kind="response")
    return session


async def test_agents_of_one_session_that_work_at_once_are_told_apart(parallel: Session) -> None:
    """By the results of their calls, though the calls are equal; a turn without calls has none."""
    assert await parallel.joined() == [(1,), (0,), (2,), (), (3,)]
    found = await parallel.record.store.load_trajectory(parallel.name, turns=True)
    assert [list(turn.steps) for turn in found.turns] == [[1], [0], [2], [], [3]]


async def test_every_form_of_the_record_has_the_turn_before_its_step(
    parallel: Session, tmp_path: Path
) -> None:
    """Trace, pages, ATIF and Parquet."""
    store, folder = parallel.record.store, tmp_path / "atif"
    found = await store.load_trajectory(parallel.name, turns=True)
    text = "\n".join(line.text for line in transcript(found))
    words = ("Look at the till.", TILL, "Look at the shelf.", SHELF.splitlines()[0], "Buy.")
    places = [text.index(each.splitlines()[0]) for each in words]
    assert places == sorted(places)

    rows = StepRows(found.started_at)
    rows.take_turns(found.turns)
    rows.extend(found.steps)
    said = [[turn["text"] for turn in row["turns"]] for row in rows.rows]
    assert said[:2] == [["Look at the till."], ["Look at the shelf."]]
    assert any("step 1" in fact for fact in rows.rows[0]["turns"][0]["facts"])

    await export_parquet(store, "job-1", tmp_path / "parquet")
    table = pq.read_table(tmp_path / "parquet" / "turns.parquet").to_pylist()
    assert [[each["step"] for each in json.loads(row["calls_json"])] for row in table] == [
        [1], [0], [2], [], [3],
    ]  # fmt: skip
    assert [(row["before_step"], row["until_step"]) for row in table[:3]] == [
        (1, 2),
        (0, 1),
        (2, 3),
    ]

    await export_atif(store, "job-1", folder)
    document = json.loads((folder / f"{parallel.name}.json").read_text())
    check(document, folder)
    led = {
        step["tool_calls"][0]["tool_call_id"]: step["message"]
        for step in document["steps"]
        if "tool_calls" in step
    }
    assert led["call-0"] == "Look at the till."
    assert (led["call-1"], led["call-2"]) == ("Look at the shelf.", "Buy.")


FORGED = {
    "an invented result": (result("You have won.", 0), (None,)),
    "the id of another session's call": (result(SHELF, 7), (0,)),
    "an id twice, the first one true": (result(SHELF, 0) + result(TILL, 0), (0,)),
    "an id twice, the first one invented": (result("You have won.", 0, 0), (None,)),
    "half of a result": (result(SHELF[:20], 0), (None,)),
}


@each_of("about", FORGED)
async def test_what_an_agent_says_of_its_calls_joins_only_what_is_equal(
    record: Recorded, about: str
) -> None:
    """A call is no other session's step, nor one that another call has made."""
    other = Session(record, await record.add(outcome=None))
    await other.turn(call(7))
    await other.step(SHELF)
    messages, expected = FORGED[about]
    session = Session(record, await record.add(outcome=None))
    await session.turn(call(0))
    await session.step(SHELF)
    await session.turn(after=0, messages=messages)
    (first, _) = await session.joined()
    assert (first or (None,)) == expected
    assert await other.joined() == [(0,)]


UNEQUAL = {
    "another action": {"name": "step", "arguments": {"actions": [{"type": "click", "ref": "e9"}]}},
    "another tool": {"name": "react", "arguments": {"actions": []}},
    "arguments that are no call's": {"name": "step", "arguments": "[]"},
    "no action at all": {"name": "step", "arguments": {"actions": [{"type": "nothing"}]}},
}


@each_of("about", UNEQUAL)
async def test_a_call_that_is_not_equal_is_no_step(record: Recorded, about: str) -> None:
    """Though its result says so; its place is then told by the order alone."""
    session = Session(record, await record.add(outcome=None))
    await session.turn(call(0, UNEQUAL[about]))
    await session.step(SHELF, {"type": "click", "ref": "e1"})
    await session.turn(after=0, messages=result(SHELF, 0))
    found = await record.store.load_trajectory(session.name, turns=True)
    assert [turn.call_steps for turn in found.turns] == [(), ()]
    assert list(found.turns[0].steps) == [0]


async def test_results_without_ids_belong_to_calls_in_their_order(record: Recorded) -> None:
    """Gemini's have none; a cut result is known by its beginning."""
    session = Session(record, await record.add(outcome=None))
    long = "A long page. " * 100
    await session.turn(LOOK, LOOK)
    await session.step(long)
    await session.step(SHELF)
    parts = [{"result": SHELF, "id": None}, {"result": f"{long[:600]}… cut", "id": None}]
    await session.turn(after=0, messages=[{"role": "tool", "parts": parts}])
    assert (await session.joined())[0] == (1, 0)
