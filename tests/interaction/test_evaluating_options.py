"""What `hud-mcp eval` is told: groups, seeds, bounds, retries, and going on with a job."""

import os
import shlex
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from peers import child_environment, load_all
from runs import MORTAL, Evaluation, alive, evaluation, finish, query, rows_of
from waiting import PATIENCE_S, wait_until

from hud_mcp.rollout.run import derived_seed

pytestmark = pytest.mark.anyio

AGENT = Path(__file__).resolve().parent / "agents" / "solve.py"
ORACLE = ("--agent", "oracle", "--env", MORTAL)
BY_OUTCOME = "SELECT task ->> 'id', receipt ->> 'outcome' FROM sessions ORDER BY started_at"


@pytest.mark.long
async def test_a_group_is_several_sessions_of_each_task_with_seeds_of_their_own(
    tmp_path: Path,
) -> None:
    """The seeds are recorded, and follow from the one that was given."""
    rows = [*rows_of("notes", 2, number=1), {**rows_of("notes", 3, number=1)[2], "seed": 5}]
    status, printed = await finish(tmp_path, rows, *ORACLE, "--group", "2", "--seed", "7")
    assert status == 0, printed
    records = await load_all(tmp_path / "store.sqlite3")
    assert len(records) == 6
    assert len({r.job_id for r in records}) == 1
    seeds = {(r.task.id, r.seed) for r in records}
    wanted = {(f"notes-{i}", derived_seed(7, f"notes-{i}", p)) for i in (0, 1) for p in (0, 1)}
    assert seeds == wanted | {("notes-2", 5)}
    assert "over 6 graded of 6 runs (2 x 3 tasks)" in printed
    assert "pass^2" in printed
    assert "[6/6]" in printed


@pytest.mark.long
async def test_an_oracle_that_takes_too_many_steps_is_stopped(tmp_path: Path) -> None:
    """Not one more is performed; as it had not answered, the session is cancelled."""
    rows = [*rows_of("endless", 1), *rows_of("notes", 1, number=4)]
    status, printed = await finish(tmp_path, rows, *ORACLE, "--max-steps", "4")
    assert status == 1, printed
    records = {r.task.template: r for r in await load_all(tmp_path / "store.sqlite3")}
    endless = records["endless"]
    assert (endless.outcome, endless.reward, len(endless.steps)) == ("cancelled", None, 4)
    assert "agent stopped after 4 steps (--max-steps)" in (endless.logs or "")
    assert records["notes"].reward == 1.0, "an answer after the last step counts"
    assert "The agent was stopped after 4 steps (--max-steps)." in printed


@pytest.mark.long
async def test_a_command_that_takes_too_many_steps_is_stopped_and_what_it_answered_counts(
    tmp_path: Path,
) -> None:
    """One that had answered keeps its grade; what it said is in the record."""
    rows = [
        {"id": name, "env": "letter_count", "template": "count"} for name in ("wander", "linger")
    ]
    agent = shlex.join([sys.executable, str(AGENT), "wander=wander", "linger=linger"])
    options = ("--agent-command", agent, "--max-steps", "3", "--timeout", "40")
    status, printed = await finish(tmp_path, rows, *options)
    assert status == 1, printed
    records = {r.task.id: r for r in await load_all(tmp_path / "store.sqlite3")}
    wander = records["wander"]
    assert (wander.outcome, wander.reward) == ("cancelled", None)
    assert len(wander.steps) > 3
    assert "agent stopped after" in (wander.logs or "")
    assert "(--max-steps)" in (wander.logs or "")
    assert "agent: wandering" in (wander.logs or "")
    linger = records["linger"]
    assert (linger.outcome, linger.reward) == ("graded", 1.0)
    assert "agent command: exit status 0" in (linger.logs or "")


@pytest.mark.long
async def test_an_agent_that_raises_is_recorded_as_such(tmp_path: Path) -> None:
    """In the log and on the screen; its session is cancelled, and the others go on."""
    rows = [*rows_of("puzzling", 1), *rows_of("notes", 1)]
    status, printed = await finish(tmp_path, rows, *ORACLE)
    assert status == 1, printed
    records = {r.task.template: r for r in await load_all(tmp_path / "store.sqlite3")}
    assert (records["puzzling"].outcome, records["puzzling"].reward) == ("cancelled", None)
    assert "agent failed: ValueError: the oracle's own bug" in (records["puzzling"].logs or "")
    assert printed.count("The agent failed: ValueError: the oracle's own bug") == 1
    assert records["notes"].reward == 1.0


