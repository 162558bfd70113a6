"""Rows of AgentBench-OS and InterCode-bash run in a sandbox, and are graded in another one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from hud_mcp.errors import InvalidTask
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import import_set
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.sets.agentbench import NAMES
from hud_mcp.task import Task

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

INTEGER = "from sys import argv\nexit(int(argv[1]) != int(argv[2]))"
COUNT = {
    "description": "How many lamps are in ~/möbel?",
    "create": {"init": {"code": 'mkdir ~/möbel; printf "lamp\\nchair\\nlamp\\n" > ~/möbel/list'}},
    "evaluation": {
        "check": [None, {"language": "python", "file": "check/integer-match.py"}],
        "example": {"code": "grep -c lamp ~/möbel/list"},
    },
}
INSTALL = {
    "description": "Write an alias `hi` that says hello, for every shell.",
    "create": {"local": "default"},
    "evaluation": {
        "check": ['source ~/.bashrc && [ "$(type -t hi)" = function ] && [ "$(hi)" = hello ]'],
        "example": "echo 'hi() { echo hello; }' >> ~/.bashrc",
    },
}
WATCH = {
    "description": "Which file in /root grows?",
    "create": {},
    "start": "(while sleep 0.2; do echo x >> /root/grows; done) &",
    "evaluation": {"match": "grows"},
}
NEVER = {
    "its script": {**COUNT, "create": {"init": {"file": "init/none.sh"}}},
    "root": {**COUNT, "create": {"init": "useradd -m bill"}},
    "system's own": {**COUNT, "create": {"init": "echo x > /usr/x"}},
    "the image": {**COUNT, "create": {"local": "packages"}},
    "setuid": {
        **COUNT, "evaluation": {"check": ["find ~ -perm -u+s | grep -q x"], "example": "true"}},
    "processes": {**COUNT, "evaluation": {"check": [None], "example": "ps -ef | wc -l"}},
}  # fmt: skip
READS = {
    "a comment": {**COUNT, "create": {"init": {"code": "# /etc is as it was\ntrue"}}},
    "users": {**COUNT, "evaluation": {"check": [None], "example": "getent passwd | wc -l"}},
    "rights": {
        **COUNT,
        "evaluation": {"check": ["find ~ -perm 640 | grep -q x"], "example": "true"},
    },
    "who may run": {**COUNT, "evaluation": {"check": [None], "example": "find ~ -perm /u=x"}},
}
"""What looks like a cause not to run, and is none."""


async def played(task: Task, command: str, answer: str | None) -> tuple[float, str]:
    """The reward of a task after a command, and what that printed; None answers with it."""
    with anyio.fail_after(180):
        env = await gym.make(task)
        try:
            seen = await env.step(
                [{"type": "custom", "action": "run", "args": {"command": command}}]
            )
            printed = "\n".join(seen.info.get("notes", []))
            text = printed if answer is None else answer
            await env.step([{"type": "response", "text": text}])
            measured: Any = await env.evaluate()
            reward = measured["reward"] if isinstance(measured, Mapping) else measured
            return float(reward), printed
        finally:
            await env.close()


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of the test's own."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))


def agentbench(folder: Path, *given: object) -> list[Task]:
    """Rows as a user's copy of the repository has them."""
    data = folder / "data" / "os_interaction" / "data"
    for name in NAMES:
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / f"{name}.json").write_bytes(orjson.dumps(list(given) if name == "dev" else []))
    script = folder / "data" / "os_interaction" / "scripts" / "dev" / "check" / "integer-match.py"
    script.parent.mkdir(parents=True)
    script.write_text(INTEGER)
    imported = import_set("AgentBench-OS-dev", place=folder)
    assert imported is not None
    return imported.tasks


def intercode(folder: Path, system: int, row: dict[str, str], setup: str) -> Task:
    """One row of a file system, as a user's copy of the repository has it."""
    data, scripts = folder / "data" / "nl2bash", folder / "docker" / "bash_scripts"
    data.mkdir(parents=True)
    scripts.mkdir(parents=True)
    for number in range(1, 5):
        rows = [row] if number == system else []
        (data / f"nl2bash_fs_{number}.json").write_bytes(orjson.dumps(rows))
        (scripts / f"setup_nl2b_fs_{number}.sh").write_text(setup)
    imported = import_set("InterCode-bash", place=folder)
    assert imported is not None
    (task,) = imported.tasks
    return task


@pytest.mark.long
async def test_a_question_is_graded_by_the_row_s_own_scripts(tmp_path: Path) -> None:
    """The example says what is right, and a script of the benchmark compares."""
    (task,) = agentbench(tmp_path, COUNT)
    assert why_not_runnable(task) is None
    assert (await played(task, "grep -c lamp ~/möbel/list", None))[0] == 1.0
    assert (await played(task, "true", "3"))[0] == 0.0
    assert (await played(task, "true", "many"))[0] == 0.0
    assert (await played(task, "echo lamp > ~/möbel/list", "1"))[0] == 0.0
    assert "forgeable" not in task.metadata


async def test_what_is_drawn_is_looked_at_where_the_agent_left_it(tmp_path: Path) -> None:
    """It cannot be made anew, so that an agent may change what is right; the row says so."""
    code = "mkdir ~/möbel; for i in 1 2 3; do echo lamp $RANDOM; done > ~/möbel/list"
    (task,) = agentbench(tmp_path, {**COUNT, "create": {"init": {"code": code}}})
    assert (await played(task, "true", "3"))[0] == 1.0
    assert "what the agent left" in task.metadata["forgeable"]


