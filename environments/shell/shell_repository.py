"""Git repositories made of a description, and what a repository's commits say."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hud_mcp import ShellWorld, Verifier

__all__ = ["PEOPLE", "Commit", "git", "history", "make_repository", "stream", "wanted_history"]

PEOPLE = (
    "Ada Dahl <ada@example.org>",
    "Bruno Keller <bruno@example.org>",
    "Clara Moreau <clara@example.org>",
)
START = 1_706_778_000
"""1 February 2024, 9:00 UTC: when the first commit was made."""

_MAKE = """
set -e
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git init -q "$1"; cd "$1"
git symbolic-ref HEAD refs/heads/main
git fast-import --quiet --date-format=raw
git reset -q --hard main
git config user.name "Olga Holm"; git config user.email olga@example.org
git config gc.auto 0; git config advice.detachedHead false
"""
_LOG = """
import json, os, shutil, subprocess, sys
for name in ("shallow", "info/grafts", "objects/info/alternates", "objects/info/commit-graph",
             "objects/info/commit-graphs"):
    path = os.path.join(".git", name)
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
os.environ["GIT_NO_REPLACE_OBJECTS"] = "1"
def git(*words):
    return subprocess.run(["git", *words], capture_output=True, timeout=40)
if git("fsck", "--full", "--no-dangling", "--no-reflogs").returncode:
    sys.exit(3)
refs = git("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)").stdout.decode()
said = git("log", "-n", "400", "--topo-order", "--all", "HEAD", "--encoding=UTF-8",
           "--format=%H%x00%P%x00%an <%ae>%x00%at%x00%T%x00%B%x01")
said = said.stdout.decode("utf-8", "replace")
print(json.dumps({"refs": refs, "log": said, "head": git("symbolic-ref", "HEAD").stdout.decode()}))
"""


@dataclass(frozen=True)
class Commit:
    """A commit, with all files that it has.

    Attributes:
        message: Without a line feed at its end.
        files: Each file with its text.
        parents: Places of the parents in the list.
        author: Name and address.
        branch: The branch that it ends, until another one does.
    """

    message: str
    files: Mapping[str, str]
    parents: Sequence[int] = ()
    author: str = PEOPLE[0]
    branch: str = "main"


@dataclass(frozen=True)
class History:
    """What a repository has.

    Attributes:
        refs: Each branch and tag, with the digest of what it is at.
        commits: The digests by the hash.
        tips: Each branch and tag, with its commit's hash.
        fields: Each commit by its hash: parents, author, time, tree and message.
        head: The branch that is checked out.
    """

    refs: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)
    tips: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, tuple[list[str], str, str, str, str]] = field(default_factory=dict)
    head: str = ""


def stream(commits: Sequence[Commit], tags: Mapping[str, int] | None = None) -> str:
    """The commits as `git fast-import` reads them; tags point at places in the list."""
    lines: list[str] = []
    for place, commit in enumerate(commits):
        time = f"{START + place * 7200} +0000"
        lines.append(f"commit refs/heads/{commit.branch}\nmark :{place + 1}")
        lines.append(f"author {commit.author} {time}\ncommitter {commit.author} {time}")
        lines.append(_data(f"{commit.message}\n"))
        for number, parent in enumerate(commit.parents):
            lines.append(f"{'merge' if number else 'from'} :{parent + 1}")
        lines.append("deleteall")
        for path, text in commit.files.items():
            mode = "100755" if PurePosixPath(path).suffix == ".sh" else "100644"
            lines += [f"M {mode} inline {path}", _data(text)]
    for name, place in (tags or {}).items():
        lines.append(f"reset refs/tags/{name}\nfrom :{place + 1}\n")
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


async def make_repository(
    shell: ShellWorld, commits: Sequence[Commit], tags: Mapping[str, int] | None = None
) -> None:
    """Make the repository `repo` in the session's folder.

    Raises:
        RuntimeError: Git refused.
    """
    line = ["bash", "-c", _MAKE, "-", "repo"]
    done = await shell.run(line, stdin=stream(commits, tags))
    if done.exit_code != 0:
        raise RuntimeError(f"The repository was not made: {done.output[-300:]}")


async def git(shell: ShellWorld, *commands: str, time: int = 0) -> str:
    """Run lines of bash in the repository while a task is made, with a time of their own.

    Raises:
        RuntimeError: One of them failed.
    """
    at = f"{START + time} +0000"
    env = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "GIT_CONFIG_NOSYSTEM": "1"}
    done = await shell.run("set -e\n" + "\n".join(commands), cwd="repo", env=env)
    if done.exit_code != 0:
        raise RuntimeError(f"The repository was not made: {done.output[-300:]}")
    return done.output


async def history(clean: Verifier, folder: str = "repo") -> History:
    """What a repository in a verifier has; nothing where it cannot be read.

    Nothing of the repository's own says what its commits are: no grafts, no replacements and no
    index of commits.
    """
    if not await clean.exists(f"{folder}/.git/HEAD"):
        return History()
    done = await clean.run(["python3", "-I", "-S", "-c", _LOG], cwd=folder, timeout_s=45)
    try:
        return _read(json.loads(done.stdout))
    except (ValueError, LookupError):
        return History()


def _read(said: Mapping[str, str]) -> History:
    fields: dict[str, tuple[list[str], str, str, str, str]] = {}
    for entry in said["log"].split("\x01"):
        words = entry.lstrip("\n").split("\0")
        if len(words) == 6:  # noqa: PLR2004  # as many as were asked for
            fields[words[0]] = (words[1].split(), words[2], words[3], words[4], words[5].strip())
    commits: dict[str, str] = {}
    for name in reversed(fields):
        parents, *rest = fields[name]
        above = [commits.get(parent, "?") for parent in parents]
        commits[name] = hashlib.sha256(json.dumps([above, rest]).encode()).hexdigest()
    tips: dict[str, str] = {}
    for line in said["refs"].splitlines():
        name, _, target = line.partition(" ")
        tips[name] = target.split()[-1]
    refs = {name: commits.get(tip, "?") for name, tip in tips.items()}
    return History(refs, commits, tips, fields, said["head"].strip())


async def wanted_history(
    clean: Verifier, commits: Sequence[Commit], tags: Mapping[str, int] | None = None
) -> History:
    """What a repository of these commits has, made in a verifier.

    Raises:
        RuntimeError: Git refused.
    """
    line = ["bash", "-c", _MAKE, "-", "wanted"]
    done = await clean.run(line, stdin=stream(commits, tags))
    if done.exit_code != 0:
        raise RuntimeError(f"The repository was not made: {done.stderr[-300:]}")
    return await history(clean, "wanted")