@pytest.mark.long
async def test_what_failed_for_infrastructure_is_tried_again_if_asked(tmp_path: Path) -> None:
    """The first try stays in the record, and counts for nothing."""
    rows = rows_of("unsteady", 2, begun_file=str(tmp_path / "begun-{i}"))
    status, printed = await finish(tmp_path, rows, *ORACLE, "--retries", "1")
    assert status == 0, printed
    found = query(tmp_path / "store.sqlite3", BY_OUTCOME)
    assert sorted(found) == [
        (f"unsteady-{i}", outcome) for i in (0, 1) for outcome in ("environment_failed", "graded")
    ]
    assert "over 2 graded of 2 runs" in printed
    assert "earlier tries       2" in printed
    assert printed.count("it is tried again") == 2


@pytest.mark.long
async def test_a_resumed_job_runs_what_failed_and_nothing_else(tmp_path: Path) -> None:
    """Everything but its id comes from its record; a second time there is nothing to run."""
    rows = [
        *rows_of("unsteady", 1, begun_file=str(tmp_path / "begun")),
        *rows_of("notes", 2, number=1),
        *rows_of("puzzling", 1),
    ]
    status, printed = await finish(tmp_path, rows, *ORACLE, "--name", "two sittings")
    assert status == 1, printed
    store = tmp_path / "store.sqlite3"
    ((job,),) = query(store, "SELECT id FROM jobs")
    assert f"hud-mcp eval --resume {job} --store {store}" in printed

    (tmp_path / "rows.jsonl").unlink()
    status, printed = await finish(tmp_path, None, "--resume", job[:8])
    assert status == 1, "an agent that failed is not tried again, and is still unexpected"
    assert "[1/1] unsteady-0: graded 1" in printed
    assert "over 3 graded of 4 runs" in printed
    assert "1 of 4 runs did not end as expected." in printed
    begun = query(store, "SELECT count(*), count(DISTINCT job_id) FROM sessions")
    assert begun == [(5, 1)]
    assert query(store, "SELECT row ->> 'name' FROM jobs") == [("two sittings",)]

    status, printed = await finish(tmp_path, None, "--resume", job)
    assert "[1/" not in printed
    assert query(store, "SELECT count(*) FROM sessions") == [(5,)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--resume", "job-0", "--group", "2"), 2, "--group comes from the record of the job"),
        (("--resume", "job-0", "--filter", "a"), 2, "--filter comes from the record of the job"),
        (("--resume", "job-0"), 1, "job"),
        ((), 2, "Name a TASKSET, or --resume JOB;"),
    ],
)
async def test_a_job_that_cannot_be_resumed_says_why(
    tmp_path: Path, options: tuple[str, ...], status: int, said: str
) -> None:
    """One line, and a status that tells a mistake in the options from one in the record."""
    got, printed = await finish(tmp_path, None, *options)
    assert (got, "Traceback" in printed) == (status, False), printed
    assert said in printed


posix = pytest.mark.skipif(os.name == "nt", reason="not on this machine: signals of POSIX")


@pytest.mark.long
@posix
async def test_an_interrupted_job_leaves_no_run_without_an_end_and_goes_on(tmp_path: Path) -> None:
    """What was under way is lost, which counts for nobody; the printed command runs it again."""
    rows = [*rows_of("notes", 2, number=1), *rows_of("endless", 1), *rows_of("notes", 4, number=2)]
    rows = [dict(row, id=f"{i}-{row['id']}") for i, row in enumerate(rows)]

    def run() -> tuple[int, str]:
        with evaluation(tmp_path, rows, *ORACLE, "--max-concurrent", "1") as running:
            running.read_until(lambda line: line.startswith("[2/7]"))
            until_stepped(running)
            started = running.servers()
            running.process.send_signal(signal.SIGINT)
            printed = running.printed + running.process.communicate()[0]
            assert alive(started) == []
            return running.process.returncode, printed

    with anyio.fail_after(PATIENCE_S):
        status, printed = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    assert status == 130, printed
    said = "Interrupted: 2 of 7 runs had ended, 1 was under way and is recorded as lost, 4 had not"
    assert said in printed
    store = tmp_path / "store.sqlite3"
    assert [outcome for _, outcome in query(store, BY_OUTCOME)] == ["graded", "graded", "lost"]
    (command,) = [line for line in printed.splitlines() if line.startswith("hud-mcp eval --resume")]

    status, printed = await finish(tmp_path, None, *command.split()[2:4], "--timeout", "5")
    assert status == 2, "a bound of the agent is part of what the job is"
    assert "--timeout comes from the record" in printed


