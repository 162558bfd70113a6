"""A taskset is loaded by name or path, and a known name says how to get its set."""

from pathlib import Path

import orjson
import pytest

from hud_mcp import load_taskset
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.sets import find_taskset

pytestmark = pytest.mark.anyio

ROW = {"id": "one", "prompt": "Which?", "evaluate": [["response_is", "x"]]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_shipped_set_is_loaded_by_its_name() -> None:
    """As document 002 uses one: it acts like a list."""
    taskset = await load_taskset("quickstart")
    assert len(taskset) >= 37
    assert taskset[0].id == "count-r-strawberry"
    assert taskset.name == "quickstart"


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.json", "mine.py", "folder", "mine"])
async def test_a_file_or_a_folder_is_loaded_by_its_path(here: Path, name: str) -> None:
    """Of every kind; a name alone is a file of the working folder."""
    (here / "folder").mkdir()
    (here / "folder" / "rows.jsonl").write_bytes(orjson.dumps(ROW))
    (here / "mine.jsonl").write_bytes(orjson.dumps(ROW))
    (here / "mine.json").write_bytes(orjson.dumps([ROW]))
    (here / "mine.py").write_text("from hud_mcp import Task\nt = Task(id='one', prompt='Which?')")
    assert (await load_taskset(name)).ids == ("one",)
    assert (await load_taskset(here / name)).ids == ("one",)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("OSWorld-Ubuntu", "evaluation_examples of github.com/xlang-ai/OSWorld"),
        ("GAIA-validation", "gaia-benchmark/GAIA"),
        ("webvoyager-subset", "github.com/MinorJerry/WebVoyager"),
    ],
)
async def test_a_set_that_people_know_says_how_to_get_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str, published: str
) -> None:
    """Where it is published, and where to put it; a file of that name stands for it."""
    monkeypatch.setenv("HUD_MCP_DATASETS", "http://127.0.0.1:9")  # nobody is there
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    with pytest.raises(SourceNotFound) as caught:
        await load_taskset(name)
    said = str(caught.value)
    assert published in said
    assert "HUD_MCP_DATASETS: FOLDER/" in said
    (here / f"{name}.jsonl").write_bytes(orjson.dumps(ROW))
    assert (await load_taskset(name)).ids == ("one",)
    assert find_taskset(name) == Path(f"{name}.jsonl")


@pytest.mark.parametrize("name", ["quikstart", "Gaiaset", "", "folder", "missing.jsonl"])
async def test_any_other_name_lists_what_there_is(here: Path, name: str) -> None:
    """With the closest; a folder without tasks is none."""
    (here / "folder").mkdir()
    with pytest.raises(
        SourceNotFound, match=r"There is no taskset at .*(quickstart|`hud-mcp tasks`)"
    ):
        await load_taskset(name)


async def test_a_bad_row_is_named_by_file_line_and_field(here: Path) -> None:
    """As everywhere."""
    (here / "bad.jsonl").write_bytes(orjson.dumps(ROW) + b'\n{"prompt": "a", "setup": 5}')
    with pytest.raises(InvalidTask, match=r"^bad\.jsonl:2: setup: 5 is not a call"):
        await load_taskset("bad.jsonl")
