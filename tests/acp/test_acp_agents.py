"""Agents of the Agent Client Protocol work on tasks, in every shape that a program may have."""

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from waiting import PATIENCE_S

from hud_mcp import evaluate
from hud_mcp.errors import HudMcpError, InvalidAgent
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.rollout.agents import agent_options
from hud_mcp.store import Store

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="not on this machine: agents run in a shell"),
]

AGENT = Path(__file__).with_name("fake_agent.py")


@dataclass
class Place:
    """A folder with one task, in which agents run."""

    folder: Path

    def agent(self, shape: str) -> str:
        """The name of an agent of a shape."""
        words = [sys.executable, str(AGENT), shape, str(self.folder / "told.jsonl")]
        return f"acp:{shlex.join(words)}"

    async def run(self, shape: str, **options: Any) -> Trajectory:
        """Let an agent work on the task, and return the record of its run."""
        with anyio.fail_after(4 * PATIENCE_S):
            options = {"no_gateway": True, **options}
            job = await evaluate("one.jsonl", self.agent(shape), **options)
            store = Store(str(self.folder / "runs.sqlite3"))
            try:
                _, (run,) = await store.load_job(job.id, turns=True)
            finally:
                await store.close()
        return run

    def told(self, key: str) -> list[Any]:
        """The things of one kind that the agent has told."""
        lines = (self.folder / "told.jsonl").read_text().splitlines()
        return [told[key] for told in map(json.loads, lines) if key in told]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The task, with a home that is not the person's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("HUD_MCP_OPERATOR_TOKEN", "an operator's secret")
    row = {"id": "one", "env": "letter_count", "template": "count"}
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    return Place(tmp_path)


async def test_an_agent_works_to_a_grade_and_tells_its_turns(place: Place) -> None:
    """With its thoughts, its calls, its tokens and its cost, each before the steps it led to."""
    run = await place.run("plays")
    assert run.reward == 1.0
    first, second, last = run.turns
    assert (first.reasoning, first.text, first.source) == ("I look first.", None, None)
    assert [(call.name, call.id) for call in first.calls] == [("mcp__hud-mcp__step", "c-1")]
    assert first.calls[0].arguments == {"actions": []}
    assert (second.text, second.cost_usd) == ("There are three.", 0.25)
    assert (last.text, last.stop_reason) == ("Done.", "end_turn")
    assert (last.usage.input, last.usage.output, last.usage.cached) == (140, 20, 40)
    assert [turn.steps for turn in run.turns] == [range(1), range(1, 2), range(2, 2)]
    assert "acp: plans [in_progress] count the letters" in (run.logs or "")
    (told,) = place.told("files")
    assert told == []
    (servers,) = place.told("servers")
    assert "hms-" in servers[0]
    assert place.told("prompt")[0].startswith("How many times does the letter 'r' occur")


@pytest.mark.long
async def test_an_agent_that_takes_no_server_over_http_gets_one_as_a_program(place: Place) -> None:
    """Its token is in a file that nobody else reads, and in no argument."""
    run = await place.run("stdio")
    assert run.reward == 1.0
    (servers,) = place.told("servers")
    assert "hud_mcp.plugins.acp.pipe" in servers[0]
    assert "hms-" not in servers[0]


@pytest.mark.long
async def test_lines_that_are_no_messages_are_forgiven(place: Place) -> None:
    """So are answers to nothing, and updates of an unknown shape."""
    assert (await place.run("junk")).reward == 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("exits", "ended with exit status 3 and said last: no such flag"),
        ("all junk", "wrote too much that is no message, such as 'la la"),
        ("long line", "wrote a message of more than 16777216 bytes"),
        ("floods", "sent 200001 messages"),
        ("asks much", "had more than 16 requests open at once"),
        ("fails", "failed: Internal error: the model is gone"),
        ("newer", "speaks version 9 of the protocol"),
        ("login", "wants a login"),
        ("dies always", "ended with exit status 7 and said last: the end is near"),
        ("bound", "at its own limit of requests"),
        ("never answers", "without an answer"),
    ],
)
async def test_an_agent_that_cannot_work_ends_with_the_reason(
    place: Place, shape: str, said: str
) -> None:
    """It has no reward, and nothing of it lives on."""
    run = await place.run(shape)
    assert run.reward is None
    assert said in (run.error or "")
    assert AGENT.name not in " ".join(
        " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])
    )


@pytest.mark.long
async def test_an_agent_that_forgets_to_answer_is_asked_once_more(place: Place) -> None:
    """A person would do that, too."""
    assert (await place.run("forgets")).reward == 1.0
    assert place.told("number") == [1, 2]


@pytest.mark.long
async def test_an_agent_that_dies_loads_its_session_once(place: Place) -> None:
    """Its folder and its server are the same, and what it tells again is not recorded again."""
    run = await place.run("dies once")
    assert run.reward == 1.0
    assert place.told("loaded") == ["s-1"]
    assert "This was said before." not in str(run.turns)
    assert place.told("prompt")[1].startswith("You were interrupted")


