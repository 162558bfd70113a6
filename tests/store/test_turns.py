"""What a model said and used is kept apart from the steps, within bounds, and can be removed."""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from records import AT, TASK, begin, execute, receipt, step
from sqlalchemy import Engine, event

from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.store.sql import turns as sql_turns
from hud_mcp.values.masking import MASK
from hud_mcp.values.model_turn import (
    TURN_BYTES,
    ModelCall,
    ModelTurn,
    RecordedTurn,
    TokenUsage,
    bounded,
)

pytestmark = pytest.mark.anyio


def turn(second: float, **fields: Any) -> ModelTurn:
    """A reply that took half a second."""
    begun = AT + timedelta(seconds=second)
    return ModelTurn.model_validate(
        {"started_at": begun, "ended_at": begun + timedelta(seconds=0.5), **fields}
    )


FULL = turn(
    1,
    model="anthropic:model-a",
    settings={"temperature": 0.5},
    text="I click.",
    reasoning="The button is blue.",
    calls=(ModelCall(name="act", arguments={"type": "click", "x": 3}, id="call_1"),),
    usage=TokenUsage(input=100, output=20, cached=60, cache_write=5, reasoning=7),
    cost_usd=0.0025,
    stop_reason="tool_use",
)


async def test_a_turn_comes_back_whole_and_says_which_steps_it_led_to(store: Store) -> None:
    """Each leads to the steps up to the next turn; one that no step followed, to none."""
    await begin(store)
    await store.add_turns("traj-1", [FULL], before_step=0)
    await store.add_step("traj-1", step(0))
    await store.add_step("traj-1", step(1))
    await store.add_turns("traj-1", [turn(2, text="b"), turn(3, text="c")], before_step=2)
    await store.add_step("traj-1", step(2))
    await store.add_turns("traj-1", [turn(4, text="d")])
    found = await store.load_turns("traj-1")
    place = {"number": 0, "before_step": 0, "until_step": 2}
    assert found[0] == RecordedTurn.model_validate({**FULL.model_dump(), **place})
    assert [(t.number, list(t.steps)) for t in found] == [(0, [0, 1]), (1, []), (2, [2]), (3, [])]
    assert found[0].latency_s == 0.5
    assert [t.text for t in await store.load_turns("traj-1", after=1)] == ["c", "d"]


async def test_the_model_s_side_is_read_only_where_it_is_asked_for(store: Store) -> None:
    """A record, as agents' tools read it and as a session is resumed from, has none of it."""
    await begin(store)
    await store.add_turns("traj-1", [FULL], before_step=0)
    assert (await store.load_trajectory("traj-1")).turns == ()
    assert (await store.load_session("traj-1")).trajectory.turns == ()
    read = await store.load_trajectory("traj-1", turns=True)
    assert [t.reasoning for t in read.turns] == ["The button is blue."]
    assert read.use is not None
    assert (read.use.turns, read.use.input, read.use.cost_usd) == (1, 100, 0.0025)


async def test_the_same_report_again_adds_nothing(
    store: Store, open_store: Callable[..., Store]
) -> None:
    """As of a call that is repeated after its reply was lost, also by another server."""
    await begin(store)
    await store.add_turns("traj-1", [FULL, FULL], before_step=0)
    await open_store().add_turns("traj-1", [FULL, turn(9)], before_step=1)
    assert [t.started_at for t in await store.load_turns("traj-1")] == [
        FULL.started_at,
        turn(9).started_at,
    ]


async def test_a_turn_is_recorded_after_the_end_too(store: Store) -> None:
    """What no call took is reported then, beside the last step; of no session there is none."""
    await begin(store)
    await store.add_step("traj-1", step(0), answers=True)
    await store.end_session("traj-1", receipt())
    assert await store.add_turns("traj-1", [FULL]) == 0
    assert [list(t.steps) for t in await store.load_turns("traj-1")] == [[]]
    assert (await store.load_turns("traj-1"))[0].before_step == 1
    with pytest.raises(StoreFailed, match="no session 'traj-9'"):
        await store.add_turns("traj-9", [FULL])


async def test_what_a_job_s_models_used_stands_in_its_list(store: Store) -> None:
    """Sums a session, none where nothing is told; the time of steps is apart."""
    job = Job(id="job-1", name="j")
    await store.add_job(job, [TASK])
    for name in ("traj-1", "traj-2", "traj-3"):
        await begin(store, name, job_id="job-1")
    await store.add_turns("traj-1", [FULL, turn(5, usage={"input": 10})], before_step=0)
    await store.add_step("traj-1", step(0, ended_at=AT + timedelta(seconds=2)))
    await store.add_step("traj-1", step(1, ended_at=AT + timedelta(seconds=1.25)))
    await store.add_turns("traj-2", [turn(1)], before_step=0)
    _, _, runs = await store.load_job_summary("job-1")
    used = {run.id: run.use for run in runs}
    assert used["traj-3"] is None
    first, second = used["traj-1"], used["traj-2"]
    assert first is not None
    assert second is not None
    assert (first.turns, first.input, first.output, first.cached) == (2, 110, 20, 60)
    assert (first.cost_usd, first.priced, first.model_s) == (0.0025, 1, 1.0)
    assert first.environment_s == 3.25
    assert (second.input, second.cost_usd, second.model_s) == (None, None, 0.5)
    assert first == (await store.load_trajectory("traj-1", turns=True)).use