@pytest.mark.long
@posix
async def test_a_run_that_is_killed_leaves_no_server_and_can_be_resumed(tmp_path: Path) -> None:
    """Its server ends with it; what was under way is recorded as lost, and runs again."""
    rows = [
        {"id": name, "env": "letter_count", "template": "count"} for name in ("first", "second")
    ]
    waiting = tmp_path / "waiting"
    agent = f"test -e {waiting} || {{ touch {waiting}; sleep 600; }}"

    def run() -> None:
        options = ("--agent-command", agent, "--max-concurrent", "1")
        with evaluation(tmp_path, rows, *options) as running:
            wait_until(waiting.exists)
            servers = [p for p in running.servers() if "serve" in p.cmdline()]
            running.process.kill()
            assert servers
            assert alive(servers) == []

    with anyio.fail_after(PATIENCE_S):
        await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    store = tmp_path / "store.sqlite3"
    ((job,),) = query(store, "SELECT id FROM jobs")
    assert query(store, "SELECT count(receipt), count(*) FROM sessions") == [(0, 1)]

    status, printed = await finish(tmp_path, None, "--resume", job)
    assert status == 1, "an agent that does not answer is not as expected"
    assert [outcome for _, outcome in query(store, BY_OUTCOME)] == ["lost", *["cancelled"] * 2]
    assert "earlier tries       1" in printed


@pytest.mark.long
@posix
async def test_a_signal_while_the_report_is_written_does_not_lose_it(tmp_path: Path) -> None:
    """The report is whole, and the status says that there was a signal."""
    hold = tmp_path / ".report.html.partial"  # what the report is written to first
    os.mkfifo(hold)

    def run() -> tuple[int, str, str]:
        with evaluation(tmp_path, rows_of("notes", 1), *ORACLE) as running:
            running.read_until(lambda line: line.startswith("mean reward"))
            for _ in range(2):
                running.process.send_signal(signal.SIGINT)
                time.sleep(0.2)  # two signals at once are one
            html = hold.read_text()
            printed = running.printed + running.process.communicate()[0]
            return running.process.returncode, printed, html

    with anyio.fail_after(PATIENCE_S):
        status, printed, html = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    assert status == 130, printed
    assert "its report is being written; once more leaves it" in printed
    assert html.rstrip().endswith("</html>")
    assert "Interrupted" not in printed, "nothing was cut off"


def until_stepped(running: Evaluation) -> None:
    """Wait until the endless oracle is at work."""
    sql = (
        "SELECT count(*) FROM steps JOIN sessions ON id = session_id WHERE task ->> 'template' = ?"
    )
    wait_until(
        lambda: query(running.store, sql, "endless")[0][0] >= 2, said=lambda: running.printed
    )


@pytest.mark.long
async def test_a_job_with_a_damaged_row_says_so_and_its_answers_can_be_graded_again(
    tmp_path: Path,
) -> None:
    """It is not resumed without that task; its runs hold their own rows."""
    assert (await finish(tmp_path, rows_of("notes", 2, number=1), *ORACLE))[0] == 0
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as connection, connection:
        ((job,),) = connection.execute("SELECT id FROM jobs").fetchall()
        connection.execute("UPDATE job_tasks SET row = '{oh' WHERE position = 1")
    status, printed = await finish(tmp_path, None, "--resume", job)
    assert status == 1
    damage = f"The record is damaged: task 1 of {job}: '{{oh' is not JSON."
    assert f"Job {job} cannot be resumed as it is. {damage}" in printed
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", "regrade", job, "--store", "store.sqlite3"],
            check=False, cwd=tmp_path, env=child_environment(COLUMNS="200"),
        )  # fmt: skip
    printed = done.stdout.decode()
    assert done.returncode == 0, printed + done.stderr.decode()
    assert "Graded again: 2 of 2 runs; 0 changed." in printed
    assert damage in printed


@pytest.mark.long
async def test_a_resumed_job_runs_as_many_at_once_as_before(tmp_path: Path) -> None:
    """An agent that must run alone stays alone, unless it is told otherwise."""
    rows = rows_of("unsteady", 4, begun_file=str(tmp_path / "begun-{i}"))
    status, printed = await finish(tmp_path, rows, *ORACLE, "--max-concurrent", "1")
    assert status == 1, printed
    store = tmp_path / "store.sqlite3"
    ((job,),) = query(store, "SELECT id FROM jobs")
    status, printed = await finish(tmp_path, None, "--resume", job)
    assert status == 0, printed
    graded = "(SELECT * FROM sessions WHERE receipt ->> 'outcome' = 'graded')"
    at_once = (
        f"SELECT count(*) FROM {graded} a JOIN {graded} b ON a.id < b.id "
        "AND a.started_at < b.ended_at AND b.started_at < a.ended_at"
    )
    assert query(store, f"SELECT count(*) FROM {graded}") == [(4,)]
    assert query(store, at_once) == [(0,)]
