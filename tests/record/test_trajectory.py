"""The record's values: what is absent until it is there, and how pictures are named."""

import io
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import records
from PIL import Image
from pydantic import ValidationError
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.transcript import transcript_text
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep, utc_now
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome, SubScore
from hud_mcp.values.observation import Screenshot

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def receipt(**fields: Any) -> Receipt:
    """An end."""
    usual = {"reward": 1.0, "ended_at": AT + timedelta(seconds=2), "reward_policy": "on_submit"}
    return records.receipt(**{"started_at": AT, **usual, **fields})


def trajectory(**fields: Any) -> Trajectory:
    """A record that begins."""
    task = Task(id="a", env="e", template="t")
    return Trajectory(id="traj-1", environment="e", task=task, started_at=AT, **fields)


def test_an_ungraded_trajectory_has_no_reward_and_no_outcome() -> None:
    """Absent is None; it is never 0."""
    begun = trajectory()
    assert (begun.outcome, begun.reward, begun.error) == (None, None, None)


@each_of("outcome", [o for o in Outcome if o is not Outcome.GRADED])
def test_an_ending_without_a_grade_has_its_outcome_and_no_reward(outcome: Outcome) -> None:
    """Every way to end is told apart from a reward of 0."""
    ended = trajectory(receipt=receipt(outcome=outcome, reward=None, error="why"))
    assert (ended.outcome, ended.reward, ended.error) == (outcome, None, "why")


def test_a_grade_s_reward_is_the_trajectory_s() -> None:
    """There is one reward, and it is the receipt's."""
    assert trajectory(receipt=receipt(reward=0.25)).reward == 0.25


def test_a_receipt_says_its_reward_even_where_there_is_none() -> None:
    """The field is required, so that nobody forgets it."""
    with pytest.raises(ValidationError, match="reward"):
        Receipt.model_validate(receipt().model_dump(exclude={"reward"}))


def test_a_receipt_round_trips_with_its_parts() -> None:
    """What is stored is what was graded."""
    parts = (SubScore(name="a", value=0.5, children=(SubScore(name="b", value=1),)),)
    stored = receipt(subscores=parts, content="Half.", info={"k": [1]})
    assert Receipt.model_validate_json(stored.model_dump_json()) == stored


def test_a_picture_is_filed_under_its_hash() -> None:
    """Two digits of it make the folder, so that none grows too large."""
    out = io.BytesIO()
    Image.new("RGB", (4, 3)).save(out, "JPEG")
    shot = Screenshot.from_bytes(out.getvalue(), scale=1.5)
    record = ScreenshotRecord.of(shot)
    assert record.name == f"{shot.sha256[:2]}/{shot.sha256}.jpg"
    assert (record.width_px, record.height_px, record.scale) == (4, 3, 1.5)
    assert ScreenshotRecord.of(shot.as_png()).name.endswith(".png")


def test_steps_keep_the_hud_names() -> None:
    """`trajectory` and the timestamps are what the HUD SDK calls them."""
    step = TrajectoryStep(index=0, kind="step", started_at=AT, ended_at=AT)
    assert step.start_timestamp == step.end_timestamp == "2026-01-02T03:04:05+00:00"
    assert trajectory(steps=(step,)).trajectory == [step]
    assert step.reward is None


@pytest.mark.parametrize("change", [{"index": -1}, {"performed": -1}, {"kind": "jump"}])
def test_a_step_that_cannot_have_been_is_refused(change: dict[str, Any]) -> None:
    """Steps count from 0, and are of the known kinds."""
    with pytest.raises(ValidationError):
        TrajectoryStep.model_validate(
            {"index": 0, "kind": "step", "started_at": AT, "ended_at": AT} | change
        )


def test_now_is_aware_and_in_utc() -> None:
    """No time of the record depends on where it was made."""
    assert utc_now().utcoffset() == timedelta(0)


def test_a_trajectory_in_short_says_the_same() -> None:
    """A list shows what the record holds."""
    short = TrajectorySummary(
        id="traj-1", environment="e", task=trajectory().task, started_at=AT, receipt=receipt()
    )
    assert (short.task_id, short.outcome, short.reward) == ("a", Outcome.GRADED, 1.0)


# How it is shown.


def test_outside_of_a_notebook_display_writes_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The same that `hud-mcp trace` prints; an empty trajectory is no exception."""
    trajectory().display()
    shown = capsys.readouterr().out
    assert shown.startswith("traj-1  unfinished\n")
    assert "no steps" in shown
    assert shown == transcript_text(trajectory()) + "\n"


def test_display_shows_a_long_text_whole_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Shortened otherwise."""
    long = trajectory(prompt="word " * 500 + "end")
    long.display()
    assert "end" not in capsys.readouterr().out
    long.display(full=True)
    assert "word end" in capsys.readouterr().out


NOTEBOOK = """
from datetime import UTC, datetime
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from hud_mcp import Task, Trajectory

shell = InteractiveShell.instance()
task = Task(id="<b>a</b>", env="e", template="t")
made = Trajectory(id="traj-1", environment="e", task=task, started_at=datetime.now(UTC))
with capture_output() as seen:
    made.display()
(output,) = seen.outputs
assert set(output.data) == {"text/html", "text/plain"}, output.data
assert "&lt;b&gt;a&lt;/b&gt;" in output.data["text/html"]
assert output.data["text/plain"].startswith("traj-1  unfinished")
assert seen.stdout == ""
data, _ = shell.display_formatter.format(made)
assert data["text/html"] == output.data["text/html"]
print("shown")
"""


def test_a_notebook_is_given_html_and_text(tmp_path: Path) -> None:
    """By `display`, and by a cell that ends with the trajectory."""
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(hud_mcp.__file__).parent.parent),
            "IPYTHONDIR": str(tmp_path),
        },
    )
    assert done.stdout.strip() == "shown", done.stdout + done.stderr
