"""An evaluation whose server dies: no task is lost by it, and none is graded twice."""

import random
import sys
from pathlib import Path

import anyio.to_thread
import pytest
from peers import load_all
from runs import MORTAL, Evaluation, evaluation, finish, query, rows_of
from waiting import wait_until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        sys.platform == "win32", reason="not on this machine: servers are killed as POSIX does"
    ),
]

STUBBORN = Path(__file__).resolve().parent / "agents" / "stubborn.py"
OUTCOMES = (
    "SELECT receipt ->> 'outcome', receipt ->> 'reward', count(*) FROM sessions GROUP BY 1, 2"
)


def kill_at(running: Evaluation, counts: list[int]) -> str:
    """Kill the server whenever so many runs have ended; return all that was printed."""
    for count in counts:
        running.read_until(lambda line, count=count: line.startswith(f"[{count}/"))
        running.kill_server()
    running.printed += running.process.communicate()[0]
    return running.printed


@pytest.mark.long
@pytest.mark.parametrize("tasks", [50, pytest.param(500, marks=pytest.mark.stress)])
async def test_tasks_whose_server_is_killed_three_times_are_each_graded_once(
    tmp_path: Path, tasks: int
) -> None:
    """The job ends complete: one record and one receipt for each task, and no other."""
    rows = [
        {
            "id": f"task-{i}",
            "env": "letter_count",
            "template": "count",
            "args": {"word": f"word{i}", "letter": "o"},
            "validation": {"oracle": 1.0},
        }
        for i in range(tasks)
    ]
    counts = sorted(random.sample(range(5, tasks * 4 // 5), 3))

    def run() -> tuple[int, str]:
        options = ("--agent", "oracle", "--max-concurrent", "8")
        with evaluation(tmp_path, rows, *options) as running:
            printed = kill_at(running, counts)
            return running.process.returncode, printed

    with anyio.fail_after(180):
        status, printed = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)

    assert status == 0, (counts, printed)
    store = tmp_path / "store.sqlite3"
    assert query(store, OUTCOMES) == [("graded", 1.0, tasks)], counts
    assert query(store, "SELECT count(DISTINCT task ->> 'id') FROM sessions") == [(tasks,)]
    assert query(store, "SELECT count(*) FROM steps") == [(tasks,)], "one answer each"
    assert printed.count("The server died") == 3


@pytest.mark.long
async def test_steps_under_way_are_performed_once(tmp_path: Path) -> None:
    """Wherever the server is killed, the record has every step of the oracle, in order."""
    rows = rows_of("notes", 9, number=12)
    counts = sorted(random.sample(range(1, 6), 3))

    def run() -> tuple[int, str]:
        options = ("--agent", "oracle", "--env", MORTAL, "--max-concurrent", "3")
        with evaluation(tmp_path, rows, *options) as running:
            printed = kill_at(running, counts)
            return running.process.returncode, printed

    with anyio.fail_after(120):
        status, printed = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)

    assert status == 0, (counts, printed)
    records = await load_all(tmp_path / "store.sqlite3")
    assert len(records) == 9
    for record in records:
        assert (record.outcome, record.reward) == ("graded", 1.0)
        typed = [a["text"] for s in record.steps for a in s.actions if a["type"] == "type"]
        assert typed == [f"note {i}" for i in range(12)]


@pytest.mark.long
async def test_an_agent_of_its_own_goes_on_at_the_same_address(tmp_path: Path) -> None:
    """What it had done is still there; its own retry of the next call reaches the new server."""
    stepped, killed = tmp_path / "stepped", tmp_path / "killed"
    agent = f"{sys.executable} {STUBBORN} {stepped} {killed}"

    def run() -> tuple[int, str]:
        options = ("--agent-command", agent, "--env", MORTAL)
        with evaluation(tmp_path, rows_of("notes", 1, number=2), *options) as running:
            wait_until(stepped.exists)
            running.kill_server()
            killed.touch()
            printed = running.process.communicate()[0]
            return running.process.returncode, printed

    with anyio.fail_after(90):
        status, printed = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)

    assert status == 0, printed
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert record.reward == 1.0
    assert "agent: refused" in (record.logs or ""), "it met the death"


@pytest.mark.stress
async def test_a_grader_that_ends_its_server_once_grades_in_the_next(tmp_path: Path) -> None:
    """The answer was recorded before; nobody has to give it again."""
    rows = rows_of("dies_in_grading", 1, times_file=str(tmp_path / "died"))
    status, printed = await finish(tmp_path, rows, "--agent", "oracle", "--env", MORTAL)
    assert status == 0, printed
    assert query(tmp_path / "store.sqlite3", OUTCOMES) == [("graded", 1.0, 1)]
    assert (tmp_path / "died").read_text() == "x"


@pytest.mark.stress
async def test_a_task_that_ends_every_server_is_lost_and_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    """It is given up after some deaths, with the reason; the others are graded."""
    died = str(tmp_path / "died")
    rows = [*rows_of("dies_in_grading", 1, times_file=died, times=99), *rows_of("notes", 6)]
    options = ("--agent", "oracle", "--env", MORTAL, "--max-concurrent", "2")
    status, printed = await finish(tmp_path, rows, *options)
    assert status == 1, printed
    store = tmp_path / "store.sqlite3"
    assert sorted(query(store, OUTCOMES)) == [("graded", 1.0, 6), ("lost", None, 1)]
    ((error,),) = query(
        store, "SELECT receipt ->> 'error' FROM sessions WHERE receipt ->> 'outcome' = 'lost'"
    )
    assert "Its server ended each of the 3 times that its answer was graded" in error
    assert "Traceback" not in printed
    assert "1 of 7 say nothing of the agent" in printed


@pytest.mark.stress
async def test_a_server_that_cannot_be_had_again_ends_the_run_and_the_job_can_be_resumed(
    tmp_path: Path,
) -> None:
    """What was under way is lost, what had not begun is said so; later, both run."""
    rows = [*rows_of("dies_for_good", 1), *rows_of("notes", 3)]
    grave = tmp_path / "grave"
    options = ("--agent", "nop", "--env", MORTAL, "--max-concurrent", "1")
    # The evaluation itself does not load the environment; its servers do.
    status, printed = await finish(tmp_path, rows, *options, env={"MORTAL_GRAVE": str(grave)})
    assert status == 1, printed
    assert "starts in a row answered nothing" in printed
    assert "this server is not to start" in printed, "the end of the server's log"
    assert "Traceback" not in printed
    store = tmp_path / "store.sqlite3"
    assert query(store, OUTCOMES) == [("lost", None, 1)]
    assert "not_begun           3" in printed

    grave.unlink()
    ((job,),) = query(store, "SELECT id FROM jobs")
    status, printed = await finish(
        tmp_path, None, "--resume", job, env={"MORTAL_GRAVE": str(grave)}
    )
    assert status == 0, printed
    assert sorted(query(store, OUTCOMES)) == [("graded", 0.0, 4), ("lost", None, 1)]
