"""A client on the protocol's SDK in place of an editor: Zed, with its settings."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import acp
from acp import schema
from click.testing import CliRunner

from hud_mcp.cli import main
from hud_mcp.store import Store

WITHIN_S = 240


class Editor:
    """The editor's end: it permits each call once, as a person would."""

    def on_connect(self, conn: Any) -> None:
        """Take the connection."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Show nothing."""

    async def request_permission(self, options: Any, **_: Any) -> schema.RequestPermissionResponse:
        """Allow a call."""
        once = next(each.option_id for each in options if each.kind == "allow_once")
        allowed = schema.AllowedOutcome(outcome="selected", option_id=once)
        return schema.RequestPermissionResponse(outcome=allowed)


def servers_of(settings: Path) -> list[schema.McpServerStdio]:
    """The servers of Zed's settings, as it hands them to agents."""
    found = json.loads(settings.read_text())["context_servers"]
    return [
        schema.McpServerStdio(
            name=name, command=each["command"], args=each["args"],
            env=[schema.EnvVariable(name=k, value=v) for k, v in each.get("env", {}).items()],
        )
        for name, each in found.items()
    ]  # fmt: skip


async def reward_in(store: Path) -> float | None:
    """The reward of the newest record, if there is one."""
    kept = Store(str(store))
    try:
        listed = await kept.list_trajectories()
        return listed[0].reward if listed else None
    finally:
        await kept.close()


async def play_in_an_editor(
    home: Path, agent: Sequence[str], variables: Mapping[str, str]
) -> float:
    """Install the server in Zed, let its agent play a task, and return the recorded reward."""
    settings, store = home / "settings.json", home / "editor.sqlite3"
    done = CliRunner().invoke(
        main,
        ["install", "zed", "letter_count", "--config", str(settings), "--no-start",
         "--env", f"HUD_MCP_STORE={store}"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    process = await asyncio.create_subprocess_exec(
        *agent, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **variables}, limit=2**24, cwd=home,
    )  # fmt: skip
    try:
        async with asyncio.timeout(WITHIN_S):
            client = acp.connect_to_agent(Editor(), process.stdin, process.stdout)
            await client.initialize(protocol_version=1)
            begun = await client.new_session(cwd=str(home), mcp_servers=servers_of(settings))
            if begun.modes is not None:  # with none, a model may judge calls in place of a person
                await client.set_session_mode(mode_id="default", session_id=begun.session_id)
            said = [acp.text_block("Play count-r-strawberry.")]
            while (reward := await reward_in(store)) is None:
                # An agent may begin to work before its servers are there.
                await client.prompt(session_id=begun.session_id, prompt=said)
            return reward
    finally:
        process.kill()
        await process.wait()
