"""What a store writes is its owner's alone, and what was there before is left as it was."""

import os
import stat
from pathlib import Path

import pytest
from records import begin, picture, receipt, step

from hud_mcp.plugins.view.export.files import MANIFEST, new_file, new_folder, write_whole
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.record.job import Job
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file in folders that are not there yet."""
    return f"sqlite:///{tmp_path}/made/for/store.sqlite3"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _every(folder: Path) -> dict[str, int]:
    """The modes of a folder and of everything below it."""
    found = {".": _mode(folder)}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root, name)
            found[str(path.relative_to(folder))] = _mode(path)
    return found


async def test_all_that_a_store_makes_is_its_owners_alone(store: Store, tmp_path: Path) -> None:
    """Folders, the database with its -wal and -shm, pictures, locks, and a report beside them."""
    job = Job(name="a")
    await store.add_job(job)
    await begin(store, "traj-1", job_id=job.id)
    shot = picture()
    await store.add_step("traj-1", step(0, screenshot=ScreenshotRecord.of(shot)), shot)
    await store.end_session("traj-1", receipt())
    await write_report(store, job.id, tmp_path / "made" / "reports" / "report.html")
    modes = _every(tmp_path / "made")
    names = {Path(name).name for name in modes}
    assert {"store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm", "report.html"} <= names
    folders = {name for name in modes if (tmp_path / "made" / name).is_dir()}
    assert {name: mode for name, mode in modes.items() if name in folders and mode != 0o700} == {}
    assert {n: m for n, m in modes.items() if n not in folders and m != 0o600} == {}


async def test_what_was_there_is_left_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder of the user's keeps its mode; a database that others may read is named."""
    folder, file = tmp_path / "shared", tmp_path / "shared" / "store.sqlite3"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    first = Store(str(file))
    await first.add_job(Job(name="a"))
    await first.close()
    assert (_mode(folder), _mode(file)) == (0o755, 0o600)
    assert "others on this machine" not in caplog.text
    file.chmod(0o644)
    second = Store(str(file))
    await second.list_jobs(1)
    await second.close()
    assert _mode(file) == 0o644
    assert f"others on this machine may read {file}" in caplog.text


def test_exports_are_their_owners_alone(tmp_path: Path) -> None:
    """A file, a folder with whatever is written into it, and what is written whole."""
    with new_file(tmp_path / "made" / "one.jsonl", force=False) as file:
        file.write_text("{}")
    write_whole(tmp_path / "made" / "two.html", b"<html>")
    with new_folder(tmp_path / "made" / "many", force=False) as folder:
        (folder / MANIFEST).write_text("{}")
        (folder / "inner").mkdir()
        (folder / "inner" / "deep.json").write_text("{}")
    assert set(_every(tmp_path / "made").values()) == {0o700, 0o600}
    assert _mode(tmp_path / "made" / "many" / "inner" / "deep.json") == 0o600
