"""Programs that are agents already are given their session's MCP server, and nothing else."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp import evaluate
from hud_mcp.agents.programs import check_program
from hud_mcp.errors import InvalidAgent
from hud_mcp.rollout.agents import agent_options

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="not on this machine: programs with a first line"),
]

STAND_IN = """#!{python}
'''Reads its configuration as the real program does, and works through the server in it.'''
import asyncio, json, os, re, sys, tomllib
from pathlib import Path

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

kind, arguments, prompt = Path(sys.argv[0]).name, sys.argv[1:], sys.stdin.read()
after = dict(zip(arguments, arguments[1:]))
if kind == "claude":
    servers = json.loads(Path(after["--mcp-config"]).read_text())["mcpServers"]
    ((name, server),) = servers.items()
    url, headers = server["url"], server["headers"]
elif kind == "codex":
    given = [b for a, b in zip(arguments, arguments[1:]) if a == "-c"]
    settings = tomllib.loads("\\n".join(given))
    ((name, server),) = settings["mcp_servers"].items()
    url = server["url"]
    headers = {{"Authorization": "Bearer " + os.environ[server["bearer_token_env_var"]]}}
else:
    settings = json.loads(Path(".gemini/settings.json").read_text())
    ((name, server),) = settings["mcpServers"].items()
    url, headers = server["httpUrl"], server["headers"]


async def main():
    async with httpx2.AsyncClient(headers=headers) as web:
        async with Client(streamable_http_client(url, http_client=web)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("response", {{"answer": "3"}})
    told = {{
        "kind": kind, "name": name, "arguments": arguments, "prompt": prompt, "tools": tools,
        "hud": sorted(k for k in os.environ if "HUD_MCP" in k),
        "secret": headers["Authorization"].removeprefix("Bearer ")[:4],
        "folder": sorted(str(p) for p in Path().rglob("*")),
    }}
    Path({out!r}).write_text(json.dumps(told))

asyncio.run(main())
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins on PATH; what they have found is in the file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("HUD_MCP_OPERATOR_TOKEN", "an operator's secret")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "bin").mkdir()
    out = tmp_path / "told.json"
    for name in ("claude", "codex", "gemini"):
        program = tmp_path / "bin" / name
        program.write_text(STAND_IN.format(python=sys.executable, out=str(out)))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    row = {"id": "one", "env": "letter_count", "template": "count"}
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    return out


@pytest.mark.sampled(1)
@pytest.mark.parametrize("agent", ["claude-code", "codex:gpt-x", "gemini"])
async def test_a_program_works_through_the_server_that_it_is_given(told: Path, agent: str) -> None:
    """By its own form of configuration, with its session's credential, in an empty folder."""
    with anyio.fail_after(120):
        job = await evaluate("one.jsonl", agent)

    assert (job.agent, job.reward) == (agent, 1.0)
    found: dict[str, Any] = json.loads(await anyio.Path(told).read_text())
    assert found["name"] == "hud-mcp"
    assert found["secret"] == "hms-"
    assert {"step", "response"} <= set(found["tools"])
    assert not {"start_task", "list_tasks"} & set(found["tools"])
    assert found["prompt"].startswith("How many times does the letter 'r' occur in 'strawberry'?")
    assert "MCP server hud-mcp alone" in found["prompt"]
    assert "HUD_MCP_OPERATOR_TOKEN" not in found["hud"]
    assert (
        found["folder"]
        == {
            "claude": ["mcp.json"],
            "codex": [],
            "gemini": [".gemini", ".gemini/settings.json"],
        }[found["kind"]]
    )
    assert "hms-" not in " ".join(found["arguments"])  # other users read command lines
    if agent == "codex:gpt-x":
        assert found["arguments"][:3] == ["exec", "--model", "gpt-x"]
        assert "features.view_image=false" in found["arguments"]  # it reads local files
    (run,) = await job.load_trajectories()
    assert f"agent {found['kind']}: exit status 0" in (run.logs or "")


async def test_a_program_that_is_not_there_is_told_before_a_job_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the line that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidAgent, match="npm install -g @openai/codex"):
        await agent_options("codex")
    with pytest.raises(InvalidAgent, match="runs the program claude, which is not on PATH"):
        check_program("claude-code")
