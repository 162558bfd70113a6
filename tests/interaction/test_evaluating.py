"""`hud-mcp eval` from the command line to the record, the exit status and the report."""

import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import orjson
import psutil
import pytest
from peers import BOARD, FAULTY, ROOT, child_environment, load_all

from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory

pytestmark = pytest.mark.anyio

AGENT = Path(__file__).resolve().parent / "agents" / "solve.py"
ROWS = [
    {"id": "berry", "env": "letter_count", "template": "count",
     "validation": {"oracle": 1.0, "nop": 0.0}},
    {"id": "absent", "env": "letter_count", "template": "count",
     "args": {"word": "hello", "letter": "z"}, "validation": {"oracle": 1.0, "nop": 0.0}},
    {"id": "lamp", "env": "letter_count", "template": "reverse"},
]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A finished evaluation."""

    status: int
    printed: str
    records: dict[str, Trajectory]
    report: Path
    store: Path


async def evaluate(
    folder: Path, rows: list[dict[str, object]], *options: str, within_s: float = 60
) -> Run:
    """Run `hud-mcp eval` on rows in a process of its own, and read its record."""
    tasks, store, report = folder / "tasks.jsonl", folder / "store.sqlite3", folder / "report.html"
    tasks.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))  # small
    return await evaluate_file(str(tasks), store, report, *options, within_s=within_s)


async def evaluate_file(
    tasks: str, store: Path, report: Path, *options: str, within_s: float
) -> Run:
    """The same, on a taskset that exists."""
    command = [sys.executable, "-m", "hud_mcp", "eval", tasks, "--store", str(store)]
    with anyio.fail_after(within_s):
        done = await anyio.run_process(
            [*command, "--report", str(report), *options],
            check=False,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=child_environment(COLUMNS="200"),
        )
    records = {r.task.id: r for r in await load_all(store)} if store.exists() else {}  # noqa: ASYNC240
    return Run(done.returncode, done.stdout.decode(), records, report, store)


def agent(**behaviours: str) -> tuple[str, str]:
    """The options for the command agent, which behaves in one way or another on each task."""
    words = [f"{task}={behaviour}" for task, behaviour in behaviours.items()]
    return "--agent-command", shlex.join([sys.executable, str(AGENT), *words])


@pytest.mark.long
async def test_the_oracle_gets_what_the_taskset_expects(tmp_path: Path) -> None:
    """Status 0, one graded record for each row in one job, a table, and a report that opens."""
    run = await evaluate(tmp_path, ROWS, "--agent", "oracle", "--name", "smoke run")
    assert run.status == 0, run.printed
    assert {i: (r.outcome, r.reward) for i, r in run.records.items()} == {
        "berry": ("graded", 1.0), "absent": ("graded", 1.0), "lamp": ("graded", 1.0),
    }  # fmt: skip
    assert "mean reward  1.000 (95%: 0.292 to 1.000) over 3 graded of 3 runs" in run.printed
    jobs = {r.job_id for r in run.records.values()}
    assert len(jobs) == 1
    with closing(sqlite3.connect(run.store)) as connection:
        rows = connection.execute("SELECT row FROM jobs").fetchall()
    job = Job.model_validate(orjson.loads(rows[0][0]))
    assert (job.id, job.name, job.agent) == (jobs.pop(), "smoke run", "oracle")
    html = run.report.read_text()
    assert str(run.report) in run.printed
    for words in ("smoke run", "berry", "absent", "lamp"):
        assert words in html
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", html), "it is one file"


@pytest.mark.long
async def test_a_reward_that_is_not_expected_is_an_exit_status(tmp_path: Path) -> None:
    """The nop gets nothing; a row that expects something else of it is counted, with status 1."""
    odd = {**ROWS[1], "validation": {"oracle": 1.0, "nop": 0.25}}
    run = await evaluate(tmp_path, [ROWS[0], odd, ROWS[2]], "--agent", "nop")
    assert run.status == 1, run.printed
    assert {r.reward for r in run.records.values()} == {0.0}
    assert "1 of 3 runs did not end as expected." in run.printed
    assert run.report.is_file()


@pytest.mark.long
async def test_an_agent_that_is_a_command_works_as_any_client(tmp_path: Path) -> None:
    """It finds its task in its environment; its status and its words are in the record.

    Status 0 of the run means that every task was graded, whatever the grade.
    """
    behaviours = agent(berry="solve", absent="wrong", lamp="solve_then_fail")
    run = await evaluate(tmp_path, ROWS, *behaviours)
    assert run.status == 0, run.printed
    assert {i: r.reward for i, r in run.records.items()} == {
        "berry": 1.0, "absent": 0.0, "lamp": 1.0,
    }  # fmt: skip
    statuses = {"berry": 0, "absent": 0, "lamp": 7}
    for task, record in run.records.items():
        logs = record.logs or ""
        assert f"agent command: exit status {statuses[task]}" in logs
        assert f"agent: working on {task}" in logs
        assert f"agent: was told: Graded: reward {record.reward:g}." in logs
        assert [s.kind for s in record.steps] == ["response"]


@pytest.mark.long
async def test_an_agent_that_does_not_answer_leaves_a_cancelled_task(tmp_path: Path) -> None:
    """A crash, silence or a timeout is recorded with what it said; it is never a reward of 0."""
    behaviours = agent(berry="silent", absent="crash", lamp="hang")
    # One by one: a crash in the first run of all would say nothing of the agent.
    options = ("--timeout", "8", "--max-concurrent", "1")
    run = await evaluate(tmp_path, ROWS, *behaviours, *options, within_s=120)
    assert run.status == 1, run.printed
    assert "mean reward  none: nothing is graded of 3 runs" in run.printed
    assert "cancelled           3  not passed; not in the mean" in run.printed
    logged = {
        "berry": ("agent command: exit status 0",),
        "absent": ("agent command: exit status 1", "agent: no idea how to do this"),
        "lamp": ("agent command: killed", "agent: thinking", "agent stopped after 8 s (--timeout)"),
    }
    for task, record in run.records.items():
        assert record.outcome == "cancelled"
        assert record.reward is None
        for words in (f"agent: working on {task}", *logged[task]):
            assert words in (record.logs or "")
    assert run.report.is_file()
    mine = [str(AGENT), *shlex.split(behaviours[1])[2:]]  # no other test's agent has these words
    left = [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[1:] == mine]
    assert left == []


@pytest.mark.long
async def test_every_class_of_outcome_is_in_the_denominators(tmp_path: Path) -> None:
    """A row that does not begin is counted and named, not dropped."""
    rows: list[dict[str, object]] = [
        {"id": "good", "env": "board", "template": "collect"},
        {"id": "no-start", "env": "faulty", "template": "raises_in_setup"},
    ]
    run = await evaluate(tmp_path, rows, "--agent", "nop", "--env", BOARD, "--env", FAULTY)
    assert run.status == 1, run.printed
    assert {i: (str(r.outcome), r.reward) for i, r in run.records.items()} == {
        "good": ("graded", 0.0),
        "no-start": ("environment_failed", None),
    }
    printed = " ".join(run.printed.split())
    assert "mean reward 0.000 (95%: 0.000 to 0.975) over 1 graded of 2 runs" in printed
    assert "environment_failed 1 infrastructure: in no mean" in printed
    assert "1 of 2 say nothing of the agent. To run them: hud-mcp eval --resume job-" in printed
    assert "The setup of template 'raises_in_setup' failed" in run.printed


@pytest.mark.long
async def test_tasks_without_an_oracle_are_left_out_and_named(tmp_path: Path) -> None:
    """Those that have one run; the others are in no figure, and the job's page lists them."""
    rows: list[dict[str, object]] = [
        {"id": "good", "env": "board", "template": "collect"},
        {"id": "no-oracle", "env": "board", "template": "total"},
        {"id": "asked", "prompt": "Say yes.", "evaluate": [["response_is", "yes"]]},
    ]
    run = await evaluate(tmp_path, rows, "--agent", "oracle", "--env", BOARD, "--env", "qa")
    assert run.status == 0, run.printed
    assert list(run.records) == ["good"]
    assert "over 1 graded of 1 run" in run.printed
    assert "2 tasks are left out, and not counted:" in run.printed
    assert "1  its template has no oracle: no-oracle" in run.printed
    assert "1  a prompt has no oracle: asked" in run.printed


