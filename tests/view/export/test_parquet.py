"""Parquet tables are read back by pyarrow, typed, whole, and in groups of a bounded size."""

import io
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from recording import START, Recorded, shot

from hud_mcp.errors import NotInstalled
from hud_mcp.plugins.view.export import export_parquet, libraries
from hud_mcp.plugins.view.export.columns import COLUMNS
from hud_mcp.plugins.view.export.tables import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

pytestmark = pytest.mark.anyio


def rows(path: Path) -> list[dict[str, Any]]:
    """What pyarrow reads from a file."""
    return pq.read_table(path).to_pylist()


async def test_each_trajectory_is_a_row(record: Recorded, tmp_path: Path) -> None:
    """With its task, prompt, answer, outcome and reward; a failure has no reward, not 0."""
    answer = {"type": "response", "text": "42"}
    wrong = {"type": "response", "text": "41"}
    steps = [
        {"actions": [{"type": "press", "keys": ["a"]}, wrong], "performed": 1, "error": "no a"},
        {"actions": [answer], "kind": "response"},
    ]
    await record.add("price", steps, logs=["one"])
    await record.add("broken", outcome=Outcome.ENVIRONMENT_FAILED, error="no browser")
    await record.add("running", outcome=None, prompt=None)
    await export_parquet(record.store, "job-1", tmp_path / "out")
    first, failed, running = rows(tmp_path / "out" / "trajectories.parquet")
    assert first["trajectory_id"] == "traj-0"
    assert (first["task_id"], first["agent"], first["answer"]) == ("price", "oracle", "42")
    assert (first["outcome"], first["reward"], first["step_count"]) == ("graded", 1.0, 2)
    assert (first["seed"], first["prompt"]) == (2**40, "What does the lamp cost?")
    assert json.loads(first["task_json"])["env"] == "shop"
    assert json.loads(first["receipt_json"])["outcome"] == "graded"
    assert json.loads(first["subscores_json"])[0]["name"] == "price"
    assert (first["started_at"], first["ended_at"]) == (START, START + timedelta(seconds=10))
    assert "one" in first["log"]
    assert (failed["outcome"], failed["reward"]) == ("environment_failed", None)
    assert failed["error"] == "no browser"
    unknown = ("outcome", "reward", "ended_at", "receipt_json", "answer", "prompt")
    assert [running[name] for name in unknown] == [None] * 6


async def test_each_step_is_a_row_with_its_picture(record: Recorded, tmp_path: Path) -> None:
    """Actions as a list, times with their zone, and pictures that Pillow opens."""
    click = {"type": "click", "point": {"x": 3.0, "y": 4.0}}
    call = {"tool": "add_note", "args": {"text": "hi"}}
    picture = shot("red", kind="JPEG", scale=2)
    await record.add(
        "price",
        [
            {"actions": [click, click], "performed": 1, "scale": 2.0, "see": picture},
            {"actions": [call], "kind": "tool", "observation_text": "noted", "info": {"n": 1}},
        ],
    )
    await export_parquet(record.store, "job-1", tmp_path / "out")
    first, second = rows(tmp_path / "out" / "steps.parquet")
    assert [a["type"] for a in first["actions"]] == ["click", "click"]
    assert [a["performed"] for a in first["actions"]] == [True, False]
    assert json.loads(first["actions"][0]["json"]) == click
    assert first["screenshot"]["bytes"] == picture.data
    assert Image.open(io.BytesIO(first["screenshot"]["bytes"])).size == (640, 400)
    assert first["screenshot"]["path"] == f"{picture.sha256}.jpg"
    assert (first["scale"], first["screenshot_scale"]) == (2.0, 2.0)
    assert first["delivered_image"]
    assert first["started_at"] == START
    assert second["actions"][0]["type"] == "add_note"
    assert (second["observation_text"], second["screenshot"]) == ("noted", None)
    assert json.loads(second["info_json"]) == {"n": 1}


async def test_the_schema_is_what_is_documented(record: Recorded, tmp_path: Path) -> None:
    """Every column is typed, says what it holds, and stands in the folder's README."""
    await record.add(steps=[{"see": shot()}])
    await export_parquet(record.store, "job-1", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for name, columns in COLUMNS.items():
        schema = pq.read_schema(tmp_path / "out" / f"{name}.parquet")
        assert schema.names == [column.name for column in columns]
        for field in schema:
            assert field.metadata[b"description"]
            assert f"| `{field.name}` |" in card
            assert field.type != pa.null()
    steps = pq.read_schema(tmp_path / "out" / "steps.parquet")
    assert steps.field("started_at").type == pa.timestamp("us", tz="UTC")
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    assert steps.field("screenshot").type == image
    features = json.loads(steps.metadata[b"huggingface"])["info"]["features"]
    assert features == {"screenshot": {"_type": "Image"}}


async def test_rows_are_written_in_groups_of_a_bounded_size(
    record: Recorded, tmp_path: Path
) -> None:
    """By the size of what they hold, and by their number."""
    noise = np.random.default_rng(0).integers(0, 256, (400, 400, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG", compress_level=0)
    large = Screenshot.from_bytes(out.getvalue())
    await record.add("large", [{"see": large}] * 40)
    await record.add("many", [{}] * (ROW_GROUP_ROWS + 1))
    await export_parquet(record.store, "job-1", tmp_path / "out")
    file = pq.ParquetFile(tmp_path / "out" / "steps.parquet")
    assert file.metadata.num_rows == 40 + ROW_GROUP_ROWS + 1
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert len(groups) == 3
    assert groups[0] * len(large.data) < ROW_GROUP_BYTES + len(large.data)
    assert max(groups) <= ROW_GROUP_ROWS


async def test_a_missing_picture_is_null_and_its_hash_stays(
    record: Recorded, tmp_path: Path
) -> None:
    """And it is counted once, however many steps had it."""
    gone = shot("red")
    await record.add(steps=[{"see": gone}, {"see": gone}])
    record.file_of(gone).unlink()
    summary = await export_parquet(record.store, "job-1", tmp_path / "out")
    for row in rows(tmp_path / "out" / "steps.parquet"):
        assert row["screenshot"] is None
        assert row["screenshot_sha256"] == gone.sha256
    assert summary.missing_pictures == 1
    manifest = json.loads((tmp_path / "out" / "export.json").read_text())
    assert manifest["missing_pictures"] == [gone.sha256]


async def test_without_pyarrow_the_error_says_what_to_install(
    record: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written."""
    await record.add()
    monkeypatch.delitem(vars(libraries), "parquet", raising=False)  # another test's
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(NotInstalled, match=r"hud-mcp\[parquet\]"):
        await export_parquet(record.store, "job-1", tmp_path / "out")
    assert not (tmp_path / "out").exists()
