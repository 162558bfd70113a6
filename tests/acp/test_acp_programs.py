"""Agents of the protocol from npm work through a gateway, with a provider of this machine."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from editor import play_in_an_editor
from provider_server import Asked, Call, Says, provider_server
from test_gateway_programs import AGENTS, ROWS, made_place

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[2]
BINS = ROOT / ".venv-programs" / "node_modules" / ".bin"
PACKAGES = {
    "acp:claude": "@agentclientprotocol/claude-agent-acp@^0.101",
    "acp:codex": "@agentclientprotocol/codex-acp@^2.6",
    "acp:gemini": "@google/gemini-cli",
    "acp:opencode": "opencode-ai",
}
MODELS = {
    "acp:claude": "acp:claude",
    "acp:codex": "acp:codex:gpt-5.1-codex",
    "acp:gemini": "acp:gemini:gemini-3.1-pro-preview",
    "acp:opencode": "acp:opencode:gpt-5.1",
}
INSTALL_S = 400


def installed(name: str, folder: Path) -> str:
    """Install an agent in the folder of the lane, with the Node that today's agents need."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which brings the agents")
    done = subprocess.run(
        [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix",
         ROOT / ".venv-programs", "node@22", PACKAGES[name]],
        timeout=INSTALL_S, check=False, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return name


@pytest.fixture(
    scope="module",
    params=["acp:claude", "acp:codex", *(pytest.param(each, marks=pytest.mark.long) for each in
            ("acp:gemini", "acp:opencode"))],
)  # fmt: skip
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of an agent, whose program is on PATH."""
    name = installed(request.param, tmp_path_factory.mktemp("npm"))
    AGENTS[name] = MODELS[name]
    yield name
    del AGENTS[name]


def test_an_agent_of_the_protocol_plays_three_rows(program: str, tmp_path: Path) -> None:
    """To a grade, with its turns, tokens and price, which are those that the provider counted."""
    with made_place(tmp_path, program, ROWS) as place:
        done = place.play("--set", "price=1,2")
        assert done.returncode == 0, done.stdout + done.stderr
        asked = len(place.server.asked)
    runs = place.runs()
    assert [run.reward for run in runs] == [1.0, 1.0, 1.0]
    turns = [turn for run in runs for turn in run.turns]
    assert len(turns) == asked
    assert {turn.source for turn in turns} == {"gateway"}
    assert sum(turn.usage.input or 0 for turn in turns) == 100 * asked
    assert all((turn.cost_usd or 0) > 0 for turn in turns)
    assert b"sk-the-key-of-the-test" not in (tmp_path / "s.sqlite3").read_bytes()


def test_a_budget_ends_an_agent_of_the_protocol(program: str, tmp_path: Path) -> None:
    """It ends soon after the refusal, and the run says the reason."""
    with made_place(tmp_path, program, {"count-r-strawberry": "quickstart"}) as place:
        done = place.play("--set", "price=1,2", "--set", "max_cost_per_run=0.00001")
        assert place.server.asked == []
    (run,) = place.runs()
    assert "--max-cost-per-run" in (run.error or ""), done.stdout + done.stderr


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of Claude's agent, as an editor starts it."""
    installed("acp:claude", tmp_path_factory.mktemp("npm"))
    return [str(BINS / "claude-agent-acp")]


def test_an_editor_s_agent_plays_a_task_by_our_server(claude: list[str], tmp_path: Path) -> None:
    """The editor hands it the servers of its settings; nobody tells it which tool to call."""
    begun: list[Asked] = []

    def script(asked: Asked) -> Says:
        named = {name.rpartition("__")[2]: name for name in asked.heard.tools}
        if wait := named.get("WaitForMcpServers"):
            return Says("I wait.", (Call(wait, {}),))
        if "start_task" not in named:
            return Says("A title, or the servers are not there yet.")
        begun.append(asked)
        if len(begun) == 1:
            return Says("I begin.", (Call(named["start_task"], {"task": "count-r-strawberry"}),))
        if len(begun) == 2:
            return Says("I answer.", (Call(named["response"], {"answer": "3"}),))
        return Says("Done.")

    async def play() -> float:
        variables = {
            "HOME": str(tmp_path), "PATH": f"{BINS}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-of-the-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false",
            "MCP_TIMEOUT": "200000",
            "IS_SANDBOX": "1",  # without it, it does not start under root
        }  # fmt: skip
        return await play_in_an_editor(tmp_path, claude, variables)

    with provider_server(script) as server:
        assert asyncio.run(play()) == 1.0
    assert len(server.asked) >= 2
