"""Files of a task: put into a folder at once, and looked at where no agent has been."""

import base64
import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hud_mcp import Agent, BrokenByAgent, Grade, ShellWorld, SubScore, Verifier

__all__ = [
    "File",
    "Files",
    "Seed",
    "arrive",
    "as_file",
    "draws",
    "fill",
    "graded",
    "intact",
    "named",
    "need",
    "put",
    "read_small",
    "run",
    "scan",
    "seen_as",
]

Seed = Annotated[
    int, Field(ge=0, le=1_000_000, description="What the task's content is drawn from.")
]

MOST_BYTES = 200_000
"""Of an output that is read as text."""
_NOON = 1_709_294_400
"""When every file was made: 1 March 2024, 12:00 UTC."""

_IN_THE_WAY = 3
"""How `_PUT` ends where something else lies at a path."""
_PUT = f"""
import base64, json, os, sys

def put(path, link, mode, time, data):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    if link:
        os.symlink(link, path)
        return
    if data is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
        os.utime(path, (time, time))
    os.chmod(path, mode)

try:
    for row in json.load(sys.stdin):
        put(*row)
except OSError as exc:
    print(exc)
    sys.exit({_IN_THE_WAY})
"""

_SCAN = """
import hashlib, json, os, sys
found, most = {}, 4000
for top in sys.argv[1:]:
    names = [top] if os.path.isfile(top) else []
    for folder, folders, files in os.walk(top):
        found[os.path.relpath(folder)] = ["folder", os.stat(folder).st_mode & 0o777]
        names += [os.path.join(folder, each) for each in files]
        most -= len(folders) + len(files)
        if most < 0:
            break
    for name in names:
        digest = ""
        try:
            if os.path.isfile(name) and os.path.getsize(name) < 1 << 24:
                with open(name, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            pass
        found[os.path.relpath(name)] = [digest, os.lstat(name).st_mode & 0o777]
print(json.dumps(found if most >= 0 else {}))
"""

_READ = """
import os, sys
path, most = sys.argv[1], int(sys.argv[2])
if not os.path.isfile(path) or os.path.getsize(path) > most:
    sys.exit(3)
with open(path, "rb") as file:
    sys.stdout.write(file.read().hex())
"""


@dataclass(frozen=True)
class File:
    """A file, a folder or a link.

    Attributes:
        data: What is in it; None makes a folder of it.
        mode: Its rights.
        link: Where it leads, if it is a link.
        time: When it was changed, in seconds since 1970.
    """

    data: bytes | str | None = b""
    mode: int = 0o644
    link: str = ""
    time: int = _NOON


Files = Mapping[str, File | str | bytes]


def draws(purpose: str, seed: int) -> random.Random:
    """What draws the content of a task: the same in each process."""
    return random.Random(f"shell/{purpose}/{seed}")  # noqa: S311  # a task, and no secret


def as_file(given: File | str | bytes) -> File:
    """A file, from its content alone too."""
    return given if isinstance(given, File) else File(given)


def _dumped(files: Files) -> str:
    rows: list[object] = []
    for path, given in files.items():
        file = as_file(given)
        data = file.data.encode() if isinstance(file.data, str) else file.data
        text = None if data is None else base64.b64encode(data).decode()
        rows.append([path, file.link, file.mode, file.time, text])
    return json.dumps(rows)


async def need(shell: ShellWorld, *programs: str) -> None:
    """Say which programs a task lacks, before it begins.

    Raises:
        RuntimeError: The sandbox has not all of them.
    """
    look = 'for p; do command -v "$p" >/dev/null || echo "$p"; done'
    done = await shell.run(["bash", "-c", look, "-", "python3", *programs])
    if missing := done.output.split():
        raise RuntimeError(
            f"This task needs {' and '.join(missing)} in /usr of the machine, where its sandbox "
            f"looks for programs. Install it (Debian: apt-get install {' '.join(missing)})."
        )


