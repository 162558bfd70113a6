"""JSON Lines hold everything that is recorded, a line a trajectory."""

import base64
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from recording import KEY, Recorded, shot

from hud_mcp.plugins.view.export import export_jsonl
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, by the standard library."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def folder_of(path: Path) -> Path:
    """Where the pictures of a file are."""
    return path.with_name(f"{path.stem}.screenshots")


def written(folder: Path) -> bytes:
    """All that was written beside the store and the secret."""
    files = [folder / "run.jsonl", *folder_of(folder / "run.jsonl").rglob("*.*")]
    return b"".join(path.read_bytes() for path in files)


async def test_a_line_holds_the_whole_record(record: Recorded, tmp_path: Path) -> None:
    """Task, prompt, context, seed, steps, log, receipt and job: as the store gives them."""
    first, second = shot("red"), shot("blue", kind="JPEG", scale=2)
    click = {"type": "click", "point": {"x": 3.0, "y": 4.0}, "reasoning": "It says Buy."}
    await record.add(
        "price",
        [
            {"see": first, "observation_text": "a page", "kind": "screenshot"},
            {"actions": [click], "see": second, "scale": 2.0, "info": {"n": 1}, "error": "no"},
            {"actions": [{"type": "response", "text": "42"}], "kind": "response"},
        ],
        logs=["one", "two"],
    )
    await record.add("other", outcome=Outcome.GRADING_FAILED, error=f"{KEY} has no price")
    out = tmp_path / "out" / "run.jsonl"
    summary = await export_jsonl(record.store, "job-1", out)

    row, other = lines(out)
    whole = await record.store.load_trajectory("traj-0")
    assert row["task"] == whole.task.model_dump(mode="json")
    assert row["receipt"] == whole.receipt.model_dump(mode="json") if whole.receipt else False
    assert (row["prompt"], row["seed"], row["logs"]) == (whole.prompt, 2**40, whole.logs)
    assert row["job"]["name"] == "A job"
    assert (row["outcome"], row["reward"], row["error"]) == ("graded", 1.0, None)
    assert (other["outcome"], other["reward"]) == ("grading_failed", None)
    assert other["error"] == f"{KEY} has no price"
    for made, step in zip(row["steps"], whole.steps, strict=True):
        picture = made["screenshot"]
        if picture is not None:
            data = (out.parent / picture.pop("path")).read_bytes()
            assert hashlib.sha256(data).hexdigest() == picture["sha256"]
            kinds = {"png": "image/png", "jpg": "image/jpeg"}
            assert picture.pop("mime_type") == kinds[picture["extension"]]
        again = TrajectoryStep.model_validate({**made, "observation_url": step.observation_url})
        assert again == step
    assert (summary.trajectories, summary.steps, summary.pictures) == (2, 3, 2)
    assert (summary.missing_pictures, summary.running, summary.damaged) == (0, 0, ())


async def test_a_picture_that_is_seen_twice_is_one_file(record: Recorded, tmp_path: Path) -> None:
    """Both steps name it."""
    await record.add(steps=[{"see": shot("red")}, {"see": shot("red")}])
    out = tmp_path / "run.jsonl"
    await export_jsonl(record.store, "job-1", out)
    (row,) = lines(out)
    paths = [step["screenshot"]["path"] for step in row["steps"]]
    assert paths[0] == paths[1]
    assert len(list(folder_of(out).rglob("*.png"))) == 1


async def test_pictures_can_be_in_the_lines(record: Recorded, tmp_path: Path) -> None:
    """As base64, and no folder is made."""
    picture = shot("red")
    await record.add(steps=[{"see": picture}])
    out = tmp_path / "run.jsonl"
    await export_jsonl(record.store, "job-1", out, inline_images=True)
    (row,) = lines(out)
    assert base64.b64decode(row["steps"][0]["screenshot"]["data"]) == picture.data
    assert not folder_of(out).exists()


@pytest.mark.parametrize("inline", [False, True])
async def test_a_missing_picture_is_absent_and_counted(
    record: Recorded, tmp_path: Path, *, inline: bool
) -> None:
    """Gone, cut short, or of a name that leads elsewhere: the step stays, without it."""
    secret = b"of another file"
    gone, short, good, moved = shot("red"), shot("blue"), shot("green"), shot("black")
    await record.add(steps=[{"see": s} for s in (gone, short, good, moved)])
    record.file_of(gone).unlink()
    record.file_of(short).write_bytes(short.data[:-9])
    (tmp_path / "secret.png").write_bytes(secret)
    statement = "UPDATE steps SET row = replace(row, ?, ?) WHERE step = 3"
    record.edit(statement, moved.sha256, "../../../secret")
    out = tmp_path / "run.jsonl"
    summary = await export_jsonl(record.store, "job-1", out, inline_images=inline)
    key = "data" if inline else "path"
    found = [step["screenshot"][key] is not None for step in lines(out)[0]["steps"]]
    assert found == [False, False, True, False]
    assert summary.missing_pictures == 3
    assert "3 pictures missing or damaged, exported as absent" in str(summary)
    assert secret not in written(tmp_path)
    assert base64.b64encode(secret) not in written(tmp_path)


async def test_what_json_has_no_word_for_is_still_json(record: Recorded, tmp_path: Path) -> None:
    """Line breaks, NaN and huge integers that a hand or a world put into a row."""
    text = "a\u2028b\nc\x85d\x00e"
    await record.add(steps=[{"info": {"big": 2**80}, "observation_text": text}, {"info": {}}])
    record.edit(
        'UPDATE steps SET row = replace(row, \'"index":1\', \'"index":1,"info":{"n":NaN}\')'
        " WHERE step = 1"
    )
    out = tmp_path / "run.jsonl"
    await export_jsonl(record.store, "job-1", out)
    data = out.read_bytes()
    assert data.count(b"\n") == 1
    row = json.loads(data, parse_constant=pytest.fail)
    assert row["steps"][0]["observation_text"] == text
    assert math.isclose(row["steps"][0]["info"]["big"], 2**80)
    assert row["steps"][1]["info"] == {"n": None}


async def test_a_trajectory_that_goes_on_is_exported_as_far_as_it_is(
    record: Recorded, tmp_path: Path
) -> None:
    """Without an outcome, a reward and a receipt; the summary says so."""
    await record.add(steps=[{"see": shot()}], outcome=None)
    await record.add(prompt=None, outcome=None)
    out = tmp_path / "run.jsonl"
    summary = await export_jsonl(record.store, "job-1", out)
    rows = lines(out)
    assert [row["outcome"] for row in rows] == [None, None]
    assert [row["receipt"] for row in rows] == [None, None]
    assert len(rows[0]["steps"]) == 1
    assert "2 not ended yet" in str(summary)


async def test_one_trajectory_can_be_exported_by_its_id(record: Recorded, tmp_path: Path) -> None:
    """With its job where it has one, and without where not."""
    await record.add("one")
    await record.add("two", job=False)
    for number, job in ((0, "job-1"), (1, None)):
        out = tmp_path / f"{number}.jsonl"
        await export_jsonl(record.store, f"traj-{number}", out)
        (row,) = lines(out)
        assert row["id"] == f"traj-{number}"
        assert (row["job"] or {"id": None})["id"] == job
