"""The texts of an oracle's whole conversations, one for each row of the quickstart taskset.

    python benchmarks/reading_talks.py [--checkout FOLDER] [--row ID …]

A real MCP client starts each row over stdio, and the oracle works on it. The output is JSON: for
each row, the list of tools with the server's instructions, and each call with its text. Programs
read other parts of a reply, and pictures have a cost of their own: both are left out.

`--checkout` plays the conversations of another version, from a folder with its files.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio


@dataclass(frozen=True)
class Talk:
    """One conversation: the list of tools, then what the model sent and read in each turn."""

    row: str
    tools: str
    turns: Sequence[tuple[str, str]]

    @property
    def texts(self) -> str:
        """All that the model sent and read, beside the list of tools."""
        return "\n".join(part for turn in self.turns for part in turn)


def dump(value: Any) -> str:
    """Write JSON as hosts send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def talks_of(checkout: Path | None = None, rows: Sequence[str] = ()) -> list[Talk]:
    """Play the conversations in a process of that version, and read them."""
    folder = checkout or Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, __file__, *(part for row in rows for part in ("--row", row))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the conversations of {folder} failed:\n{done.stderr[-2000:]}")
    return [Talk(**each) for each in json.loads(done.stdout)]


async def play(env: str, rows: Sequence[Mapping[str, Any]]) -> list[Talk]:
    """Play the rows of one environment on one server."""
    # Here, because the process that reads the conversations is of one version, this one of another.
    from mcp.client.client import Client  # noqa: PLC0415
    from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415

    from hud_mcp.agents.agent import Agent, Reply  # noqa: PLC0415
    from hud_mcp.agents.baselines import OracleAgent  # noqa: PLC0415
    from hud_mcp.environment.task import Task  # noqa: PLC0415
    from hud_mcp.loading.source import load_environments  # noqa: PLC0415

    oracle = OracleAgent(load_environments([env]))
    found: list[Talk] = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "rows.jsonl"
        file.write_text("".join(f"{dump(row)}\n" for row in rows))
        store = str(Path(name) / "store.sqlite3")
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "hud_mcp", "--store", store, "serve", env, "--taskset", str(file)],
            env=dict(os.environ),
        )
        async with Client(stdio_client(server, errlog=sys.stderr)) as client:
            listed = (await client.list_tools()).tools
            tools = dump([each.model_dump(by_alias=True, exclude_none=True) for each in listed])
            tools = f"{client.instructions or ''}\n{tools}"
            for row in rows:
                turns: list[tuple[str, str]] = []

                async def call(
                    name: str,
                    arguments: dict[str, Any],
                    *,
                    meta: Mapping[str, Any] | None = None,
                    turns: list[tuple[str, str]] = turns,
                ) -> Reply:
                    del meta  # no model writes or reads it
                    reply = Reply.of(await client.call_tool(name, arguments))
                    turns.append((f"{name} {dump(arguments)}", reply.text))
                    return reply

                started = await call("start_task", {"task": row["id"]})
                if started.is_error:
                    raise RuntimeError(started.text)
                told = started.structured
                agent = Agent(
                    call, session=told["session"], prompt=str(told["prompt"]), started=told
                )
                await oracle.solve(agent, Task.model_validate(row))
                found.append(Talk(row["id"], tools, turns))
    return found


async def main() -> None:
    """Play the rows, and print the conversations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", action="append", default=[], help="this row alone")
    parser.add_argument("--checkout", type=Path, help="play those of the version in this folder")
    given = parser.parse_args()
    if given.checkout:
        found = talks_of(given.checkout, given.row)
    else:
        taskset = await anyio.Path("taskset_data/quickstart.jsonl").read_text()
        rows = [json.loads(line) for line in taskset.splitlines()]
        rows = [row for row in rows if not given.row or row["id"] in given.row]
        found = [
            talk
            for env in dict.fromkeys(row["env"] for row in rows)
            for talk in await play(env, [row for row in rows if row["env"] == env])
        ]
    print(json.dumps([vars(talk) for talk in found]))


if __name__ == "__main__":
    asyncio.run(main())
