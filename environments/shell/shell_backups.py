"""A state of files to restore from a full backup and the changes after it."""

import gzip
import hashlib
import io
import random
import tarfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

from shell_files import File, Files, Seed, draws, fill, graded, intact, need, run, scan
from shell_words import WORDS, a_word, words

from hud_mcp import Agent, Environment, Grade, ShellWorld

__all__ = ["backup_case", "declare"]

Level = Literal["two", "chain"]
RESTORE = """# How the backups are made

`backups/full-1.tar.gz` has every file as it was at first. Each `incr-N.tar.gz` has what changed
after number N - 1. Below `files/` are the files that are new or changed. `DELETED` lists paths
that were deleted, one on each line; a path that ends with a slash is a folder with all that is
below it. What is deleted is deleted first; then the files of the same archive are put in place.

`backups/SHA256SUMS` has the digest of each archive as it was made. An archive with another digest
is damaged; `backups/mirror/` has copies of some archives, and not every copy is a good one.

Only regular files are restored. Links in an archive are left out.
"""


@dataclass(frozen=True)
class Backup:
    """One archive: what was deleted, and then put."""

    name: str
    deleted: list[str]
    files: dict[str, str]
    links: dict[str, str]

    def packed(self) -> bytes:
        """The archive."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            texts = {"DELETED": "".join(f"{path}\n" for path in self.deleted)}
            texts |= {f"files/{path}": text for path, text in self.files.items()}
            for path, text in texts.items():
                info = tarfile.TarInfo(path)
                info.size, info.mtime = len(text.encode()), 1_709_294_400
                archive.addfile(info, io.BytesIO(text.encode()))
            for path, target in self.links.items():
                info = tarfile.TarInfo(f"files/{path}")
                info.type, info.linkname, info.mtime = tarfile.SYMTYPE, target, 1_709_294_400
                archive.addfile(info)
        return gzip.compress(out.getvalue(), mtime=0)

    def applied(self, state: dict[str, str]) -> dict[str, str]:
        """What there is after it."""
        kept = {
            path: text
            for path, text in state.items()
            if not any(path == d or (d.endswith("/") and path.startswith(d)) for d in self.deleted)
        }
        return {**kept, **self.files}


def a_path(draw: random.Random, level: str) -> str:
    """A path of a file in a backup."""
    name = f"{draw.choice(WORDS)}.{draw.choice(('txt', 'cfg', 'md'))}"
    if level == "chain":
        name = draw.choice((name, f"-{name}", f"{draw.choice(WORDS)} {name}"))
    below = draw.choice(("", "a/", "b c/" if level == "chain" else "b/"))
    return f"{draw.choice(WORDS[:5])}/{below}{name}"


def backup_case(seed: int, level: str) -> tuple[Files, int, dict[str, str]]:
    """The files of the task, the number to restore, and what there was then."""
    draw = draws(f"backup/{level}", seed)
    last = 4 if level == "two" else draw.randint(12, 14)
    number = 2 if level == "two" else draw.randint(10, last - 1)
    state: dict[str, str] = {}
    wanted: dict[str, str] = {}
    backups: list[Backup] = []
    for index in range(1, last + 1):
        deleted = draw.sample(sorted(state), min(len(state), 3 if index > 1 else 0))
        if index % 4 == 3:  # noqa: PLR2004  # now and then
            deleted.append(f"{draw.choice(sorted(state)).split('/', maxsplit=1)[0]}/a/")
        changed = draw.sample(sorted(state), min(len(state), 3)) + deleted[:1] * (index % 2)
        new = [a_path(draw, level) for _ in range(30 if index == 1 else 3)]
        files = {path: f"{words(draw, 8)}\n" for path in (*changed, *new) if path[-1] != "/"}
        links = {f"{draw.choice(WORDS)}-link": "../../outside.txt"} if level == "chain" else {}
        kind = "full" if index == 1 else "incr"
        backups.append(Backup(f"{kind}-{index}.tar.gz", deleted, files, links))
        state = backups[-1].applied(state)
        wanted = state if index == number else wanted
    found: dict[str, File | str | bytes] = {"RESTORE.md": RESTORE, "outside.txt": "Not a backup.\n"}
    packed = {each.name: each.packed() for each in backups}
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in packed.items()]
    found["backups/SHA256SUMS"] = "\n".join(sums) + "\n"
    found |= {f"backups/{name}": data for name, data in packed.items()}
    if level == "chain":
        for index in draw.sample(range(2, number + 1), 2):
            name = f"incr-{index}.tar.gz"
            other = Backup(name, [], {a_path(draw, level): "older\n"}, {}).packed()
            found[f"backups/mirror/{name}"] = packed[name]
            found[f"backups/{name}"] = draw.choice((other, packed[name][:-40]))
        fine = next(n for n in range(2, 99) if f"backups/mirror/incr-{n}.tar.gz" not in found)
        found[f"backups/mirror/incr-{fine}.tar.gz"] = packed["full-1.tar.gz"][:200]
    return found, number, wanted


async def restore_backup(
    shell: ShellWorld, seed: Seed = 0, level: Level = "two"
) -> AsyncGenerator[str | Grade]:
    """Ask for the files as they were after one of the backups."""
    files, number, wanted = backup_case(seed, level)
    folder = f"restored-{a_word('backup', seed)}"
    await need(shell, "tar", "gzip")
    await fill(shell, files)
    yield (
        f"Restore the files as they were after the backup with the number {number}, into the new "
        f"folder /workspace/{folder}: without the folder `files/` above them, and with nothing "
        "else in it. /workspace/RESTORE.md explains the backups, which lie in "
        "/workspace/backups. Leave these as they are."
    )
    async with shell.verifier(copy=[folder, "backups"]) as clean:
        seen = await scan(clean, folder, "backups")
        plain = not clean.left_out
    below = {f"{folder}/{path}": text for path, text in wanted.items()}
    parts = {"the files": intact(seen, below, folder) and plain}
    yield graded(parts, harmless=intact(seen, files, "backups"))


APPLY = """
import hashlib, pathlib, shutil, sys, tarfile
number, top = int(sys.argv[1]), pathlib.Path(sys.argv[2])
for index in range(1, number + 1):
    name = ("full" if index == 1 else "incr") + f"-{index}.tar.gz"
    line = next(l for l in open("backups/SHA256SUMS") if l.split()[1] == name)
    for folder in ("backups", "backups/mirror"):
        path = pathlib.Path(folder, name)
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == line.split()[0]:
            break
    else:
        sys.exit(f"{name}: no good copy")
    print(path)
    with tarfile.open(path) as archive:
        for gone in archive.extractfile("DELETED").read().decode().splitlines():
            place = top / gone
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        for member in archive:
            if member.isreg() and member.name.startswith("files/"):
                place = top / member.name[6:]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.extractfile(member).read())
