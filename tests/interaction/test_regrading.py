"""`hud-mcp regrade`: stored answers, graded again in the end states that they were given in."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from peers import ENVIRONMENTS, child_environment, load_all
from runs import MORTAL, finish, query, rows_of

pytestmark = pytest.mark.anyio

RESTORED = str(ENVIRONMENTS / "restored.py")
ORACLE = ("--agent", "oracle", "--env", MORTAL)


async def regrade(folder: Path, *options: str, within_s: float = 60) -> tuple[int, str]:
    """Run the command on the store of a folder; return its status and what it printed."""
    store = str(folder / "store.sqlite3")
    with anyio.fail_after(within_s):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", "regrade", *options, "--store", store],
            check=False, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            env=child_environment(COLUMNS="200"),
        )  # fmt: skip
    return done.returncode, done.stdout.decode()


async def regraded(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """What the command says of each task, as JSON."""
    _, printed = await regrade(folder, *options, "--json")
    rows = [orjson.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {row["task"]: row for row in rows}


def job_of(folder: Path) -> str:
    """The first job of a folder's store."""
    ((job,),) = query(folder / "store.sqlite3", "SELECT id FROM jobs ORDER BY created_at LIMIT 1")
    return job


async def test_a_grader_that_has_changed_gives_new_rewards_beside_the_old(tmp_path: Path) -> None:
    """The world is replayed, no agent runs, the old record stays, and the new one points to it."""
    for i in range(3):
        (tmp_path / f"key-{i}").write_text(f"fruit {i}")
    rows = rows_of("by_file", 3, key=str(tmp_path / "key-{i}"))
    status, printed = await finish(tmp_path, rows, *ORACLE)
    assert status == 0, printed
    before = await load_all(tmp_path / "store.sqlite3")
    (tmp_path / "key-1").write_text("another fruit")

    status, printed = await regrade(tmp_path, job_of(tmp_path), "--name", "again")
    assert status == 0, printed
    words = [line.split() for line in printed.splitlines()]
    assert ["by_file-0", "1", "1"] in words
    assert ["by_file-1", "1", "0", "-1"] in words
    assert "Graded again: 3 of 3 runs; 1 changed." in printed
    assert "Mean reward of the 3 with both grades: 1.000 before, 0.667 now." in printed

    after = await load_all(tmp_path / "store.sqlite3")
    assert after[:3] == before
    for old, new in zip(sorted(before, key=key), sorted(after[3:], key=key), strict=True):
        assert new.task.metadata["regrade_of"] == old.id
        assert new.job_id != old.job_id
        assert f"the answer of {old.id}, graded again" in (new.logs or "")
        assert [s.actions for s in new.steps] == [s.actions for s in old.steps]
    jobs = query(
        tmp_path / "store.sqlite3",
        "SELECT row ->> 'name', row -> 'metadata' ->> 'regrade_of' FROM jobs ORDER BY created_at",
    )
    assert jobs[1] == ("again", job_of(tmp_path))


def key(record: Any) -> str:
    """What orders records."""
    return record.task.id


@pytest.mark.long
async def test_new_rows_are_graded_by_where_their_ids_are_known(tmp_path: Path) -> None:
    """Others keep what they had; a prompt that has changed is pointed out."""
    rows: list[dict[str, Any]] = [
        {"id": "fruit", "env": "live", "template": "answered"},
        {"id": "word", "env": "letter_count", "template": "reverse"},
        {"id": "gone", "env": "letter_count", "template": "count"},
    ]
    options = ("--agent", "oracle", "--env", MORTAL, "--env", "letter_count")
    assert (await finish(tmp_path, rows, *options))[0] == 0
    new = [{**rows[0], "args": {"key": "pear"}}, {**rows[1], "args": {"word": "lump"}}]
    (tmp_path / "new.jsonl").write_bytes(b"\n".join(orjson.dumps(row) for row in new))

    found = await regraded(tmp_path, job_of(tmp_path), "--taskset", "new.jsonl")
    assert (found["fruit"]["old_reward"], found["fruit"]["reward"]) == (1.0, 0.0)
    assert found["fruit"]["reason"] is None
    assert found["word"]["reward"] == 0.0
    assert "Its prompt is another one now" in found["word"]["reason"]
    assert (found["gone"]["outcome"], found["gone"]["reward"]) == ("no_task", None)
    assert found["gone"]["trajectory"] is None


@pytest.mark.long
async def test_a_grader_of_a_world_that_cannot_come_back_says_so(tmp_path: Path) -> None:
    """Its row keeps its grade; one that is given the answer alone is graded again."""
    rows: list[dict[str, Any]] = [
        {"id": "world", "env": "live", "template": "looked_at"},
        {"id": "tool", "env": "mortal", "template": "once"},
        {"id": "answer", "env": "live", "template": "answered"},
    ]
    status, printed = await finish(tmp_path, rows, *ORACLE)
    assert status == 0, printed

    status, printed = await regrade(tmp_path, job_of(tmp_path))
    assert status == 1
    lines = {line.split()[0]: line for line in printed.splitlines() if line}
    assert "needs the live world    kept  Its world can neither be replayed" in lines["world"]
    assert "kept  The tool 'send' was called, which must not run twice." in lines["tool"]
    assert lines["answer"].split() == ["answer", "1", "1"]
    assert "The others keep what they had: 2 need the live world." in printed
    outcomes = query(
        tmp_path / "store.sqlite3",
        "SELECT receipt ->> 'outcome', receipt ->> 'reward' FROM sessions",
    )
    assert outcomes == [("graded", 1.0)] * 4


