"""The commands show what a model said and used, and remove it for good where that is asked for."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, add_run

from hud_mcp.cli import main
from hud_mcp.record.job import Job
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.model_turn import ModelTurn

THOUGHT = "the button \x1b[2Jis blue"


def step(index: int) -> TrajectoryStep:
    """A step of half a second."""
    begun = AT + timedelta(seconds=2 * index)
    ended = begun + timedelta(seconds=0.5)
    return TrajectoryStep(index=index, kind="step", started_at=begun, ended_at=ended)


def turn(second: float, **fields: Any) -> ModelTurn:
    """A reply that took a second."""
    begun = AT + timedelta(seconds=second)
    return ModelTurn.model_validate(
        {"started_at": begun, "ended_at": begun + timedelta(seconds=1), **fields}
    )


async def _record(path: Path) -> None:
    store = Store(path)
    tasks = [Task(id=name, env="shop", template="price") for name in ("lamp", "chair")]
    await store.add_job(Job(id="job-1", name="A job", agent="model"), tasks)
    for i, task in enumerate(tasks):
        await add_run(store, f"traj-{i}", task, None, job_id="job-1")
    said = turn(
        0,
        model="anthropic:model-a",
        text="I click it.",
        reasoning=THOUGHT,
        calls=[{"name": "step", "arguments": {"actions": []}}],
        usage={"input": 1200, "output": 30, "cached": 1000},
        cost_usd=0.0042,
        stop_reason="tool_use",
    )
    await store.add_turns("traj-0", [said], before_step=0)
    await store.add_step("traj-0", step(0))
    await store.add_turns("traj-0", [turn(3, text="Is it done?")], before_step=1)
    await store.add_step("traj-0", step(1))
    await store.add_turns("traj-0", [turn(6, error="429: slow down")])
    await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a job of two runs; a model's turns were reported of one."""
    path = tmp_path / "store.sqlite3"
    anyio.run(_record, path)
    return path


def run(path: Path, *arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, [*arguments, "--store", str(path)])


def test_trace_shows_each_turn_before_the_steps_that_it_led_to(path: Path) -> None:
    """What it thought, said, called and used; nothing of it is obeyed by the terminal."""
    said = run(path, "trace", "traj-0").output
    parts = [
        "model        3 turns; 1,200 tokens in (1,000 cached), 30 out; $0.0042 without 2 turns",
        "turn 1  model  at 0.0 s, took 1.0 s",
        "model        anthropic:model-a",
        "tokens       1,200 in, 1,000 cached, 30 out",
        "cost         $0.004200",
        "thought",
        r"the button \x1b[2Jis blue",
        "said",
        "I click it.",
        "called",
        'step {"actions": []}',
        "step 1  step",
        "turn 2  model",
        "Is it done?",
        "step 2  step",
        "turn 3  model",
        "429: slow down",
    ]
    at = [said.find(part) for part in parts]
    assert -1 not in at, (parts[at.index(-1)], said)
    assert at == sorted(at)
    assert "\x1b[2J" not in said
    record = json.loads(run(path, "trace", "traj-0", "--json").output)
    assert [turn["number"] for turn in record["turns"]] == [0, 1, 2]


def test_a_job_tells_tokens_cost_and_times_in_all_and_a_task(path: Path) -> None:
    """The model's time and the environment's are apart; JSON has them of each run too."""
    said = run(path, "jobs", "job-1").output
    assert "model        3 turns; 1,200 tokens in (1,000 cached), 30 out; $0.0042" in said
    assert "model 3.0 s, environment 1.0 s" in said
    assert "a task       1.5 turns; 600 tokens in, 15 out; $0.0021; model 1.5 s" in said
    told = json.loads(run(path, "jobs", "job-1", "--json").output)
    assert told["statistics"]["use"]["cost_usd"] == 0.0042
    uses = [task["use"] for task in told["tasks"]]
    assert (uses[0]["turns"], uses[1]) == (3, None)
    assert told["tasks"][0]["runs"][0]["use"]["model_s"] == 3.0


def test_what_is_removed_is_gone_from_every_look_at_it(path: Path) -> None:
    """A marker says what was removed, and when; figures, text and steps stay."""
    done = run(path, "redact", "job-1", "--fields", "reasoning,calls")
    assert done.exit_code == 0, done.output
    assert done.output == "Removed reasoning, calls of 1 of 3 turns; the others had none.\n"
    said = run(path, "trace", "traj-0", "--full").output
    assert "is blue" not in said
    assert "removed      reasoning, calls, on 20" in said
    assert "I click it." in said
    assert "1,200 tokens in" in said
    for file in path.parent.iterdir():
        assert not file.is_file() or b"is blue" not in file.read_bytes(), file.name
    again = run(path, "redact", "traj-0", "--fields", "reasoning")
    assert again.output == "Removed reasoning of 0 of 3 turns; the others had none.\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("job-1", "--fields", "thoughts"), 2, "'thoughts' is none of reasoning, text, calls"),
        (("job-1", "--fields", ","), 2, "nothing is none of reasoning"),
        (("job-1",), 2, "Missing option '--fields'"),
        (("job-9", "--fields", "text"), 1, "no job 'job-9'"),
        (("traj-1", "--fields", "text"), 1, "traj-1 has no model turns; nothing was removed"),
    ],
)
def test_what_cannot_be_removed_is_told(
    path: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    """Nothing was removed, and what to give is said."""
    done = run(path, "redact", *arguments)
    assert done.exit_code == status
    assert said in done.output
