"""What a model said and used is in each export that holds a record, and what was removed is not."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from recording import START, Recorded
from test_atif import check

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.export import export_atif, export_jsonl, export_parquet
from hud_mcp.plugins.view.export.columns import COLUMNS
from hud_mcp.values.model_turn import ModelTurn

pytestmark = pytest.mark.anyio

THOUGHT = "THE-MODEL-THOUGHT-THIS"


def turn(second: float, **fields: Any) -> ModelTurn:
    """A reply that took a second and a half."""
    begun = START + timedelta(seconds=second)
    return ModelTurn.model_validate(
        {"started_at": begun, "ended_at": begun + timedelta(seconds=1.5), **fields}
    )


@pytest.fixture
async def told(record: Recorded) -> Recorded:
    """Two steps of one turn, one of another, and a turn that led to none; a run without any."""
    click = {"type": "click", "point": {"x": 3.0, "y": 4.0}, "reasoning": "It says Buy."}
    await record.add("price", [{"actions": [click]}, {}, {"reward": 0.5}])
    first = turn(
        0,
        model="anthropic:model-a",
        text="I click.",
        reasoning=THOUGHT,
        calls=[{"name": "computer", "arguments": {"x": 6}, "id": "c1"}],
        usage={"input": 100, "output": 20, "cached": 60, "cache_write": 5, "reasoning": 7},
        cost_usd=0.25,
        stop_reason="tool_use",
    )
    await record.store.add_turns("traj-0", [first], before_step=0)
    await record.store.add_turns("traj-0", [turn(4, text="Done?")], before_step=2)
    await record.store.add_turns("traj-0", [turn(8, usage={"input": 10})], before_step=3)
    await record.add("other", [{}])
    return record


async def test_json_lines_have_every_turn_and_their_sum(told: Recorded, tmp_path: Path) -> None:
    """With the steps that each led to; a run without turns has none, and no sum of 0."""
    await export_jsonl(told.store, "job-1", tmp_path / "run.jsonl")
    first, other = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    places = [(t["number"], t["before_step"], t["until_step"]) for t in first["turns"]]
    assert places == [(0, 0, 2), (1, 2, 3), (2, 3, 3)]
    assert first["turns"][0]["reasoning"] == THOUGHT
    assert first["use"] == {
        "turns": 3, "input": 110, "output": 20, "cached": 60, "cost_usd": 0.25, "priced": 1,
        "model_s": 4.5, "environment_s": 3.0, "source": None,
    }  # fmt: skip
    assert (other["turns"], other["use"]) == ([], None)


async def test_parquet_has_a_table_of_turns(told: Recorded, tmp_path: Path) -> None:
    """Typed; the sums stand in each trajectory's row, absent where nothing was told."""
    await export_parquet(told.store, "job-1", tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "turns.parquet").to_pylist()
    assert list(rows[0]) == [column.name for column in COLUMNS["turns"]]
    assert [(row["turn"], row["before_step"], row["until_step"]) for row in rows] == [
        (0, 0, 2), (1, 2, 3), (2, 3, 3),
    ]  # fmt: skip
    assert (rows[0]["reasoning"], rows[0]["cache_write_tokens"]) == (THOUGHT, 5)
    assert json.loads(rows[0]["calls_json"])[0]["name"] == "computer"
    assert (rows[1]["input_tokens"], rows[1]["cost_usd"]) == (None, None)
    first, other = pq.read_table(tmp_path / "out" / "trajectories.parquet").to_pylist()
    assert (first["model"], first["turn_count"], first["input_tokens"]) == (
        "anthropic:model-a", 3, 110,
    )  # fmt: skip
    assert (first["cost_usd"], first["model_s"], first["environment_s"]) == (0.25, 4.5, 3.0)
    assert (other["turn_count"], other["cost_usd"], other["model_s"]) == (0, None, None)