@pytest.mark.long
async def test_templates_without_an_oracle_are_named_before_anything_runs(tmp_path: Path) -> None:
    """No server is started and no task is spent to find out that none can be solved."""
    rows: list[dict[str, object]] = [{"id": "no-oracle", "env": "board", "template": "total"}]
    run = await evaluate(tmp_path, rows, "--agent", "oracle", "--env", BOARD)
    assert run.status == 1
    assert "These templates have no oracle: total (" in run.printed
    asked: list[dict[str, object]] = [
        {"id": f"asked-{i}", "prompt": "Say yes.", "evaluate": [["response_is", "yes"]]}
        for i in range(2)
    ]
    run = await evaluate(tmp_path, asked, "--agent", "oracle")
    assert run.status == 1
    assert "Tasks with a prompt have no oracle: asked-0 and 1 more." in run.printed
    assert run.records == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--agent", "nop", "--env", BOARD, "--filter", "berry"), "letter_count"),
        ((), "--agent-command COMMAND"),
        ((), "or --model PROVIDER:MODEL."),
        (("--agent", "nop", "--agent-command", "true"), "path/to/agent.py:NAME"),
        (("--agent-command", "pyhton agent.py"), "begins with 'pyhton'"),
        (("--agent", "nop", "--filter", "zebra"), "No task of"),
        (("--agent", "nop", "--env", "nowhere.py"), "nowhere.py"),
        (("--agent", "nop", "--report", f"{BOARD}/r.html"), "No run has begun"),
    ],
)
async def test_a_run_that_cannot_begin_says_why(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    """One line and a status that is not 0; no traceback."""
    run = await evaluate(tmp_path, ROWS, *options)
    assert run.status != 0
    assert words in run.printed
    assert "Traceback" not in run.printed


@pytest.mark.long
@pytest.mark.browser
async def test_the_oracle_solves_shipped_tasks_of_every_kind(tmp_path: Path) -> None:
    """Through the tools of any client, with a real browser; `make demo` runs the whole set."""
    lines = (ROOT / "taskset_data" / "quickstart.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) for line in lines if line.strip()]
    last = {str(row["id"]).partition("-")[0]: row for row in rows}  # of each kind
    run = await evaluate(tmp_path, list(last.values()), "--agent", "oracle")
    assert run.status == 0, run.printed
    assert set(run.records) == {row["id"] for row in last.values()}
    assert {r.outcome for r in run.records.values()} == {"graded"}
    assert len(last) == 5