async def test_a_session_has_room_for_so_many_turns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later ones are left out, and counted; those before stand."""
    monkeypatch.setattr(sql_turns, "TURNS", 3)
    await begin(store)
    assert await store.add_turns("traj-1", [turn(1), turn(2)], before_step=0) == 0
    assert await store.add_turns("traj-1", [turn(3), turn(4), turn(5)], before_step=0) == 2
    assert len(await store.load_turns("traj-1")) == 3
    await begin(store, "traj-2")
    monkeypatch.setattr(sql_turns, "TURN_BYTES_IN_ALL", 3000)
    long = [turn(second, text="x" * 1000) for second in range(3)]
    assert await store.add_turns("traj-2", long, before_step=0) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "field",
    ["text", "reasoning", "calls", "many calls", "settings", "messages", "many messages", "all"],
)
def test_a_turn_that_is_too_large_is_cut_and_keeps_its_figures(field: str) -> None:
    """The beginning stays, and what was cut is counted; the record of a call does not grow."""
    huge: dict[str, Any] = {
        "text": {"text": "ä" * 1_000_000},
        "reasoning": {"reasoning": "\x00" * 1_000_000},
        "calls": {"calls": [{"name": "n" * 5000, "arguments": {"t": "x" * 1_000_000}}]},
        "many calls": {"calls": [{"name": "a", "arguments": {"i": i}} for i in range(50_000)]},
        "settings": {"settings": {"prompt": "x" * 1_000_000}},
        "messages": {"messages": ({"role": "user", "parts": [{"text": "\x00" * 1_000_000}]},)},
        "many messages": {"messages": ({"role": "user"},) * 50_000, "text": "x" * 20_000},
        "all": dict.fromkeys(("model", "text", "reasoning", "stop_reason", "error"), "😀" * 20_000),
    }[field]
    kept = bounded(turn(1, usage={"input": 5}, cost_usd=1.5, **huge))
    size = len(json.dumps(kept.model_dump(mode="json")))
    assert (0 if field == "settings" else TURN_BYTES / 20) < size <= TURN_BYTES
    assert (kept.usage.input, kept.cost_usd) == (5, 1.5)
    assert "cut" in kept.model_dump_json()


SEEN: dict[str, Any] = {
    "dialect": "messages",
    "asked_model": "model-b",
    "provider_id": "msg_1",
    "messages": ({"role": "user", "parts": [{"text": "Open it."}, {"image": "0" * 64}]},),
    "after": 0,
    "repeats": 1,
    "tools": "abc",
    "is_side": True,
    "is_broken": True,
    "first_token_s": 0.25,
    "last_token_s": 0.5,
    "tries": ({"status": 529, "error": "Overloaded", "waited_s": 1.5},),
}
"""What only a program between an agent and its model knows of a turn."""


async def test_a_turn_that_was_seen_on_its_way_comes_back_whole(store: Store) -> None:
    """Its messages can be removed like its text."""
    await begin(store)
    await store.add_turns("traj-1", [FULL, turn(2, **SEEN)], before_step=0)
    told, seen = await store.load_turns("traj-1")
    assert {name: getattr(seen, name) for name in SEEN} == SEEN
    assert {name: getattr(told, name) for name in SEEN} == {
        name: ModelTurn.model_fields[name].default for name in SEEN
    }
    assert await Upkeep(store).redact(["traj-1"], ["messages"]) == (2, 1)
    (_, seen) = await store.load_turns("traj-1")
    assert (seen.messages, seen.after) == ((), 0)
    assert [name for name, _ in seen.removed] == ["messages"]


async def test_a_key_in_a_message_is_masked(store: Store, url: str) -> None:
    """A tool's result may have one, as a reply may."""
    await begin(store)
    key = "sk-ant-api03-" + "Ab3" * 20
    said = {"role": "tool", "parts": [{"result": f"KEY={key}", "id": "call_1"}]}
    await store.add_turns("traj-1", [turn(1, messages=(said,))], before_step=0)
    assert key not in str(execute(url, "SELECT * FROM turns"))


