"""An agent in Python in a process of its own: `--agent path.py:NAME`, `isolated=True`."""

import importlib
import json
import os
import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest
from click.testing import CliRunner
from waiting import until

from hud_mcp import Agent, Store, Trajectory, evaluate
from hud_mcp.cli import main
from hud_mcp.errors import InvalidAgent
from hud_mcp.rollout.agents import agent_options

pytestmark = pytest.mark.anyio

AGENTS = """
import json
import os
import urllib.request
from pathlib import Path

import anyio


async def reads(agent):
    print("read:", agent.prompt)
    await agent.step({"type": "wait", "time": 1})
    await agent.act({"type": "wait", "time": 1})
    return agent.prompt.split("'")[3] and str(agent.prompt.split("'")[3].count("r"))


class Mixed:
    def __init__(self):
        self.kept = None

    async def solve(self, agent, task):
        if task.id == "raises":
            raise ValueError("no idea")
        if task.id == "dies":
            os._exit(7)
        if task.id == "tells":
            return json.dumps({
                "env": sorted(k for k in os.environ if "HUD" in k),
                "task": sorted(vars(task)),
                "agent": sorted(k for k in vars(agent) if not k.startswith("_")),
            })
        return "3"


async def waits(agent):
    Path("begun").write_text(str(os.getpid()))
    while not Path("go").exists():
        await anyio.sleep(0.01)
    await agent.step({"type": "wait", "time": 1})
    await agent.step({"type": "wait", "time": 1})
    return "3"


async def pid(agent):
    return str(os.getpid())


def sync(agent):
    return ""


async def three(a, b, c):
    return ""


NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Agents, rows of a shipped environment, and nothing of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "agents.py").write_text(AGENTS)
    row = {"env": "letter_count", "template": "count"}
    names = ("answers", "tells", "raises", "dies")
    rows = [{**row, "id": name} for name in names]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "one.jsonl").write_text(json.dumps(rows[0]) + "\n")
    return tmp_path


def answer_of(run: Trajectory) -> str:
    """What was submitted."""
    return str(run.steps[-1].actions[0]["text"])


def test_an_agent_of_a_file_works_in_a_process_of_its_own(folder: Path) -> None:
    """It steps and answers through its handle; what it prints is the run's log."""
    done = CliRunner().invoke(main, ["eval", "one.jsonl", "--agent", "agents.py:reads"])
    assert done.exit_code == 0, done.output
    assert "mean reward  1.000" in done.output

    async def read() -> None:
        store = Store(folder / "runs.sqlite3")
        (job,) = await store.list_jobs()
        (trajectory,) = await job.kept_in(store).load_trajectories()
        await store.close()
        assert job.agent == "agents.py:reads"
        assert job.metadata["options"]["agent_python"] == f"{folder}/agents.py:reads"
        assert not job.trusts_agent
        assert [step.kind for step in trajectory.steps] == ["step", "act", "response"]
        logs = trajectory.logs or ""
        assert "agent process: exit status 0\n" in logs
        assert "agent: read: How many times does the letter 'r'" in logs

    anyio.run(read)


@pytest.mark.long
async def test_an_agent_s_exception_and_death_are_ends_of_its_runs(folder: Path) -> None:
    """With what it said last; the other runs go on. It finds its session's credential alone."""
    job = await evaluate("rows.jsonl", "agents:Mixed", max_concurrent=1)

    found = {t.task.id: t for t in await job.load_trajectories()}
    ends = {key: (t.outcome, t.cause) for key, t in found.items()}
    assert ends["raises"] == ends["dies"] == ("cancelled", "agent")
    assert "ValueError: no idea" in str(found["raises"].error)
    assert "exit status 7" in str(found["dies"].error)
    assert found["answers"].reward == 1.0
    told = json.loads(answer_of(found["tells"]))
    assert told["task"] == ["id", "prompt"]
    assert "HUD_MCP_TOKEN" in told["env"]
    assert "HUD_MCP_OPERATOR_TOKEN" not in told["env"]
    assert job.agent == "agents:Mixed"
    assert folder.name


@pytest.mark.long
async def test_an_isolated_function_has_a_process_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found again by its file, and the job can be resumed without it."""
    (folder / "isolated_agents.py").write_text(AGENTS)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    agents = importlib.import_module("isolated_agents")
    monkeypatch.delitem(sys.modules, "isolated_agents")
    monkeypatch.setitem(sys.modules, "isolated_agents", agents)

    job = await evaluate("one.jsonl", agents.pid, isolated=True)

    (run,) = await job.load_trajectories()
    assert answer_of(run) not in ("", str(os.getpid()))
    assert not job.trusts_agent
    assert (await evaluate(resume=job)).id == job.id

    async def inner(agent: Agent) -> None:
        """Found by nobody else."""

    for agent, told in (
        (agents.Mixed(), "Give its class"),
        (inner, "at the top level of a module"),
    ):
        with pytest.raises(InvalidAgent, match=told):
            await evaluate("one.jsonl", agent, isolated=True)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="not on this machine: signals of POSIX")
async def test_an_agent_goes_on_where_its_server_dies(folder: Path) -> None:
    """Its next call waits for the next server, and each of its steps is there once."""
    others = set(psutil.Process().children())
    with anyio.fail_after(180):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                job = await evaluate("one.jsonl", "agents.py:waits")
                (found,) = await job.load_trajectories()
                assert [step.kind for step in found.steps] == ["step", "step", "response"]
                assert (found.outcome, found.reward) == ("graded", 1.0)

            group.start_soon(run)
            await until((folder / "begun").exists)
            (server,) = [
                child
                for child in psutil.Process().children()
                if child not in others and "serve" in child.cmdline()
            ]
            server.send_signal(signal.SIGKILL)
            await until(lambda: not server.is_running() or server.status() == "zombie")
            (folder / "go").touch()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("absent.py:solve", "There is no file absent.py; write path/to/agent.py:NAME"),
        ("agents.py", "names no agent in the file"),
        ("agents.py:raeds", r"agents.py has no 'raeds'. Did you mean 'reads'\? It has: reads"),
        ("absent.module:Agent", "there is no module 'absent.module'"),
        ("agents:Absent", "agents has no 'Absent'"),
        ("agents.py:sync", r"agents.py:sync is not async; write `async def agent\(agent\)"),
        ("agents.py:three", r"takes \(a, b, c\), and is called with \(agent, task\)"),
        ("agents.py:NUMBER", "cannot be called, and has no `solve`"),
        ("broken.py:solve", "broken.py:2: ModuleNotFoundError: No module named 'nowhere'"),
        ("claude", "--agent PROVIDER:MODEL"),
    ],
)
async def test_what_is_no_agent_is_told_before_a_job_begins(
    folder: Path, agent: str, told: str
) -> None:
    """Each text says what was given and what to write."""
    await anyio.Path(folder / "broken.py").write_text("\nimport nowhere\n")
    with pytest.raises(InvalidAgent, match=told):
        await agent_options(agent)


@pytest.mark.long
def test_what_is_no_agent_is_a_mistake_in_an_option(folder: Path) -> None:
    """As every option that is wrong: status 2, and nothing is recorded."""
    done = CliRunner().invoke(main, ["eval", "one.jsonl", "--agent", "agents.py:sync"])
    assert done.exit_code == 2
    assert "agents.py:sync is not async" in done.output
    assert not list(folder.glob("runs.sqlite3*"))