@pytest.mark.long
async def test_what_a_shell_reads_at_its_start_is_graded_too(tmp_path: Path) -> None:
    """A verifier has such files only where they are named, and this one names them."""
    (task,) = agentbench(tmp_path, INSTALL)
    example = task.metadata["gold"]["command"]
    assert (await played(task, example, "done"))[0] == 1.0
    assert (await played(task, "true", "done"))[0] == 0.0


@pytest.mark.long
async def test_rights_and_links_are_graded_as_they_were_made(tmp_path: Path) -> None:
    """A row that asks for both has the full reward for them alone."""
    check = '[ "$(stat -c %a ~/key)" = 640 ] && [ "$(readlink ~/now)" = v2 ]'
    done = "touch ~/key; chmod 640 ~/key; mkdir ~/v2; ln -s v2 ~/now"
    evaluation = {"check": [check], "example": done}
    (task,) = agentbench(tmp_path, {"description": "Make both.", "evaluation": evaluation})
    assert (await played(task, done, "done"))[0] == 1.0
    assert (await played(task, f"{done}; chmod 644 ~/key", "done"))[0] == 0.0


@pytest.mark.long
async def test_what_is_started_goes_on_while_the_agent_looks(tmp_path: Path) -> None:
    """The row's answer is compared as it is, but for spaces around it."""
    (task,) = agentbench(tmp_path, WATCH)
    wait = "until test -s /root/grows; do sleep 0.1; done; ls /root"
    assert await played(task, wait, " grows\n") == (1.0, "grows")
    assert (await played(task, wait, "other"))[0] == 0.0


async def test_rows_that_do_not_run_in_a_sandbox_say_why(tmp_path: Path) -> None:
    """They are imported like the others."""
    tasks = agentbench(tmp_path, *NEVER.values())
    for task, why in zip(tasks, ("the script", *list(NEVER)[1:]), strict=True):
        assert why in (why_not_runnable(task) or ""), task.id
    for task in agentbench(tmp_path / "reads", *READS.values()):
        assert why_not_runnable(task) is None, task.id
    broken = tmp_path / "data" / "os_interaction" / "data" / "dev.json"
    broken.write_text('[{"description": "x"}]')
    with pytest.raises(InvalidTask, match=r"dev\.json, row 0: this is not a row of Agent"):
        import_set("AgentBench-OS", place=tmp_path)


SETUP = "#!/bin/bash\nrm -rf {0}\nmkdir -p {0}/a\necho one > {0}/a/x.txt\necho two > {0}/y.txt\n"


@pytest.mark.long
@pytest.mark.parametrize(("system", "root"), [(1, "/testbed"), (2, "/system"), (3, "/workspace")])
async def test_the_gold_command_has_the_whole_reward(
    tmp_path: Path, system: int, root: str
) -> None:
    """On each file system; other files, or other words, have less of it."""
    gold = f"cat {root}/a/x.txt | tee {root}/found.txt; wc -l {root}/y.txt"
    row = {"query": "Keep x, then count the lines of y.", "gold": gold}
    task = intercode(tmp_path, system, row, SETUP.format(root))
    assert why_not_runnable(task) is None
    reward, printed = await played(task, gold, None)
    assert (reward, printed.splitlines()) == (1.0, ["one", f"1 {root}/y.txt"])
    assert (await played(task, gold, ""))[0] == 0.67
    silent = f"{gold} > /dev/null; rm {root}/y.txt"
    assert (await played(task, silent, printed))[0] == pytest.approx(0.01 + 0.05 + 0.33 + 0.33)
    assert (await played(task, f"{gold}; echo more >> {root}/found.txt", printed))[0] == 0.67
    assert (await played(task, "true", ""))[0] == pytest.approx(0.01 + 0.05 + 0.33)


async def test_golds_that_cannot_be_repeated_here_say_why(tmp_path: Path) -> None:
    """What needs a network, a program that is not there, or prints times."""
    for number, (gold, why) in enumerate((
        ("curl http://x.example", "a network"),
        ("ls /testbed | md5deep -", "the program md5deep"),
        ("ps aux | wc -l", "it prints the processes of the moment"),
        ("find /testbed -type f -exec ls -l {} ;", "it prints when files were made"),
        ("df /testbed | tail -1 | awk '{print $4}'", "it prints how the machine is used"),
        ("find /testbed -type f -exec ls -l {} ; | wc -l", ""),
        ("find /testbed -ls | awk '{print $4 - 2, $NF}'", ""),
        ("df . | tail -1 | awk '{print $1}'", ""),
        ("ls -ald `which sh`", ""),
        ("cat /testbed/* &", "it goes on in the background"),
        ("cat /testbed/* && true", ""),
        ("tar czf /a.tar /testbed", "it writes beside its file system"),
        ("tar czf /testbed/a.tar /testbed", ""),
        ("find / -name x", "it searches the whole machine"),
        ("env | sort", "it prints the variables"),
    )):  # fmt: skip
        row = {"query": "?", "gold": gold}
        task = intercode(tmp_path / str(number), 1, row, SETUP.format("/testbed"))
        assert (why_not_runnable(task) is None) is (why == ""), gold
        assert why in (why_not_runnable(task) or "")
    row = {"query": "?", "gold": "ls"}
    task = intercode(tmp_path / "none", 1, row, "")
    assert why_not_runnable(task) is None  # an empty script makes an empty folder