async def fill(shell: ShellWorld, files: Files) -> None:
    """Put files into the session's folder.

    Raises:
        RuntimeError: They were not put there.
    """
    done = await shell.run(["python3", "-I", "-S", "-c", _PUT], stdin=_dumped(files))
    if done.exit_code != 0:
        raise RuntimeError(f"The task's files were not written: {done.output[-300:]}")


async def arrive(shell: ShellWorld, files: Files) -> None:
    """Put files into the session's folder while an agent works.

    Raises:
        BrokenByAgent: They were not put there: something of the agent's is in the way.
    """
    done = await shell.run(["python3", "-I", "-S", "-c", _PUT], stdin=_dumped(files))
    if done.exit_code != 0:
        raise BrokenByAgent(f"Files could not be delivered: {done.output.strip()[-200:]}")


async def put(clean: Verifier, files: Files) -> None:
    """Put files into a verifier, as `fill` does.

    Raises:
        BrokenByAgent: Something of the agent's lies in their place.
        RuntimeError: They were not put there.
    """
    done = await clean.run(["python3", "-I", "-S", "-c", _PUT], stdin=_dumped(files))
    if done.exit_code == _IN_THE_WAY:
        raise BrokenByAgent(f"Something lies in the place of a file: {done.output.strip()[-200:]}")
    if done.exit_code != 0:
        raise RuntimeError(f"The verifier's files were not written: {done.output[-300:]}")


Seen = dict[str, tuple[str, int]]
"""Each path with its content's digest (`folder` for a folder), and its rights."""


async def scan(clean: Verifier, *tops: str) -> Seen:
    """What lies at some paths; nothing where there are thousands of files."""
    done = await clean.run(["python3", "-I", "-S", "-c", _SCAN, *tops])
    try:
        return {path: (digest, mode) for path, (digest, mode) in json.loads(done.stdout).items()}
    except ValueError:
        return {}


def seen_as(given: File | str | bytes) -> str:
    """The digest that `scan` finds for a content."""
    data = as_file(given).data
    raw = data.encode() if isinstance(data, str) else data
    return "folder" if raw is None else hashlib.sha256(raw).hexdigest()


def intact(seen: Seen, files: Files, *tops: str) -> bool:
    """Whether each file has its content, and no other file is in these folders."""
    wanted = {
        path: seen_as(file)
        for path, file in files.items()
        if not as_file(file).link and as_file(file).data is not None and _is_in(path, tops)
    }
    found = {path: digest for path, (digest, _) in seen.items() if digest != "folder"}
    return wanted == {path: digest for path, digest in found.items() if _is_in(path, tops)}


def _is_in(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


async def read_small(clean: Verifier, path: str) -> bytes | None:
    """A file's content; None where there is no such file, or it is far too long."""
    done = await clean.run(["python3", "-I", "-S", "-c", _READ, path, str(MOST_BYTES)])
    return bytes.fromhex(done.stdout) if done.exit_code == 0 else None


def graded(parts: Mapping[str, bool | float], *, harmless: bool = True) -> Grade:
    """The mean of the parts; nothing where the task's other files were changed."""
    share = sum(map(float, parts.values())) / len(parts)
    scores = [
        SubScore(name=name, value=float(value), weight=1 / len(parts))
        for name, value in parts.items()
    ]
    if not harmless:
        scores.append(SubScore(name="something else was changed", value=1.0, weight=-1.0))
    return Grade(reward=share if harmless else 0.0, subscores=scores)


def named(agent: Agent, ending: str) -> str:
    """The first path in the task's folder that its prompt names and that ends so."""
    found = re.findall(r"/workspace/([\w./-]+)", agent.prompt)
    return next(path for path in (each.rstrip(".") for each in found) if path.endswith(ending))


async def run(agent: Agent, command: str) -> str:
    """Run a command as an agent does, and return what it wrote."""
    return await agent.tool("run_command", command=command)
