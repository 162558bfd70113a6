"""`hud-mcp export` writes what it says, says what it wrote, and asks before it replaces."""

import asyncio
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from click.testing import CliRunner, Result
from PIL import Image
from waiting import PATIENCE_S

from hud_mcp.cli import main
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import ScreenshotRecord, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.observation import Screenshot

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
PATHS = {
    "jsonl": "job-7.jsonl",
    "parquet": "job-7-parquet",
    "atif": "job-7-atif",
    "html": "job-7.html",
    "gif": "job-7-gif",
}


def _picture(color: str = "red", kind: str = "PNG") -> Screenshot:
    out = io.BytesIO()
    Image.new("RGB", (64, 40), color).save(out, kind)
    return Screenshot.from_bytes(out.getvalue())


async def _record(path: Path, count: int, *, see: Screenshot | None = None) -> None:
    store = Store(path)
    await store.add_job(Job(id="job-7", name="A job"))
    for number in range(count):
        trajectory = Trajectory(
            id=f"traj-{number}",
            job_id="job-7",
            environment="shop",
            task=Task(id=f"task-{number}", env="shop", template="find"),
            started_at=START,
        )
        await store.add_session(trajectory, secret_digest=f"{number:064}", principal=None)
        await store.set_prompt(trajectory.id, "What?")
        press = {"type": "press", "keys": ["a"]}
        shot = _picture("blue", "JPEG") if see and number == 1 else see
        step = TrajectoryStep(
            index=0,
            kind="act",
            actions=(press,),
            performed=1,
            screenshot=ScreenshotRecord.of(shot) if shot else None,
            started_at=START,
            ended_at=START,
        )
        await store.add_step(trajectory.id, step, shot)
    await store.close()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a job of two trajectories; the working folder is another one."""
    path = tmp_path / "store" / "store.sqlite3"
    asyncio.run(_record(path, 2))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HUD_MCP_STORE", str(path))
    return path


def run(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["export", *arguments])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", PATHS)
def test_each_format_has_a_place_of_its_own(store: Path, kind: str) -> None:
    """Named by the job, in the working folder; a beginning of the id is enough."""
    result = run("job", "--to", kind)
    assert result.exit_code == 0, result.output
    assert (
        result.stdout == f"{PATHS[kind]}: 2 trajectories, 2 steps, 0 pictures; 2 not ended yet.\n"
    )
    assert [p.name for p in Path().iterdir()] == [PATHS[kind]]


def test_a_trajectory_is_exported_by_its_id(store: Path) -> None:
    """As a film of its own, or any other format."""
    assert run("traj-1", "--to", "gif").exit_code == 0
    assert Path("traj-1.gif").is_file()
    assert run("traj-1", "--to", "jsonl", "--out", "x/y.jsonl").exit_code == 0
    assert json.loads(Path("x/y.jsonl").read_text())["id"] == "traj-1"


def test_what_is_there_is_replaced_with_force_alone(store: Path) -> None:
    """The error says so, and the exit status is 1."""
    assert run("job-7", "--to", "jsonl").exit_code == 0
    refused = run("job-7", "--to", "jsonl")
    assert refused.exit_code == 1
    assert "--force replaces it" in refused.output
    assert run("job-7", "--to", "jsonl", "--force").exit_code == 0


def test_a_damaged_trajectory_is_named_and_the_exit_status_is_1(store: Path) -> None:
    """The others are there."""
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE steps SET row = '{}' WHERE session_id = 'traj-0'")
    result = run("job-7", "--to", "jsonl")
    assert result.exit_code == 1
    assert "Left out: traj-0: The record is damaged: step 0 of traj-0" in result.stderr
    assert "1 trajectory, 1 step" in result.stdout
    assert len(Path("job-7.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["job-8", "--to", "jsonl"], "Did you mean 'job-7'?"),
        (["job-7", "--to", "jsonl", "--store", "nowhere.sqlite3"], "There is no store at "),
        (["job-7", "--to", "csv"], "'csv' is not one of"),
        (["job-7", "--to", "jsnl"], "Did you mean 'jsonl'?"),
        (["job-7", "--width", "200"], "--width is for --to gif."),
        (["job-7", "--to", "otel", "--out", "x"], "--to otel writes no file. Leave out --out."),
        (["job-7", "--to", "html", "--inline-images"], "--inline-images is for --to jsonl"),
        (["job-7", "--to", "jsonl", "--out", "/proc/x.jsonl"], "/proc/x.jsonl cannot be written"),
        (["job-7", "--to", "jsonl", "--out", "."], "--out .: name the file to write"),
        (["job-7", "--to", "gif", "--out", "/", "--force"], "--out /: name the file to"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    store: Path, arguments: list[str], said: str
) -> None:
    """And nothing is written, also no empty store."""
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert said in result.output
    assert "Traceback" not in result.output
    assert list(Path().iterdir()) == []


OTHER = """
from contextlib import asynccontextmanager

from hud_mcp import Export
from hud_mcp.plugins.view.export import Option
from hud_mcp.registry import Plugin


@asynccontextmanager
async def write(output, *, upper: bool = False):
    with output.path.open("w") as file:
        yield lambda run: file.write(run.task.id.upper() if upper else run.task.id)


WORDS = Export("words", "the ids.", "file", write, {"upper": Option("--upper", "in capitals.")})
PLUGIN = Plugin("other", exports={"words": "other_export:WORDS"})
"""


def test_another_distribution_adds_a_format(store: Path, tmp_path: Path) -> None:
    """It is listed, found by its name or a like one, and has its own options."""
    site = tmp_path / "site"
    info = site / "other_export-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-export\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hud_mcp]\nother = other_export:PLUGIN\n")
    (site / "other_export.py").write_text(OTHER)
    environment = {**os.environ, "HUD_MCP_STORE": str(store), "PYTHONPATH": str(site)}

    def export(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hud_mcp", "export", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    assert "gif|otel|words]" in export("--help").stdout
    assert "--upper" in export("--to", "words", "--help").stdout
    assert "Did you mean 'words'?" in export("job-7", "--to", "word").stderr
    done = export("job-7", "--to=words", "--upper")
    assert done.stdout.startswith("job-7.words: 2 trajectories"), done.stderr
    assert Path("job-7.words").read_text() == "TASK-0TASK-1"


@pytest.mark.sampled(1)
@pytest.mark.skipif(os.name == "nt", reason="not on this machine: it has no named pipes")
@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["atif", "jsonl", "parquet"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_takes_back_what_was_written(
    tmp_path: Path, number: signal.Signals, kind: str
) -> None:
    """Ctrl-C and a polite stop leave no half of an export.

    The picture of the second trajectory is a pipe: it says when the command reads it, and lets
    it go on when the signal was sent.
    """
    path = tmp_path / "store" / "store.sqlite3"
    await _record(path, 3, see=_picture())
    pipe = Store(path).screenshot_path(ScreenshotRecord.of(_picture("blue", "JPEG")))
    await anyio.to_thread.run_sync(_make_pipe, pipe)
    arguments = ["-m", "hud_mcp", "export", "job-7", "--to", kind, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "HUD_MCP_STORE": str(path)}
    with anyio.fail_after(PATIENCE_S):
        process = await anyio.open_process(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with process:
            opened = await anyio.to_thread.run_sync(
                partial(os.open, pipe, os.O_WRONLY), abandon_on_cancel=True
            )
            process.send_signal(number)
            os.close(opened)
            assert await process.wait() == 128 + number
    assert _names(tmp_path) == ["store"]


def _make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
