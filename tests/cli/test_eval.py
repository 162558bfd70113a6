"""`hud-mcp eval`: what is done is kept, however the run ends, and nothing is left running."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from waiting import PATIENCE_S, wait_until

from hud_mcp.cli import main
from hud_mcp.loading.contexts import sample_contexts
from hud_mcp.loading.source import load_environments

ROOT = Path(__file__).resolve().parents[2]


def evaluate(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start an evaluation in a folder."""
    command = [sys.executable, "-m", "hud_mcp", "eval", "rows.jsonl", *options]
    return subprocess.Popen(
        [*command, "--store", "s.sqlite3", "--report", "report.html"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A taskset of three rows of two environments."""
    rows = [
        {"id": "one", "env": "letter_count", "template": "count"},
        {"id": "two", "env": "letter_count", "template": "count", "args": {"word": "pepper"}},
        {"id": "shop", "env": "browser", "template": "shop_price"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.long
def test_a_filter_may_leave_an_environment_out(folder: Path) -> None:
    """The server loads what the chosen tasks need, and no other task of the file."""
    process = evaluate(folder, "--agent", "oracle", "--filter", "letter_count")
    printed = process.communicate(timeout=PATIENCE_S)[0]

    assert process.returncode == 0, printed
    assert "over 2 graded of 2 runs" in printed


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="not on this machine: signals of POSIX")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_done_is_shown_when_a_signal_ends_the_run(
    folder: Path, number: signal.Signals, status: int
) -> None:
    """The second command never ends; the first one's end is in the table and the report."""
    (folder / "agent.py").write_text(
        "import os, sys, time\n"
        "if os.environ['HUD_MCP_TASK'] == 'one': sys.exit(0)\n"
        "open('waiting', 'w').close()\n"
        "time.sleep(600)\n"
    )
    options = ("--filter", "letter_count", "--max-concurrent", "1")
    process = evaluate(folder, "--agent-command", f"{sys.executable} agent.py", *options)
    running = psutil.Process(process.pid)
    head = ""
    assert process.stdout is not None
    while "[1/2] one" not in head:  # printed before the second begins
        line = process.stdout.readline()
        assert line, head
        head += line
    wait_until((folder / "waiting").exists)
    children = running.children(recursive=True)
    process.send_signal(number)
    printed = head + process.communicate(timeout=PATIENCE_S)[0]

    assert process.returncode == status, printed
    assert "Interrupted: 1 of 2 runs had ended, 1 was under way" in printed
    assert (folder / "report.html").is_file()
    assert psutil.wait_procs(children, timeout=PATIENCE_S)[1] == []


GREETING = """\
from hud_mcp import Context, ContextFeature, ContextSpace, Environment, exact_match

SIZE = ContextFeature(name="size", default=1, lower=1, upper=9)
env = Environment("sizes", contexts=ContextSpace([SIZE]))

@env.template()
async def ask(where: Context):
    answer = yield f"Is {where['size']} more than 5?"
    yield exact_match(answer, "no" if where["size"] <= 5 else "unknown")

@ask.oracle
async def _(session):
    return "no"
"""
"""Its oracle only knows what it was trained on."""


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    """An environment of one feature, two rows of it, and a file of three contexts."""
    (tmp_path / "env.py").write_text(GREETING)
    rows = [{"id": name, "env": "sizes", "template": "ask"} for name in ("first", "second")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    contexts = [
        {"name": "small", "split": "train", "context": {"size": 2}},
        {"name": "medium", "split": "train", "context": {"size": 4}},
        {"name": "large", "split": "test", "context": {"size": 8}},
    ]
    (tmp_path / "sizes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in contexts))
    return tmp_path


@pytest.mark.long
def test_tasks_are_spread_over_contexts_and_reward_is_told_by_context(sizes: Path) -> None:
    """Every task under every context; the gap between what was trained and what was held out."""
    options = ("--contexts", "sizes.jsonl", "--context-selector", "every")
    process = evaluate(sizes, "--agent", "oracle", *options)
    printed = process.communicate(timeout=PATIENCE_S)[0]

    assert process.returncode == 0, printed
    assert "second@large" in printed
    assert "over 6 graded of 6 runs" in printed
    after = printed.partition("Reward by context")[2]
    assert "gap to test           +1.000" in after, after
    assert "size, trained on 2 to 4" in after
    assert "test 0.000" in after
    assert "of 2 clusters" in printed  # six rows are two tasks under three contexts
    assert "(no interval: one side has 2 tasks; 5 are needed)" in after
    assert "contexts that no run used" not in after


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True])
def test_rows_of_one_task_under_the_same_context_are_no_more_than_that_context(
    sizes: Path,
    kept: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Eight rows of one task, two contexts drawn for all of them: as sure as two, not as eight.

    Also where each row keeps a feature of its own beside what is drawn.
    """
    more = 'SIZE, ContextFeature(name="kept", default=0, lower=0, upper=9)'
    (sizes / "env.py").write_text(GREETING.replace("[SIZE]", f"[{more}]"))
    rows = [
        {"id": f"row-{i}", "env": "sizes", "template": "ask", "metadata": {"base_task": "ask"},
         **({"context": {"kept": i}} if kept else {})}
        for i in range(8)
    ]  # fmt: skip
    (sizes / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    process = evaluate(sizes, "--agent", "nop", "--contexts", "sample:2:size=1..9")
    printed = process.communicate(timeout=PATIENCE_S)[0]
    assert "mean reward  0.000 (95%: 0.000 to 0.842, of 2 clusters) over 8 graded" in printed
    page = (sizes / "report.html").read_text()
    found = re.search(r'"name":"mean reward",[^}]*"clusters":(\d+)', page)
    assert found is not None
    assert found[1] == "2"


@pytest.mark.long
def test_contexts_are_drawn_by_the_seed_of_the_job(sizes: Path) -> None:
    """What `sample:N` draws follows from --seed, and each task gets the next one."""
    [sampled] = load_environments([str(sizes / "env.py")])
    drawn = sample_contexts(sampled.context_space, 2, seed=7)
    process = evaluate(sizes, "--agent", "oracle", "--contexts", "sample:2", "--seed", "7")
    printed = process.communicate(timeout=PATIENCE_S)[0]

    assert process.returncode == 0, printed
    assert "first@sample-0" in printed
    assert "second@sample-1" in printed
    table = printed.partition("Reward by context")[2].partition("Job ")[0]
    values = {int(line.split()[0]) for line in table.splitlines() if line.startswith("  ")}
    assert values == {named.context["size"] for named in drawn}
    assert len(values) == 2


@pytest.mark.long
def test_the_report_speaks_of_no_training_that_never_was(sizes: Path) -> None:
    """Rows of `train` under drawn contexts have no split; contexts that no row got are named."""
    rows = [
        {"id": name, "env": "sizes", "template": "ask", "context": {"size": size},
         "metadata": {"split": split}}
        for name, size, split in (("first", 2, "train"), ("second", 8, "test"))
    ]  # fmt: skip
    (sizes / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    process = evaluate(sizes, "--agent", "oracle", "--contexts", "sample:5", "--seed", "7")
    printed = process.communicate(timeout=PATIENCE_S)[0]

    assert process.returncode == 0, printed
    after = printed.partition("Reward by context")[2].partition("Job ")[0]
    assert after.split()[:2] == ["all", "runs"]
    for word in ("train", "gap", "outside"):
        assert word not in after.partition("contexts that")[0]
    assert "contexts that no run used: sample-2, sample-3, sample-4" in after


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--contexts", "nowhere.json"), "nowhere.json"),
        (("--contexts", "sample:none"), "sample:N"),
        (("--contexts", "sample:1000000"), "from 1 to 999999"),
        (("--contexts", "sample:2:weight=1..2"), "'weight'"),
        (("--contexts", "wrong.json"), "does not fit the environment 'sizes'"),
        (("--context-selector", "every"), "--contexts"),
    ],
)
def test_contexts_that_cannot_be_given_are_refused_before_a_job_begins(
    sizes: Path, options: tuple[str, ...], told: str
) -> None:
    """The text names what was given; no job is recorded."""
    (sizes / "wrong.json").write_text('{"huge": {"size": 99}}')
    given = ["eval", "rows.jsonl", "--agent", "oracle", "--store", "s.sqlite3", *options]
    with chdir(sizes):
        done = CliRunner().invoke(main, given)
        listed = CliRunner().invoke(main, ["jobs", "--store", "s.sqlite3"])

    assert done.exit_code != 0
    assert told in done.output + str(done.exception)
    assert "job-" not in listed.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rows.jsonl", "--agent", "nop", "--timeout", "inf"), "inf is not a finite number."),
        (("rows.jsonl", "--agent", "nop", "--timeout", "nan"), "nan is not a finite number."),
        (("rows.jsonl", "--agent", "nop", "--report", "."), "File '.' is a directory."),
        (("rows.jsonl", "--agent-command", " "), "--agent-command is empty"),
        (("blank.jsonl", "--agent", "nop"), "blank.jsonl holds no tasks."),
    ],
)
def test_what_cannot_run_is_refused_before_a_job_begins(
    folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    """In a sentence; a job whose options cannot be recorded could not be resumed or regraded."""
    (folder / "blank.jsonl").write_text("\n\n")
    with chdir(folder):
        done = CliRunner().invoke(main, ["eval", "--store", "s.sqlite3", *arguments])
        listed = CliRunner().invoke(main, ["jobs", "--store", "s.sqlite3"])
    assert done.exit_code in (1, 2)
    assert told in done.output
    assert "Traceback" not in done.output
    assert isinstance(done.exception, SystemExit)
    assert "job-" not in listed.output


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="not on this machine: its pipes end otherwise")
def test_an_evaluation_whose_output_nobody_reads_runs_to_its_end(folder: Path) -> None:
    """As behind `| head -1`: every task is graded, and the report is written."""
    running = evaluate(folder, "--agent", "oracle", "--filter", "count")
    assert running.stdout is not None
    running.stdout.close()
    assert running.wait(timeout=PATIENCE_S) == 0
    assert (folder / "report.html").exists()
    with chdir(folder):
        listed = CliRunner().invoke(main, ["jobs", "--store", "s.sqlite3"]).output
    assert "2/2" in listed


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="not on this machine: it has no full device"
)
def test_output_that_has_no_room_is_told_in_a_sentence(folder: Path) -> None:
    """No traceback, and the status of a failure."""
    for command in (["functions"], ["tasks", "rows.jsonl", "--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "hud_mcp", *command],
                cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
                timeout=PATIENCE_S,
                stdout=full, stderr=subprocess.PIPE, check=False,
            )  # fmt: skip
        assert done.returncode == 1
        assert "Error: The output cannot be written: No space left on device." in done.stderr
        assert "Traceback" not in done.stderr
