"""HUD's own client in a virtual environment of its own; prints what it saw as JSON.

Arguments: what to do, then the channel's port or an environment's file.
"""

# ruff: noqa: ASYNC240

import asyncio
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hud.agents.base import Agent
from hud.clients import HudProtocolError, connect
from hud.eval import Run, Task, Taskset
from hud.eval.runtime import Runtime, SubprocessRuntime


class Scripted(Agent):
    """Answers with the last word of what it is asked."""

    async def __call__(self, run: Run) -> None:
        """Answer."""
        run.trace.content = run.prompt_text.rstrip(".").split()[-1]


async def refused(call: Any) -> list[Any]:
    """The code and the text of what is refused."""
    try:
        await call
    except HudProtocolError as exc:
        return [exc.code, exc.message]
    return []


async def converse(port: str) -> dict[str, Any]:
    """Every method, in the order in which a harness calls them."""
    seen: dict[str, Any] = {}
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    async with connect(runtime) as client:
        seen["env"] = [client.manifest.server_info.name, client.manifest.server_info.version]
        seen["tasks"] = [t["id"] for t in await client.list_tasks()]
        seen["unknown"] = await refused(client.start_task("nope"))
        seen["wrong"] = await refused(client.start_task("ask", {"word": 7}))
        seen["early"] = await refused(client.grade({"answer": "x"}))
        seen["prompt"] = (await client.start_task("ask", {"word": "one"}))["prompt"]
        seen["grade"] = await client.grade({"answer": "one"})
        seen["rich"] = await client.start_task("rich", {"count": 3})
        seen["rich_grade"] = await client.grade({"answer": "[1]"})
        await client.start_task("ask", {"word": "dropped"})
        await client.cancel()
        seen["cancelled"] = await refused(client.grade({"answer": "x"}))
        seen["broken"] = await refused(client.start_task("broken"))
        await client.hello(client.manifest.session_id)
        await client.start_task("ask", {"word": "held"})
        session = client.manifest.session_id
        url = client.binding("echo").url
        seen["stream"] = await echo(url)
    async with connect(runtime) as client:
        seen["stranger"] = await refused(client.hello("sess-" + "0" * 32))
        await client.hello(session)
        seen["resumed"] = (await client.grade({"answer": "held"}))["score"]
    return seen


async def echo(url: str) -> str:
    """What comes back through the forwarder of a capability, after our half has ended."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"ping")
    writer.write_eof()
    async with asyncio.timeout(20):
        data = await reader.read()
    writer.close()
    return data.decode()


async def abandon(port: str) -> dict[str, Any]:
    """A rollout that takes too long cancels its task, whatever it does."""
    rows = Taskset("slow", [Task(env="talk", id="gated", args={"setup": os.environ["GATE"]})])
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    job = await rows.run(Scripted(), runtime=runtime, rollout_timeout=2.0)
    return {"errors": [r.grade.is_error for r in job.runs]}


async def run(port: str) -> dict[str, Any]:
    """A taskset on a served channel, several at once."""
    words = ["tea", "milk", "salt", "oats", "rice"]
    rows = [Task(env="talk", id="ask", args={"word": w}, slug=w) for w in words]
    rows.append(Task(env="talk", id="broken", args={}, slug="broken"))
    rows.append(Task(env="talk", id="rich", args={"count": 2}, slug="rich"))
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    job = await Taskset("talk", rows).run(Scripted(), runtime=runtime, max_concurrent=4)
    return {
        "rewards": {r.slug: r.reward for r in job.runs},
        "errors": sorted(r.slug for r in job.runs if r.grade.is_error or r.trace.status == "error"),
        "info": next(r.grade.info for r in job.runs if r.slug == "rich"),
        "subscores": next(r.grade.evaluation["subscores"] for r in job.runs if r.slug == "rich"),
    }


class AtWork(Agent):
    """Does what it is asked over ssh: the file `out`, with the word before `into`."""

    async def __call__(self, run: Run) -> None:
        """Work, and answer with what was found."""
        shell = await run.client.open("shell")
        word = run.prompt_text.split()[1]
        await shell.write_text("out", word)
        await shell.write_text("/workspace/more.txt", "")
        done = await shell.run("cat out; exit 4")
        run.trace.content = json.dumps(
            [done.stdout, done.returncode, await shell.listdir("."), await shell.read_text("given")]
        )


async def work(port: str) -> dict[str, Any]:
    """Tasks with a workspace each, several at once; and what a shell says without a task."""
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    rows = [
        Task(env="bench", id="write", args={"name": w}, slug=w) for w in ("tea", "milk", "salt")
    ]
    job = await Taskset("bench", rows).run(AtWork(), runtime=runtime, max_concurrent=3)
    async with connect(runtime) as client:
        binding = client.binding("ssh/2")
        early = await (await client.open("ssh/2")).run("ls")
    return {
        "rewards": {r.slug: r.reward for r in job.runs},
        "answers": {r.slug: json.loads(r.trace.content) for r in job.runs},
        "binding": [binding.name, binding.params["cwd"], binding.params["isolation"]],
        "early": [early.returncode, early.stderr],
    }


async def spawn(source: str) -> dict[str, Any]:
    """HUD's runtime for child processes, with a child that serves ours in place of HUD's server."""
    shim = Path(os.environ["SHIM"])
    shim.write_text(f'#!/bin/sh\nshift 2\nexec {os.environ["OURS"]} -m hud_mcp.channel "$@"\n')
    shim.chmod(0o755)
    sys.executable = str(shim)
    rows = [Task(env="talk", id="ask", args={"word": w}, slug=w) for w in ("tea", "milk")]
    job = await Taskset("talk", rows).run(Scripted(), runtime=SubprocessRuntime(source))
    return {"rewards": {r.slug: r.reward for r in job.runs}}


if __name__ == "__main__":
    done = asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
    print("SEEN " + json.dumps({"hud": version("hud"), **done}))
