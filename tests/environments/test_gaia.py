"""GAIA's rows are read from the user's own copy, their files lie ready, and its scorer grades."""

import hashlib
import shutil
from pathlib import Path

import anyio
import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet
from waiting import PATIENCE_S

from hud_mcp import GymMakeException, load_taskset
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.protocols import Conduct
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.sets.files import cache_folder, dataset_file
from hud_mcp.plugins.sets.gaia import PROTOCOL
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

ROWS = [
    {"task_id": "a1", "Question": "How many lamps are listed?", "Level": 1, "Final answer": "3",
     "file_name": "lamps und möbel.csv", "file_path": "", "Annotator Metadata": {}},
    {"task_id": "a2", "Question": "Which cities, in order?", "Level": "2",
     "Final answer": "Bern, Rome", "file_name": ""},
]  # fmt: skip
TEST_ROW = {"task_id": "t1", "Question": "Secret?", "Level": 3, "Final answer": "?"}
CONTENT = "lamp\nlamp\nlamp\n"


@pytest.fixture(autouse=True)
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's copy of the set, a cache and a store of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    folder = tmp_path / "sets" / "gaia" / "2023"
    for split, rows in (("validation", ROWS), ("test", [TEST_ROW])):
        (folder / split).mkdir(parents=True)
        (folder / split / "metadata.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (folder / "validation" / "lamps und möbel.csv").write_text(CONTENT)
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    monkeypatch.chdir(tmp_path)
    return folder


async def played(task: Task, command: str, answer: str) -> float:
    """The reward of a task after a command, whose output may stand in the answer."""
    with anyio.fail_after(120):
        env = await gym.make(task)
        try:
            seen = await env.step(
                [{"type": "custom", "action": "run", "args": {"command": command}}]
            )
            await env.step(
                [{"type": "response", "text": answer.format(seen=seen.observation.text)}]
            )
            return await env.evaluate()
        finally:
            await env.close()


async def test_rows_have_levels_splits_and_a_source() -> None:
    """A part is a level or a split; what has no published answer does not run, and says so."""
    tasks = await load_taskset("GAIA")
    assert tasks.ids == ("gaia-a1", "gaia-a2", "gaia-t1")
    assert tasks.splits == {"validation": 2, "test": 1}
    assert (await load_taskset("GAIA-level2")).ids == ("gaia-a2",)
    assert (await load_taskset("gaia-validation")).ids == ("gaia-a1", "gaia-a2")
    assert (await load_taskset("GAIA", split="test")).ids == ("gaia-t1",)
    assert all("gaia-benchmark/GAIA" in (task.source or "") for task in tasks)
    with pytest.raises(GymMakeException, match="its answer is not published"):
        await gym.make(tasks["gaia-t1"])


@pytest.mark.sandbox
async def test_a_file_lies_ready_in_the_shell_and_the_scorer_grades() -> None:
    """The prompt names its path; a name with spaces and letters beyond ASCII is no hindrance."""
    task = (await load_taskset("GAIA"))["gaia-a1"]
    assert "/workspace/files/lamps und möbel.csv" in (task.prompt or "")
    count = "wc -l < '/workspace/files/lamps und möbel.csv' > n; test $(cat n) = 3"
    assert await played(task, count, "3") == 1.0
    assert await played(task, count, "4") == 0.0


def test_a_picture_of_a_row_can_be_shown() -> None:
    """The environment has a tool that returns one, which a shell alone has not."""
    (env,) = load_environments(["gaia"])
    assert {"run_command", "view_picture"} <= set(env.tools)


@pytest.mark.long
@pytest.mark.sandbox
async def test_the_published_wording_has_its_own_answer() -> None:
    """What stands before FINAL ANSWER plays no part; the scorer's list rule holds."""
    task = PROTOCOL.published((await load_taskset("GAIA"))["gaia-a2"], Conduct())
    assert "FINAL ANSWER: [YOUR FINAL ANSWER]" in (task.prompt or "")
    assert (task.prompt or "").endswith("\n\nWhich cities, in order?")
    assert PROTOCOL.published(task, Conduct()) == task
    assert await played(task, "true", "I think of 2.\nFINAL ANSWER: bern,rome") == 1.0
    assert await played(task, "true", "FINAL ANSWER: rome, bern") == 0.0


@pytest.mark.sandbox
async def test_a_row_names_a_file_by_its_digest_alone(tmp_path: Path) -> None:
    """A file that nobody imported, or that was changed since, is not given away."""
    task = (await load_taskset("GAIA"))["gaia-a1"]
    digest = hashlib.sha256(CONTENT.encode()).hexdigest()
    assert task.setup[0].args == ("files/lamps und möbel.csv", digest)
    secret = tmp_path / "secret"
    secret.write_text("x")
    for wrong in ("../../secret", hashlib.sha256(b"x").hexdigest(), ""):
        with pytest.raises(SourceNotFound):
            dataset_file(wrong)
    kept = dataset_file(digest)
    kept.write_text("changed")
    with pytest.raises(SourceNotFound, match="import the set here again"):
        dataset_file(digest)
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(GymMakeException, match="import the set here again"),
    ):
        await gym.make(task)
    shutil.rmtree(cache_folder() / "files")


async def test_a_table_of_parquet_stands_for_lines(copy: Path) -> None:
    """As newer versions of the set have it."""
    (copy / "validation" / "metadata.jsonl").unlink()
    plain = [{name: row.get(name, "") for name in ("task_id", "Question", "Final answer",
              "file_name")} | {"Level": str(row["Level"])} for row in ROWS]  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(plain), copy / "validation" / "metadata.parquet")
    assert (await load_taskset("GAIA-validation")).ids == ("gaia-a1", "gaia-a2")


async def test_what_is_no_row_is_named(copy: Path) -> None:
    """By its file and its place."""
    (copy / "validation" / "metadata.jsonl").write_text('{"task_id": "x"}')
    with pytest.raises(InvalidTask, match=r"2023/validation/metadata.jsonl:1"):
        await load_taskset("GAIA")
    shutil.rmtree(copy)
    with pytest.raises(SourceNotFound, match=r"has no 2023/validation/metadata\.jsonl"):
        await load_taskset("GAIA")
