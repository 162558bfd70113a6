"""The content of a task that is drawn from a seed, and the outcome that an agent leaves."""

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from hud_mcp import BrokenByAgent, Grade, SubScore, ToolServerWorld

__all__ = ["WORDS", "Seed", "digests", "draws", "fill", "graded", "left", "read_left"]

Seed = Annotated[
    int, Field(ge=0, le=1_000_000, description="What the task's content is drawn from.")
]

WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "indigo", "juniper",
    "kestrel", "lagoon", "maple", "nectar", "orchid", "pebble", "quartz", "ridge", "sable",
    "thicket", "umber", "velvet", "willow", "yarrow", "zephyr",
)  # fmt: skip

_LOOK = """
import hashlib, json, os, sys
found = {}
for folder, folders, files in os.walk("."):
    folders[:] = [each for each in folders if each not in sys.argv[1:]]
    for name in [*folders, *files]:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            found[path[2:]] = "link"
        elif os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
            found[path[2:]] = hashlib.sha256(open(path, "rb").read()).hexdigest()
        elif not os.path.isdir(path):
            found[path[2:]] = "other"
    if len(found) > 300:
        break
print(json.dumps(found) if len(found) <= 300 else "{}")
"""


def draws(purpose: str, seed: int) -> random.Random:
    """A source of draws for the content of a task: the same in each process."""
    return random.Random(f"servers/{purpose}/{seed}")  # noqa: S311  # a task, and no secret


async def fill(server: ToolServerWorld, files: Mapping[str, str]) -> None:
    """Write a task's files."""
    for path, text in files.items():
        await server.shell.write(path, text)


def digests(files: Mapping[str, str]) -> dict[str, str]:
    """The result of `left` if these files are there, and no others."""
    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}


async def left(server: ToolServerWorld, *without: str) -> dict[str, str]:
    """The digest of each file that the agent has left, by its path; some folders are left out."""
    done = await server.run(["/usr/bin/python3", "-I", "-c", _LOOK, *without])
    if done.exit_code:
        raise BrokenByAgent(f"The files cannot be read: {done.stderr[-200:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return found


async def read_left(server: ToolServerWorld, path: str) -> str:
    """The text of a file that the agent has left, or "" where it is none."""
    async with server.shell.verifier(copy=[path]) as clean:
        return "" if clean.missing else await clean.read_text(path)


def graded(checks: Mapping[str, bool]) -> Grade:
    """Full marks where all of it is right, and nothing else."""
    scores = [
        SubScore(name=name, value=float(value), weight=1 / len(checks))
        for name, value in checks.items()
    ]
    is_right = all(checks.values())
    if not is_right:
        share = sum(each.value * each.weight for each in scores)
        scores.append(SubScore(name="all of it", value=share, weight=-1.0))
    return Grade(reward=float(is_right), subscores=scores)