async def test_what_no_column_holds_is_not_refused(store: Store) -> None:
    """Numbers that are too large or none, times without a zone, characters of no encoding."""
    await begin(store)
    odd = ModelTurn(
        text="half \ud83d of one, and \x00",
        usage=TokenUsage(input=2**80),
        cost_usd=float("inf"),
        started_at=datetime(2026, 1, 2, 3, 4, 6),  # noqa: DTZ001  # as a program may send it
        ended_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    await store.add_turns("traj-1", [odd], before_step=0)
    (read,) = await store.load_turns("traj-1")
    assert (read.usage.input, read.cost_usd) == (None, None)
    assert read.started_at.tzinfo == UTC


async def test_keys_are_masked_before_anything_is_written(store: Store, url: str) -> None:
    """The actions of the steps, which a replay repeats, stay as they are."""
    key = "sk-ant-api03-" + "aB3dE5gH7jK9" * 4
    await begin(store)
    said = turn(1, text=f"It is {key}.", reasoning=key,
                calls=[{"name": "act", "arguments": {"text": key}}])  # fmt: skip
    await store.add_turns("traj-1", [said], before_step=0)
    await store.add_step("traj-1", step(0, actions=({"type": "type", "text": key},)))
    (read,) = await store.load_turns("traj-1")
    assert (read.text, read.reasoning) == (f"It is {MASK}.", MASK)
    assert read.calls[0].arguments == {"text": MASK}
    assert key not in str(execute(url, "SELECT * FROM turns"))
    (kept,) = await store.load_steps("traj-1")
    assert kept.actions[0]["text"] == key


async def test_what_is_removed_is_gone_and_leaves_a_marker(store: Store) -> None:
    """Figures, times and the other fields stay; once more removes nothing and marks nothing."""
    await begin(store)
    await store.add_turns("traj-1", [FULL, turn(2, text="b")], before_step=0)
    assert await Upkeep(store).redact(["traj-1"], ["reasoning", "calls"]) == (2, 1)
    first, second = await store.load_turns("traj-1")
    assert (first.reasoning, first.calls, first.text) == (None, (), "I click.")
    assert first.usage == FULL.usage
    ((names, at),) = [(r.fields, r.at) for r in first.redactions]
    assert names == ("reasoning", "calls")
    assert datetime.now(UTC) - at < timedelta(minutes=5)
    assert second.redactions == ()
    assert await Upkeep(store).redact(["traj-1"], ["reasoning"]) == (2, 0)
    assert await Upkeep(store).redact(["traj-1"], ["text"]) == (2, 2)
    (first, second) = await store.load_turns("traj-1")
    assert [name for name, _ in first.removed] == ["reasoning", "calls", "text"]
    assert [name for name, _ in second.removed] == ["text"]


def holding(text: str, folder: Path) -> list[str]:
    """The files in a folder that have a text in them."""
    files = [path for path in folder.iterdir() if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


def deletes_as_sqlite_does(connection: Any, _record: Any) -> None:
    """As SQLite is built by most: what Debian's zeroes stays in its pages."""
    connection.execute("PRAGMA secure_delete=OFF")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [0, 900])
async def test_what_is_removed_is_in_no_file_of_the_store(tmp_path: Path, size: int) -> None:
    """Neither in SQLite's file, whose divided and free pages would have it, nor in its log."""
    event.listen(Engine, "connect", deletes_as_sqlite_does)
    try:
        store = Store(tmp_path / "store.sqlite3")
        names = [f"traj-{i}" for i in range(6)]
        for name in names:
            await begin(store, name)
        secret = "blue-elephants-dance-at-noon"
        for second in range(40):  # in turns, so that pages are divided in their middle
            said = turn(second, text="p" * (second * 13 % 400), reasoning=f"{secret} {'x' * size}")
            for name in names:
                await store.add_turns(name, [said], before_step=0)
        assert holding(secret, tmp_path) != []
        await Upkeep(store).redact(names, ["reasoning"])
        assert holding(secret, tmp_path) == []
        await store.close()
    finally:
        event.remove(Engine, "connect", deletes_as_sqlite_does)


async def test_what_a_reader_holds_in_the_log_is_told(tmp_path: Path) -> None:
    """The same call again, once nobody reads, leaves nothing."""
    path = tmp_path / "store.sqlite3"
    store = Store(f"sqlite:///{path}?timeout=0.1")
    await begin(store)
    secret = "blue-elephants-dance-at-noon"
    await store.add_turns("traj-1", [turn(1, reasoning=secret)], before_step=0)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM turns").fetchall()
    with pytest.raises(StoreFailed, match="SQLite's log still has them"):
        await Upkeep(store).redact(["traj-1"], ["reasoning"])
    reader.close()
    await Upkeep(store).redact(["traj-1"], ["reasoning"])
    assert holding(secret, tmp_path) == []
    await store.close()