"""


async def solve_backup(agent: Agent) -> str:
    """Check the digests, then take archive after archive, in the order of their numbers."""
    await run(agent, "cat RESTORE.md")
    await run(agent, "ls -lR backups")
    await run(agent, "cd backups; sha256sum -c SHA256SUMS; cat SHA256SUMS")
    await run(agent, "cd backups; ls mirror 2>/dev/null && (cd mirror; sha256sum *)")
    await run(agent, "tar tvzf backups/full-1.tar.gz | head -40")
    await run(agent, "tar tvzf backups/incr-2.tar.gz || tar tvzf backups/mirror/incr-2.tar.gz")
    await run(agent, "tar xOzf backups/incr-3.tar.gz DELETED; tar tvzf backups/incr-3.tar.gz")
    number = agent.prompt.partition("the number ")[2].split(",")[0]
    folder = agent.prompt.partition("/workspace/")[2].partition(":")[0]
    await agent.tool("write_file", path="apply.py", content=APPLY.lstrip())
    await run(agent, f"python3 apply.py {number} {folder}")
    await run(agent, f"rm apply.py; find {folder} | sort | head -100")
    await run(agent, f"find {folder} -type l; find {folder} -type f | wc -l")
    return "done"


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Restore files from backups")(restore_backup).oracle(solve_backup)