@pytest.mark.long
async def test_tools_of_the_session_alone_are_permitted(place: Place) -> None:
    """Each call once; a text that holds the name of a tool is not its name."""
    run = await place.run("asks")
    assert run.reward == 1.0
    lines = (place.folder / "told.jsonl").read_text().splitlines()
    outcomes = [
        (told["asked"], told["outcome"].get("option_id"))
        for told in map(json.loads, lines)
        if "asked" in told
    ]
    assert outcomes[:7] == [
        ("mcp__hud-mcp__step", "once"),
        ("step (hud-mcp MCP Server)", "once"),
        ("mcp__mail__send", "no"),
        ("mcp__hud-mcp__no_such_tool", "no"),
        ("mcp__hud-mcp__step", "no"),
        ("echo mcp__hud-mcp__step", "no"),
        ("hud-mcp", "no"),
    ]
    assert "acp: asks for mcp__mail__send (p-2): refused" in (run.logs or "")


@pytest.mark.long
@pytest.mark.parametrize(("permit", "chosen"), [("all", "once"), ("none", "no")])
async def test_a_policy_answers_alike_whatever_is_asked(
    place: Place, permit: str, chosen: str
) -> None:
    """A call is never permitted for longer than once."""
    await place.run("asks", permit=permit)
    found = {each.get("option_id") for each in place.told("outcome")}
    assert found == {chosen}


@pytest.mark.long
async def test_a_person_is_asked_only_at_a_terminal(place: Place) -> None:
    """Nobody else could answer."""
    with pytest.raises(HudMcpError, match="--permit ask asks a person"):
        await place.run("plays", permit="ask")


@pytest.mark.long
async def test_the_shell_of_a_session_serves_files_and_terminals(place: Place) -> None:
    """What is there is recorded as steps, and of this machine nothing is."""
    row = {"id": "one", "env": "shell", "template": "find_twin", "args": {"seed": 11}}
    (place.folder / "one.jsonl").write_text(json.dumps(row))
    run = await place.run("uses a shell")
    assert "terminal=True" in place.told("initialize")[0]
    assert (place.told("whole"), place.told("part")) == ([True], ["two\n\n"])
    assert place.told("here") == [[]]
    assert place.told("read") == place.told("wrote") == place.told("went") == []
    assert place.told("refused")[:5] == [-32002, -32002, -32002, -32603, -32603]
    assert place.told("refused")[5:] == [-32602, -32601, -32603, -32602]
    first, second, third = place.told("ran")
    assert first == [3, "it's $A|/workspace/own", False]
    assert second == [0, "<a  b><$HOME>", False]
    assert (third[0], third[2]) == (0, True)
    assert third[1].endswith("line \u00e9 20000\n")
    assert 900 < len(third[1].encode()) <= 1001
    assert place.told("running") == [True]
    assert place.told("killed") == [[None, "SIGKILL"]]
    assert run.reward == 0.0
    written = [step for step in run.steps if "own/a b.txt" in str(step.model_dump())]
    assert "write_file" in str(written[0].model_dump())


@pytest.mark.long
async def test_files_are_served_to_nobody_whose_calls_are_all_refused(place: Place) -> None:
    """Nor is a terminal."""
    row = {"id": "one", "env": "shell", "template": "find_twin", "args": {"seed": 11}}
    (place.folder / "one.jsonl").write_text(json.dumps(row))
    await place.run("wants files", permit="none")
    assert place.told("refused") == [-32601]
    assert "terminal=True" not in place.told("initialize")[0]


@pytest.mark.long
async def test_files_of_this_machine_are_not_served(place: Place) -> None:
    """The client says that it has none, and refuses them."""
    assert (await place.run("wants files")).reward == 1.0
    assert place.told("refused") == [-32601]
    assert "read_text_file=False" in place.told("initialize")[0]


@pytest.mark.long
async def test_an_agent_without_an_end_is_asked_to_stop_and_then_killed(place: Place) -> None:
    """With everything that it started."""
    run = await place.run("never ends", timeout_s=60)  # of which the start takes a part
    assert "--timeout" in (run.error or "")
    assert place.told("cancelled") == ["s-1"]
    await place.run("deaf", timeout_s=60)
    (child,) = place.told("child")
    assert not psutil.pid_exists(child) or (psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


@pytest.mark.long
async def test_an_editor_hands_its_servers_to_an_agent_that_plays_a_task(place: Place) -> None:
    """Those of Zed's settings, as `hud-mcp install zed` writes them."""
    from editor import play_in_an_editor  # noqa: PLC0415  # with the protocol's SDK, long to load

    with anyio.fail_after(4 * PATIENCE_S):
        agent = [sys.executable, str(AGENT), "edits"]
        assert await play_in_an_editor(place.folder, agent, {}) == 1.0


NAMES = {
    "acp:claude": "npm install -g @agentclientprotocol/claude-agent-acp.*Node.js 22",
    "acp:codex:gpt-x": "npm install -g @agentclientprotocol/codex-acp",
    "acp:gemini": "npm install -g @google/gemini-cli",
    "acp:opencode": "npm install -g opencode-ai",
    "acp:no-such-program --acp": "the shell finds no such program",
    "acp:": "names no agent",
    "acp:'": "is no command",
}


@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_that_is_not_there_is_told_before_a_job_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """With the line that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidAgent, match=NAMES[name]):
        await agent_options(name)
