"""Exports appear whole or not at all, replace nothing unasked, and stop at no damaged row."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from recording import Recorded, shot

from hud_mcp.errors import OutputExists, SourceNotFound, StoreFailed
from hud_mcp.plugins.view.export import (
    ExportSummary,
    export_atif,
    export_gif,
    export_html,
    export_jsonl,
    export_parquet,
)

pytestmark = pytest.mark.anyio

Export = Callable[..., Awaitable[ExportSummary]]
EXPORTS: dict[str, Export] = {
    "jsonl": export_jsonl,
    "inline": partial(export_jsonl, inline_images=True),
    "parquet": export_parquet,
    "atif": export_atif,
    "html": export_html,
    "gif": export_gif,
}
FOLDERS = ("parquet", "atif", "gif")
every_export = pytest.mark.parametrize("name", EXPORTS)


def listing(folder: Path) -> dict[str, bytes]:
    """Every file under a folder and its content, but for the store's."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "store" not in path.relative_to(folder).parts
    }


@every_export
async def test_what_is_there_is_not_replaced_unasked(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """With `force` it is, by what the record has then, and nothing else is left beside it."""
    await record.add("price-lamp", [{"see": shot("red")}])
    export, out = EXPORTS[name], tmp_path / "out"
    await export(record.store, "job-1", out)
    before = listing(tmp_path)
    with pytest.raises(OutputExists, match="--force"):
        await export(record.store, "job-1", out)
    assert listing(tmp_path) == before
    await record.add("price-mug", [{"see": shot("blue")}])
    summary = await export(record.store, "job-1", out, force=True)
    assert summary.trajectories == 2
    after = listing(tmp_path)
    assert after != before
    assert not [path for path in after if ".partial" in path]


@pytest.mark.parametrize("name", FOLDERS)
async def test_a_folder_of_somebody_is_never_replaced(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """With `force` neither; an empty one is taken."""
    await record.add()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    with pytest.raises(OutputExists, match="is not an export"):
        await EXPORTS[name](record.store, "job-1", mine, force=True)
    assert listing(tmp_path) == {"mine/thesis.txt": b"all of it"}
    (mine / "thesis.txt").unlink()
    await EXPORTS[name](record.store, "job-1", mine)
    assert (mine / "export.json").is_file()


@every_export
async def test_a_file_is_not_put_in_the_place_of_a_folder(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """Nor a folder in the place of a file."""
    await record.add()
    out = tmp_path / "out"
    if name in FOLDERS:
        out.write_text("mine")
    else:
        out.mkdir()
    with pytest.raises(OutputExists, match="Name another place with --out"):
        await EXPORTS[name](record.store, "job-1", out, force=True)
    assert out.is_dir() == (name not in FOLDERS)


@pytest.mark.sampled(2)
@every_export
async def test_a_cancelled_export_leaves_nothing(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """No file, no folder, no picture, wherever it was; a former export is as it was."""
    for number in range(3):
        await record.add(f"task-{number}", [{"see": shot("red")}, {"see": shot("blue")}])
    out = tmp_path / "out"
    for _ in range(2):
        before = listing(tmp_path)
        with anyio.CancelScope() as scope:

            def stop(done: int, _total: int, scope: anyio.CancelScope = scope) -> None:
                if done == 2:
                    scope.cancel()

            await EXPORTS[name](record.store, "job-1", out, force=True, on_progress=stop)
        assert scope.cancelled_caught
        assert listing(tmp_path) == before
        assert out.exists() == bool(before)
        await EXPORTS[name](record.store, "job-1", out, force=True)


@every_export
async def test_a_place_that_cannot_be_written_is_an_error(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """The system's own, which the command puts into words; here a file is where a folder goes."""
    await record.add()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        await EXPORTS[name](record.store, "job-1", tmp_path / "file" / "out")
    assert listing(tmp_path) == {"file": b"mine"}


@every_export
async def test_progress_is_told_after_each_trajectory(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """With how many there are."""
    for _ in range(3):
        await record.add()
    told: list[Any] = []
    show = lambda *numbers: told.append(numbers)  # noqa: E731  # a callback
    await EXPORTS[name](record.store, "job-1", tmp_path / "out", on_progress=show)
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.sampled(6)
@every_export
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE steps SET row = '{' WHERE session_id = 'traj-1'", "step 0 of traj-1"),
        ("UPDATE steps SET row = '{}' WHERE session_id = 'traj-1'", "step 0 of traj-1"),
        ("UPDATE sessions SET task = '{\"id\": 3}' WHERE id = 'traj-1'", "traj-1"),
        ("UPDATE sessions SET receipt = '{\"reward\": 1}' WHERE id = 'traj-1'", "traj-1"),
    ],
)
async def test_a_damaged_row_costs_one_trajectory(
    record: Recorded, tmp_path: Path, name: str, statement: str, named: str
) -> None:
    """It is named and left out; the others are exported."""
    for number in range(3):
        await record.add(f"task-{number}", [{"see": shot()}])
    record.edit(statement)
    summary = await EXPORTS[name](record.store, "job-1", tmp_path / "out")
    assert summary.trajectories == 2
    (line,) = summary.damaged
    assert line.startswith("traj-1: The record is damaged")
    assert named in line
    assert "1 left out as damaged" in str(summary)
    with pytest.raises(StoreFailed, match="damaged"):
        await EXPORTS[name](record.store, "traj-1", tmp_path / "one")
    assert not (tmp_path / "one").exists()


@every_export
async def test_what_is_not_there_is_an_error_with_what_is_close(
    record: Recorded, tmp_path: Path, name: str
) -> None:
    """An unknown id, and a job that has not begun; nothing is written."""
    await record.store.add_job(record.job)
    record.count = 1
    with pytest.raises(SourceNotFound, match=r"no trajectories yet"):
        await EXPORTS[name](record.store, "job-1", tmp_path / "out")
    with pytest.raises(SourceNotFound, match=r"no job 'job-2'.*Did you mean 'job-1'"):
        await EXPORTS[name](record.store, "job-2", tmp_path / "out")
    assert listing(tmp_path) == {}
