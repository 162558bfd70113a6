"""ATIF v1.7 documents: valid by Harbor's schema, linked, and without any answer key."""

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from recording import KEY, PRINCIPAL, Recorded, shot

from hud_mcp.plugins.view.export import export_atif
from hud_mcp.values.grade import Outcome, SubScore

pytestmark = pytest.mark.anyio

SCHEMA = Path(__file__).parents[2] / "data" / "atif-v1.7.schema.json"
AGENT_ONLY = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}


@cache
def validator() -> Draft202012Validator:
    """Checks documents against the schema of Harbor's models."""
    return Draft202012Validator(json.loads(SCHEMA.read_text()))


def check(document: dict[str, Any], folder: Path) -> None:
    """What Harbor's validator checks: the schema, and the rules that no schema can say."""
    assert [error.message for error in validator().iter_errors(document)] == []
    assert document["schema_version"] == "ATIF-v1.7"
    for number, step in enumerate(document["steps"], 1):
        assert step["step_id"] == number
        datetime.fromisoformat(step["timestamp"])
        assert step["source"] == "agent" or not AGENT_ONLY & set(step)
        calls = [call["tool_call_id"] for call in step.get("tool_calls", ())]
        for result in step.get("observation", {"results": []})["results"]:
            assert result["source_call_id"] in calls
            content = result["content"]
            for part in content if isinstance(content, list) else ():
                assert set(part) == {"type", "text" if part["type"] == "text" else "source"}
                if part["type"] == "image":
                    assert (folder / part["source"]["path"]).is_file()


async def export(record: Recorded, folder: Path, number: int = 0) -> dict[str, Any]:
    """Export the job, check the document of one trajectory, and return it."""
    await export_atif(record.store, "job-1", folder)
    document = json.loads((folder / f"traj-{number}.json").read_text(encoding="utf-8"))
    check(document, folder)
    return document


async def test_a_trajectory_is_a_valid_document(record: Recorded, tmp_path: Path) -> None:
    """The prompt, then each call with what answered it, then the result as metrics."""
    click = {"type": "click", "point": {"x": 3.0, "y": 4.0}, "reasoning": "It says Buy."}
    before, after = shot("red"), shot("blue", kind="JPEG", scale=2)
    await record.add(
        "price",
        [
            {"see": before, "kind": "screenshot", "look": {"text": False}},
            {"actions": [click], "see": after, "observation_text": "a cart", "reward": 0.5},
            {"actions": [{"type": "press", "keys": ["a"]}], "kind": "act", "error": "no a"},
            {"actions": [{"tool": "add_note", "args": {"text": "hi"}}], "kind": "tool"},
            {"actions": [{"type": "response", "text": "42"}], "kind": "response"},
        ],
        subscores=(SubScore(name="all", value=1, children=(SubScore(name="price", value=1),)),),
    )
    folder = tmp_path / "out"
    document = await export(record, folder)
    assert document["trajectory_id"] == "traj-0"
    assert document["agent"] == {"name": "oracle", "version": "0.1.0"}
    prompt, *steps = document["steps"]
    assert (prompt["source"], prompt["message"]) == ("user", "What does the lamp cost?")
    calls = [(s["tool_calls"][0]["function_name"], s["tool_calls"][0]["arguments"]) for s in steps]
    assert calls == [
        ("screenshot", {}),
        ("step", {"actions": [{"type": "click", "point": {"x": 3.0, "y": 4.0}}]}),
        ("act", {"type": "press", "keys": ["a"]}),
        ("add_note", {"text": "hi"}),
        ("response", {"answer": "42"}),
    ]
    said = [s["tool_calls"][0]["extra"]["words"] for s in steps]
    assert said[1:3] + said[4:] == ["click at 3, 4", "press a", "answer “42”"]
    results = [s["observation"]["results"][0] for s in steps]
    text, image = results[1]["content"]
    assert text == {"type": "text", "text": "a cart"}
    assert image["source"]["media_type"] == "image/jpeg"
    assert (folder / image["source"]["path"]).read_bytes() == after.data
    assert results[1]["extra"]["image_shown_to_agent"]
    assert steps[1]["reasoning_content"] == "It says Buy."
    assert steps[1]["metrics"] == {"extra": {"reward": 0.5}}
    assert (results[2]["content"], results[2]["extra"]["is_error"]) == ("no a", True)
    final = document["final_metrics"]
    assert final["total_steps"] == 6
    assert (final["extra"]["outcome"], final["extra"]["reward"]) == ("graded", 1.0)
    assert final["extra"]["subscores"][0]["children"][0]["name"] == "price"


@pytest.mark.parametrize("outcome", [*Outcome, None])
async def test_no_document_has_the_answer_key(
    record: Recorded, tmp_path: Path, outcome: Outcome | None
) -> None:
    """It is in the arguments, metadata, description, validation, info, log, sentence and error."""
    await record.add(
        "price",
        [{"see": shot(), "info": {"expected": KEY}}, {"kind": "response", "info": {KEY: 1}}],
        logs=[f"expected {KEY}"],
        outcome=outcome,
        error=f"{KEY} is not a number",
    )
    document = await export(record, tmp_path / "out")
    written = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert KEY.encode() not in written
    assert PRINCIPAL.encode() not in written
    reward = document["final_metrics"]["extra"]["reward"]
    assert reward == (1.0 if outcome is Outcome.GRADED else None)


@pytest.mark.parametrize("prompt", [None, "What?"])
async def test_a_session_that_goes_on_is_a_valid_document(
    record: Recorded, tmp_path: Path, prompt: str | None
) -> None:
    """Also one that has no prompt yet; its result is unknown."""
    await record.add("price", prompt=prompt, outcome=None)
    document = await export(record, tmp_path / "out")
    (first,) = document["steps"]
    assert first["source"] == ("user" if prompt else "system")
    assert document["final_metrics"]["extra"]["outcome"] is None
    assert document["final_metrics"]["extra"]["duration_s"] is None


async def test_a_missing_picture_is_named_and_the_text_stays(
    record: Recorded, tmp_path: Path
) -> None:
    """Harbor's validator refuses a path that leads nowhere."""
    gone = shot("red")
    await record.add("price", [{"see": gone, "observation_text": "a page"}])
    record.file_of(gone).unlink()
    document = await export(record, tmp_path / "out")
    (result,) = document["steps"][1]["observation"]["results"]
    assert result["content"] == "a page"
    assert result["extra"]["image_missing"] == gone.sha256


async def test_the_agent_is_named_as_the_job_names_it(record: Recorded, tmp_path: Path) -> None:
    """With its version and model where the job's metadata has them."""
    metadata = {"agent_version": 3, "model": "some-model"}
    fields = {**record.job.model_dump(), "agent": "mine", "metadata": metadata}
    record.job = type(record.job).model_validate(fields)
    await record.add("price")
    await record.add("price", job=False)
    document = await export(record, tmp_path / "out")
    agent = {"name": "mine", "version": "3", "model_name": "some-model"}
    assert document["agent"] == agent
    await export_atif(record.store, "traj-1", tmp_path / "one")
    alone = json.loads((tmp_path / "one" / "traj-1.json").read_text())
    check(alone, tmp_path / "one")
    assert alone["agent"] == {"name": "unknown", "version": "unknown"}
