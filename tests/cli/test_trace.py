"""`hud-mcp trace` shows a trajectory in the terminal, and prints its record whole."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, record_run
from PIL import Image

from hud_mcp.cli import main
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import ScreenshotRecord, TrajectoryStep
from hud_mcp.task import Task
from hud_mcp.values.observation import Screenshot

TASK = Task(id="lamp", env="shop", template="price", args={"n": 1})
TEXT = "\n".join(f"line {i}" for i in range(30))


def picture() -> Screenshot:
    """A small PNG."""
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "navy").save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session that was graded and one that goes on."""
    path = tmp_path / "store.sqlite3"
    shot = picture()
    step = TrajectoryStep(
        index=0,
        kind="step",
        actions=({"type": "click", "ref": "e1"}, {"type": "type", "text": "\x1b[2Jlamp"}),
        performed=2,
        info={"large": 2**80},
        observation_text=TEXT,
        screenshot=ScreenshotRecord.of(shot),
        started_at=AT + timedelta(seconds=1),
        ended_at=AT + timedelta(seconds=1.5),
    )
    record_run(
        path, "traj-aa11", TASK, 0.5, steps=[(step, shot)], prompt="What does it cost? " * 90,
        logs=["Chromium started"],
    )  # fmt: skip
    record_run(path, "traj-ab22", TASK, None, started_at=AT + timedelta(hours=1))
    return path


def run(path: Path, *arguments: str, columns: int | None = 120) -> Result:
    """Run the command in this process."""
    env = {"COLUMNS": None if columns is None else str(columns)}
    return CliRunner(env=env).invoke(main, ["trace", *arguments, "--store", str(path)])


def test_a_trajectory_is_told_step_by_step(path: Path) -> None:
    """By how its id begins: the task, the prompt, what was done and seen, log and receipt."""
    result = run(path, "traj-aa")
    assert result.exit_code == 0, result.output
    shot = ScreenshotRecord.of(picture())
    told = [
        "traj-aa11  graded 0.5",
        "task         lamp",
        "prompt",
        "What does it cost?",
        "step 1  step  at 1.0 s, took 0.5 s",
        "  > click the element e1",
        "  > type “\\x1b[2Jlamp”",
        "    line 0",
        f"  picture  {path.parent}/screenshots/{shot.name} (40 x 30)",
        "log\n  03:04:05 Chromium started",
        "receipt",
        "  reward       0.5",
    ]
    places = [result.output.index(part) for part in told]
    assert places == sorted(places)
    assert "\x1b" not in result.output


def test_long_texts_are_shortened_unless_all_is_asked_for(path: Path) -> None:
    """And how to see them is said only where something is missing."""
    short, full = run(path, "traj-aa").output, run(path, "traj-aa", "--full").output
    assert "line 29" not in short
    assert "Some texts are shortened; --full shows them whole." in short
    assert "line 29" in full
    assert full.count("What does it cost?") == 90
    assert "--full" not in full
    assert "--full" not in run(path, "traj-ab").output


def test_what_is_copied_from_a_narrow_terminal_stays_whole(path: Path) -> None:
    """The terminal folds lines, not this program: a path can be selected and opened."""
    shot = ScreenshotRecord.of(picture())
    assert f"{path.parent}/screenshots/{shot.name}" in run(path, "traj-aa", columns=30).output


def test_json_is_the_whole_record(path: Path) -> None:
    """It is read back as the trajectory that it was, whatever numbers are in it."""
    (line,) = run(path, "traj-aa11", "--json").output.splitlines()
    read = Trajectory.model_validate_json(line)
    assert read.task == TASK
    assert (read.reward, len(read.trajectory), read.logs) == (0.5, 1, "03:04:05 Chromium started")
    assert read.steps[0].observation_text == TEXT


def test_a_trajectory_that_goes_on_is_shown_as_far_as_it_is(path: Path) -> None:
    """Nothing of it is made up."""
    shown = run(path, "traj-ab").output
    assert shown.startswith("traj-ab22  unfinished\n")
    assert "no steps" in shown
    assert "receipt" not in shown


def test_without_an_id_the_sessions_without_a_job_are_listed(path: Path, tmp_path: Path) -> None:
    """The newest first: nothing else says their ids."""
    rows = [line.split() for line in run(path).output.splitlines()]
    assert rows[1] == ["traj-ab22", "lamp", "unfinished", "0", "2026-01-02", "04:04"]
    assert rows[2] == ["traj-aa11", "lamp", "graded", "0.500", "1", "2026-01-02", "03:04"]
    none = run(tmp_path / "none.sqlite3")
    assert (none.exit_code, none.stdout) == (1, "")
    assert f"Did you mean '{path}'?" in none.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["traj-aa12"], 1, "The store has no trajectory 'traj-aa12'. Did you mean 'traj-aa11'?"),
        (["traj-a"], 1, "'traj-a' begins the ids of 2 trajectories: traj-ab22, traj-aa11."),
        (["zzz"], 1, "The store has no trajectory 'zzz'. `hud-mcp jobs ID` lists those of a job."),
        (["--json"], 2, "--json prints one record; give a trajectory's id."),
    ],
)
def test_a_mistake_is_said_on_stderr_with_a_status(
    path: Path, arguments: list[str], status: int, said: str
) -> None:
    """It names what is close, and what to do next."""
    result = run(path, *arguments)
    assert result.exit_code == status
    assert said in result.stderr
    assert result.stdout == ""


def test_the_command_says_what_it_does() -> None:
    """`--help` names the argument and every option."""
    shown = CliRunner().invoke(main, ["trace", "--help"]).output
    for word in ("[TRAJECTORY]", "--full", "--json", "--store", "Show a TRAJECTORY"):
        assert word in shown