async def test_atif_has_a_turn_in_the_first_step_that_it_led_to(
    told: Recorded, tmp_path: Path
) -> None:
    """Its message, reasoning and metrics; a turn that led to none is a step of its own."""
    folder = tmp_path / "out"
    await export_atif(told.store, "job-1", folder)
    document = json.loads((folder / "traj-0.json").read_text())
    check(document, folder)
    _, first, second, third, alone = document["steps"]
    assert (first["message"], first["reasoning_content"]) == ("I click.", THOUGHT)
    assert (first["model_name"], first["llm_call_count"]) == ("anthropic:model-a", 1)
    assert first["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "cached_tokens": 60,
        "cost_usd": 0.25,
        "extra": {"latency_s": 1.5, "cache_write_tokens": 5, "reasoning_tokens": 7},
    }
    assert first["extra"]["turn"]["calls"][0]["name"] == "computer"
    assert (second["message"], second["llm_call_count"]) == ("", 0)
    assert (third["message"], third["metrics"]["extra"]["reward"]) == ("Done?", 0.5)
    assert "tool_calls" not in alone
    assert document["agent"]["model_name"] == "anthropic:model-a"
    totals = document["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_cost_usd"]) == (110, 0.25)
    assert totals["total_steps"] == len(document["steps"]) == 5
    other = json.loads((folder / "traj-1.json").read_text())
    assert "total_prompt_tokens" not in other["final_metrics"]
    assert "llm_call_count" not in other["steps"][1]


async def test_parquet_has_the_tokens_of_turns_whole(record: Recorded, tmp_path: Path) -> None:
    """A turn keeps what its prompt adds to the turn before; what nobody told is null."""
    name = await record.add("price", [{}])
    first = {"prompt_ids": [1, 2], "ids": [3], "logprobs": [-0.5], "texts": ["a"]}
    later = {"shared": 3, "prompt_ids": [4], "ids": [5, 6]}
    for second, more in ((0, {"tokens": first}), (1, {"tokens": later, "after": 0}), (2, {})):
        await record.store.add_seen_turn(name, turn(second, **more))
    await export_parquet(record.store, "job-1", tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "turns.parquet").to_pylist()
    assert [row["prompt_token_ids"] for row in rows] == [[1, 2], [1, 2, 3, 4], None]
    assert [row["token_ids"] for row in rows] == [[3], [5, 6], None]
    assert (rows[0]["logprobs"], rows[0]["token_texts"]) == ([-0.5], ["a"])

    await Upkeep(record.store).redact([name], ["text", "settings"])
    found = await record.store.load_trajectory(name, turns=True)
    assert [each.tokens is None for each in found.turns] == [False, False, True]
    await record.store.add_seen_turn(name, turn(3, text="Said.", tokens=first))
    await Upkeep(record.store).redact([name], ["text"])
    assert (await record.store.load_trajectory(name, turns=True)).turns[3].tokens is None


def written(folder: Path) -> dict[str, bytes]:
    """Every file beside the store, by its name."""
    files = [path for path in folder.rglob("*") if path.is_file() and "store" not in path.name]
    return {str(path): path.read_bytes() for path in files}


async def test_what_was_removed_is_in_no_later_file(told: Recorded, tmp_path: Path) -> None:
    """The marker stands in its place."""
    await Upkeep(told.store).redact(["traj-0", "traj-1"], ["reasoning"])
    await export_jsonl(told.store, "job-1", tmp_path / "run.jsonl")
    await export_atif(told.store, "job-1", tmp_path / "atif")
    await export_parquet(told.store, "job-1", tmp_path / "parquet")
    files = written(tmp_path)
    assert len(files) >= 6
    assert not [name for name, data in files.items() if THOUGHT.encode() in data]
    (first, _) = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    assert first["turns"][0]["redactions"][0]["fields"] == ["reasoning"]
    document = json.loads((tmp_path / "atif" / "traj-0.json").read_text())
    assert document["steps"][1]["extra"]["turn"]["redactions"][0]["fields"] == ["reasoning"]
    row = pq.read_table(tmp_path / "parquet" / "turns.parquet").to_pylist()[0]
    assert json.loads(row["redactions_json"])[0]["fields"] == ["reasoning"]