@pytest.mark.long
async def test_what_has_no_answer_is_not_graded_and_what_was_lost_may_be(tmp_path: Path) -> None:
    """A failure of the grader is not a reward of 0, neither then nor now; mended, it gives one."""
    died = tmp_path / "died"
    rows = [
        *rows_of("puzzling", 1),
        *rows_of("dies_in_grading", 1, times_file=str(died), times=99),
    ]
    status, printed = await finish(tmp_path, rows, *ORACLE, "--max-concurrent", "1")
    assert status == 1, printed
    assert "lost                1" in printed
    died.write_text("x" * 99)  # it dies no more

    found = await regraded(tmp_path, job_of(tmp_path))
    assert found["puzzling-0"]["outcome"] == "no_answer"
    lost = found["dies_in_grading-0"]
    assert (lost["old_outcome"], lost["old_reward"]) == ("lost", None)
    assert (lost["outcome"], lost["reward"], lost["changed"]) == ("graded", 1.0, True)


@pytest.mark.long
async def test_a_grader_that_fails_now_leaves_the_old_grade(tmp_path: Path) -> None:
    """The failure is recorded as one, with its reason, and is the command's exit status."""
    (tmp_path / "key").write_text("plum")
    rows = rows_of("by_file", 1, key=str(tmp_path / "key"))
    assert (await finish(tmp_path, rows, *ORACLE))[0] == 0
    (tmp_path / "key").unlink()
    status, printed = await regrade(tmp_path, job_of(tmp_path))
    assert status == 1, printed
    assert "grading_failed" in printed
    assert "FileNotFoundError" in printed
    assert "Graded again: 0 of 1 runs; 0 changed." in printed


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [(("job-none",), "job-none"), (("{job}", "--taskset", "other.jsonl"), "No row of other.jsonl")],
)
async def test_a_mistake_is_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    """It says what was given and what there is; nothing is recorded."""
    rows = [{"id": "word", "env": "letter_count", "template": "reverse"}]
    assert (await finish(tmp_path, rows, "--agent", "oracle"))[0] == 0
    (tmp_path / "other.jsonl").write_text('{"id": "x", "env": "letter_count", "template": "count"}')
    given = [option.format(job=job_of(tmp_path)) for option in options]
    status, printed = await regrade(tmp_path, *given)
    assert (status, "Traceback" in printed) == (1, False)
    assert said in printed
    assert query(tmp_path / "store.sqlite3", "SELECT count(*) FROM jobs") == [(1,)]


@pytest.mark.long
@pytest.mark.browser
async def test_a_browsers_end_state_is_brought_back_and_graded_again(tmp_path: Path) -> None:
    """What an oracle did in a shop is replayed, and gets the same reward, with no agent."""
    options = ("--agent", "oracle", "--filter", "shop-cart-mug")
    status, printed = await finish(tmp_path, None, "quickstart", *options)
    assert status == 0, printed
    status, printed = await regrade(tmp_path, job_of(tmp_path))
    assert status == 0, printed
    assert "Graded again: 1 of 1 runs; 0 changed." in printed


@pytest.mark.stress
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_files_that_only_a_snapshot_holds_are_graded_again(tmp_path: Path) -> None:
    """What an agent left in a shell is there when the grader that failed on it is mended."""
    await grade_again_once_mended(tmp_path, env="desk", template="note")


@pytest.mark.stress
@pytest.mark.browser
async def test_a_page_that_only_a_snapshot_holds_is_graded_again(tmp_path: Path) -> None:
    """So it is in a browser where a tool was called that must not be called twice."""
    await grade_again_once_mended(tmp_path, env="shop", template="order")


async def grade_again_once_mended(folder: Path, *, env: str, template: str) -> None:
    """A grader that has failed grades the same end state when it can, as often as it is asked."""
    rows = rows_of(template, 1, env=env, key=str(folder / "key"))
    status, printed = await finish(folder, rows, "--agent", "oracle", "--env", RESTORED)
    assert status == 1, printed
    for key, reward in (("tea", 1.0), ("coffee", 0.0)):
        (folder / "key").write_text(key)
        found = (await regraded(folder, job_of(folder)))[f"{template}-0"]
        assert (found["old_outcome"], found["reason"]) == ("grading_failed", None)
        assert (found["outcome"], found["reward"]) == ("graded", reward)


@pytest.mark.long
async def test_of_many_rows_those_that_changed_are_shown(tmp_path: Path) -> None:
    """The others are counted, and one is told where they are without grading once more."""
    for i in range(70):
        (tmp_path / f"key-{i}").write_text("fruit")
    rows = rows_of("by_file", 70, key=str(tmp_path / "key-{i}"))
    assert (await finish(tmp_path, rows, *ORACLE, "--max-concurrent", "8"))[0] == 0
    (tmp_path / "key-7").write_text("another fruit")
    status, printed = await regrade(tmp_path, job_of(tmp_path))
    assert status == 0, printed
    lines = printed.splitlines()
    assert [line.split() for line in lines if line.startswith("by_file")] == [
        ["by_file-7", "1", "0", "-1"]
    ]
    new = query(tmp_path / "store.sqlite3", "SELECT id FROM jobs ORDER BY created_at")[1][0]
    [said] = [line for line in lines if line.startswith("Not shown: 69 that did not change.")]
    assert f"`hud-mcp jobs {new} --store {tmp_path / 'store.sqlite3'}` lists all" in said
