"""Files of public sets come from their place once, whole, and never another one in silence."""

import hashlib
from dataclasses import replace
from pathlib import Path

import anyio
import orjson
import pytest
from dataset_place import DatasetPlace, dataset_place
from waiting import PATIENCE_S

from hud_mcp import load_taskset
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.sets import download, webvoyager
from hud_mcp.plugins.sets.download import Download

pytestmark = pytest.mark.anyio

TASKS = "webvoyager/data/WebVoyager_data.jsonl"
ANSWERS = "webvoyager/data/reference_answer.json"
ROWS = (
    b'{"web_name": "Shop", "id": "Shop--0", "ques": "What does the lamp cost?", '
    b'"web": "https://shop.example/"}\n'
    b'{"web_name": "My Maps", "id": "My Maps--3", "ques": "How far is it?", '
    b'"web": "https://maps.example/x?a=1"}'
)
REFERENCES = orjson.dumps(
    {"Shop": {"notice": "", "answers": [{"id": 0, "type": "golden", "ans": "42.50"}]}}
)


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a working folder of the test's own, and digests of the test's own files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    digests = {
        "data/WebVoyager_data.jsonl": hashlib.sha256(ROWS).hexdigest(),
        "data/reference_answer.json": hashlib.sha256(REFERENCES).hexdigest(),
    }
    place = replace(webvoyager.SET.published, sha256=digests)
    monkeypatch.setattr(webvoyager.SET, "published", place)
    return tmp_path


def filled(place: DatasetPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the set into the place, and name the place."""
    place.files = {TASKS: ROWS, ANSWERS: REFERENCES}
    monkeypatch.setenv("HUD_MCP_DATASETS", place.url)


async def test_a_set_is_fetched_once_and_then_read_from_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second load asks nobody, and a refresh asks for each file again."""
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            filled(place, monkeypatch)
            first = await load_taskset("WebVoyager")
            assert first.ids == ("Shop--0", "My_Maps--3")
            assert sorted(place.asked) == [(TASKS, 0), (ANSWERS, 0)]
            assert (await load_taskset("webvoyager-mymaps")).ids == ("My_Maps--3",)
            assert len(place.asked) == 2
            assert (await load_taskset("WebVoyager", refresh=True)).digest == first.digest
            assert len(place.asked) == 4
        assert (await load_taskset("WebVoyager")).digest == first.digest


async def test_what_broke_off_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a call, and in the next one: what came is asked for no more."""
    lines: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            filled(place, monkeypatch)
            place.breaks = [20, 30]
            assert len(await load_taskset("WebVoyager", report=lines.append)) == 2
            begins = [begin for path, begin in place.asked if path == ANSWERS]
            assert begins == [0, 20, 50]
            assert any("of" in line and "bytes" in line for line in lines)


async def test_a_call_that_ended_is_gone_on_with_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A place that hangs up each time is an error that names the file; its bytes stay."""
    monkeypatch.setattr(download, "_TRIES", 1)
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            filled(place, monkeypatch)
            place.breaks = [25]
            with pytest.raises(SourceNotFound, match="cannot be fetched"):
                await load_taskset("WebVoyager")
            assert len(await load_taskset("WebVoyager")) == 2
            assert [begin for path, begin in place.asked if path == ANSWERS] == [0, 25]


async def test_a_file_that_changed_upstream_is_named_and_not_swapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against the digest that is known; `refresh` takes the new one, and says so."""
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            filled(place, monkeypatch)
            place.files[TASKS] = ROWS.replace(b"lamp", b"sofa")
            with pytest.raises(SourceNotFound, match=r"WebVoyager_data.jsonl has changed.*refresh"):
                await load_taskset("WebVoyager")
            told: list[str] = []
            found = await load_taskset("WebVoyager", refresh=True, report=told.append)
            assert "sofa" in (found[0].prompt or "")
            assert any("has changed" in line for line in told)


async def test_a_set_of_tasks_is_loaded_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change there is named too, though no digest of it was known before."""
    row = {"id": "one", "prompt": "Which?", "evaluate": [["response_is", "x"]]}
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            place.files["sets/mine.jsonl"] = orjson.dumps(row)
            address = f"{place.url}/sets/mine.jsonl"
            assert (await load_taskset(address)).ids == ("one",)
            place.files["sets/mine.jsonl"] = orjson.dumps({**row, "id": "two"})
            assert (await load_taskset(address)).ids == ("one",)
            told: list[str] = []
            assert (await load_taskset(address, refresh=True, report=told.append)).ids == ("two",)
            with pytest.raises(SourceNotFound, match=r"There is no .*other\.jsonl"):
                await load_taskset(f"{place.url}/sets/other.jsonl")


async def test_a_place_that_refuses_says_which_token_it_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the token is sent once it is there, and stands in no error."""
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            filled(place, monkeypatch)
            place.token = "s3cret"
            with pytest.raises(SourceNotFound, match=r"status 401.*HUD_MCP_DATASETS_TOKEN"):
                await load_taskset("WebVoyager")
            monkeypatch.setenv("HUD_MCP_DATASETS_TOKEN", "wr0ng")
            with pytest.raises(SourceNotFound) as caught:
                await load_taskset("WebVoyager")
            assert "wr0ng" not in str(caught.value)
            monkeypatch.setenv("HUD_MCP_DATASETS_TOKEN", "s3cret")
            assert len(await load_taskset("WebVoyager")) == 2


async def test_without_a_network_one_error_says_where_to_put_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names the file, where it comes from, and the folder that is read in its place."""
    monkeypatch.setenv("HUD_MCP_DATASETS", "http://127.0.0.1:9")
    with anyio.fail_after(PATIENCE_S), pytest.raises(SourceNotFound) as caught:
        await load_taskset("WebVoyager")
    said = str(caught.value)
    assert "WebVoyager needs data/" in said
    assert "github.com/MinorJerry/WebVoyager" in said
    assert "HUD_MCP_DATASETS: FOLDER/webvoyager/data/" in said


async def test_a_folder_stands_for_the_published_place(
    apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are found as they are published or side by side, and a change in one is told."""
    flat = apart / "sets" / "webvoyager"
    flat.mkdir(parents=True)
    (flat / "WebVoyager_data.jsonl").write_bytes(ROWS.replace(b"lamp", b"sofa"))
    (flat / "reference_answer.json").write_bytes(REFERENCES)
    monkeypatch.setenv("HUD_MCP_DATASETS", str(apart / "sets"))
    told: list[str] = []
    found = await load_taskset("WebVoyager", report=told.append)
    assert "sofa" in (found[0].prompt or "")
    assert ["is not what was published" in line for line in told] == [True]
    monkeypatch.setenv("HUD_MCP_DATASETS", str(apart / "nowhere"))
    with pytest.raises(SourceNotFound, match=r"no folder .*nowhere.*HUD_MCP_DATASETS"):
        await load_taskset("WebVoyager")


async def test_a_part_of_another_version_is_not_gone_on_with(apart: Path) -> None:
    """What came of an older file is dropped, so that no file is half of each."""
    with anyio.fail_after(PATIENCE_S):
        async with dataset_place() as place:
            place.files["a"] = b"old " * 100
            place.breaks = [40]
            work = Download(f"{place.url}/a", apart / "a")
            work.part.write_bytes(b"x" * 40)
            work.part.with_name("a.part.json").write_text('{"etag": "\\"other\\""}')
            place.breaks = []
            digest = await anyio.to_thread.run_sync(work.fetch)
            assert (apart / "a").read_bytes() == b"old " * 100
            assert digest == hashlib.sha256(b"old " * 100).hexdigest()
            assert not work.part.exists()
