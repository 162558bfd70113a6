"""HUD's own client, which repairs over `ssh/2` and follows files; prints what it saw as JSON.

Arguments: what to do, then the channel's port.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from hud.agents.base import Agent
from hud.clients import connect
from hud.eval import Run, Task, Taskset
from hud.eval.file_tracking import FileTrackingClient
from hud.eval.runtime import Runtime


class AtWork(Agent):
    """Writes the word that it is asked for into out.txt, and nothing for coffee."""

    async def __call__(self, run: Run) -> None:
        """Work."""
        word = run.prompt_text.split()[1]
        shell = await run.client.open("shell")
        if word != "coffee":
            await shell.write_text("out.txt", f"{word}\n")
        run.trace.content = (await shell.run("ls")).stdout


class Repairing(Agent):
    """Repairs the function of the repair task."""

    async def __call__(self, run: Run) -> None:
        """Work."""
        shell = await run.client.open("shell")
        done = await shell.run("sed -i 's/ - 1//' total.py")
        run.trace.content = str(done.returncode)


async def work(port: str) -> dict[str, Any]:
    """Eight tasks at once."""
    words = ["tea", "milk", "salt", "oats", "rice", "coffee", "flour", "plum"]
    rows = [Task(env="rooms", id="write", args={"word": w}, slug=w) for w in words]
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    job = await Taskset("rooms", rows).run(AtWork(), runtime=runtime, max_concurrent=8)
    return {
        "rewards": {r.slug: r.reward for r in job.runs},
        "names": {r.slug: r.grade.info["names"] for r in job.runs},
    }


async def repair(port: str) -> dict[str, Any]:
    """The repair task of a HUD author."""
    runtime = Runtime(f"tcp://127.0.0.1:{port}")
    rows = [Task(env="repairs", id="fix", args={}, slug="fix")]
    job = await Taskset("repairs", rows).run(Repairing(), runtime=runtime)
    return {"rewards": [r.reward for r in job.runs]}


async def follow(port: str) -> dict[str, Any]:
    """The changes of a workspace's files, as HUD's rollouts follow them."""
    seen: dict[str, Any] = {}
    async with connect(Runtime(f"tcp://127.0.0.1:{port}")) as client:
        await client.start_task("write", {"word": "tea"})
        binding = client.binding("filetracking")
        seen["binding"] = [binding.protocol, binding.params["setup_diff"]]
        files = await FileTrackingClient.connect(binding)
        shell = await client.open("shell")
        seen["setup"] = await files.call("setup")
        seen["snapshot"] = await files.call("snapshot")
        first = "echo tea > out.txt; echo changed > sub/given.txt; echo KEY > .env; ln -s /etc l"
        second = "rm sub/given.txt; printf '<b>x</b>' > page.html; mkfifo pipe; mkdir node_modules"
        third = (
            "echo x > node_modules/y; head -c 2000000 /dev/zero > big.bin; printf '\\377' > b.dat"
        )
        lines = (first, f"{second}; {third}")
        for name, line in zip(("diff", "flush"), lines, strict=True):
            await shell.run(line)
            seen[name] = await files.call(name)
        seen["again"] = await files.call("diff")
        seen["advance"] = await files.call("advance")
        try:
            await files.call("nonsense")
        except RuntimeError as exc:
            seen["nonsense"] = str(exc)
        await client.grade({"answer": ""})
        try:
            await files.call("diff")
        except (RuntimeError, ConnectionError) as exc:
            seen["over"] = type(exc).__name__
        await files.close()
    return seen


if __name__ == "__main__":
    what, target = sys.argv[1:3]
    found = asyncio.run({"work": work, "repair": repair, "follow": follow}[what](target))
    Path("seen.json").write_text(json.dumps(found))
