"""Tasks on a repository, over the reference server for git, and an editor of our own."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from servers_outcome import WORDS, Seed, digests, draws, graded, left, read_left

from hud_mcp import Agent, Environment, Grade, ToolServer, ToolServerWorld

__all__ = ["declare"]

SERVER = "mcp-server-git==2026.10.19"
REPO = "/workspace/repo"
BEGAN_S = 1_704_067_200
Path = Annotated[str, Field(max_length=200, description="A path from /workspace/repo on.")]


async def read_text(server: ToolServerWorld, path: Path) -> str:
    """Read a text file of the working tree."""
    return await server.shell.read(f"repo/{path}")


async def write_text(server: ToolServerWorld, path: Path, text: str) -> str:
    """Write a whole text file of the working tree."""
    await server.shell.write(f"repo/{path}", text)
    return f"{path} was written."


@dataclass(frozen=True)
class Commit:
    """A commit: all its files, and the numbers of its parents."""

    title: str
    files: Mapping[str, str]
    parents: tuple[int, ...] = ()


def stream(commits: list[Commit], branches: Mapping[str, int]) -> str:
    """A history as `git fast-import` reads it; commits and branches count from 0."""
    lines: list[str] = []
    for number, each in enumerate(commits):
        when = f"{BEGAN_S + 86_400 * number} +0000"
        lines += [f"commit refs/import/{number}", f"mark :{number + 1}"]
        lines += [f"committer Ida Holm <ida@example.com> {when}"]
        lines += [f"data {len(each.title.encode())}\n{each.title}"]
        first = [f"from :{parent + 1}" for parent in each.parents[:1]]
        lines += [*first, *(f"merge :{parent + 1}" for parent in each.parents[1:]), "deleteall"]
        for path, text in each.files.items():
            lines += [f"M 100644 inline {path}", f"data {len(text.encode())}\n{text}"]
    for name, number in branches.items():
        lines += [f"reset refs/heads/{name}", f"from :{number + 1}\n"]
    lines += [f"reset refs/import/{n}\nfrom {'0' * 40}\n" for n in range(len(commits))]
    return "\n".join(lines) + "\n"


async def make(
    server: ToolServerWorld, commits: list[Commit], branches: Mapping[str, int], *more: str
) -> dict[str, str]:
    """Make the repository, run more commands in it, and return the id of each branch's commit."""
    await server.shell.write("history", stream(commits, branches))
    lines = [
        "set -e",
        "git init -q -b main repo && cd repo",
        "git config user.name 'Tom Reed' && git config user.email tom@example.com",
        "git fast-import --quiet < ../history && rm ../history",
        "git checkout -q main",
        *more,
        "git for-each-ref --format='%(refname:short) %(objectname)' refs/heads",
    ]
    done = await server.shell.run("\n".join(lines))
    if done.exit_code:
        raise RuntimeError(f"The repository cannot be made: {done}")
    return dict(line.split() for line in done.output.splitlines()[-len(branches) :])


async def git(server: ToolServerWorld, *words: str) -> str:
    """The output of a command of git in the repository that the agent left; "" if it fails."""
    done = await server.run(["git", "-C", "repo", *words])
    return done.stdout.strip() if done.exit_code == 0 else ""


async def tree(server: ToolServerWorld, revision: str) -> dict[str, str]:
    """The blobs of a commit, by their paths."""
    listed = await git(server, "ls-tree", "-r", "--full-tree", revision)
    rows = (line.split("\t", 1) for line in listed.splitlines())
    return {path: told.rpartition(" ")[2] for told, path in rows}


def blobs(files: Mapping[str, str]) -> dict[str, str]:
    """The result of `tree` for a commit with these files."""
    found: dict[str, str] = {}
    for path, text in files.items():
        data = text.encode()
        found[path] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324  # git's
    return found


async def committed(
    server: ToolServerWorld, branch: str, parents: list[str], files: Mapping[str, str]
) -> dict[str, bool]:
    """Whether a branch has one more commit, with these parents and these files."""
    found = (await git(server, "rev-list", "--parents", "-n1", f"refs/heads/{branch}")).split()
    return {
        f"a commit on {branch}": found[1:] == parents,
        f"the files of {branch}": await tree(server, f"refs/heads/{branch}") == blobs(files),
    }


def worked(files: Mapping[str, str]) -> dict[str, str]:
    """Files of the working tree, as `left` names them."""
    return digests({f"repo/{path}": text for path, text in files.items()})


async def remaining(server: ToolServerWorld) -> dict[str, str]:
    """The digests of the files in the working tree."""
    found = await left(server, ".git")
    return {path: told for path, told in found.items() if path.startswith("repo/")}


async def names(server: ToolServerWorld) -> str:
    """The names of all refs."""
    return await git(server, "for-each-ref", "--format=%(refname)")


def part(seed: int, level: str) -> tuple[list[Commit], dict[str, str], list[str], str]:
    """A history, the changed files, those that belong to one commit, and its message."""
    draw = draws(f"part/{level}", seed)
    area, other, third = draw.sample(WORDS, 3)
    first = draw.randint(100, 400)
    base = {
        f"{area}/parse.py": f"LIMIT = {draw.randint(10, 50)}\n",
        f"{area}/README.md": f"# {area}\n\nThe limit is told in parse.py.\n",
        f"{other}/parse.py": "LIMIT = 1\n",
        "settings.ini": "[run]\ndebug = no\n",
        ".gitignore": "*.log\n",
    }
    commits: list[Commit] = []
    for place in range(4):
        base = {**base, f"{third}/step{place}.txt": f"{draw.choice(WORDS)}\n"}
        title = f"{draw.choice((area, other, third))}: Tidy {draw.choice(WORDS)} (#{first + place})"
        commits.append(Commit(title, base, (place - 1,) if place else ()))
    limit = draw.randint(60, 99)
    changed = {
        f"{area}/parse.py": f"LIMIT = {limit}\n",
        f"{area}/test_parse.py": f"from parse import LIMIT\n\nassert LIMIT == {limit}\n",
        "settings.ini": "[run]\ndebug = yes\n",
        f"{other}/parse.py": "LIMIT = 1\nprint(LIMIT)\n",
        "token.txt": f"secret-{draw.randint(10_000, 99_999)}\n",
    }
    wanted = [f"{area}/parse.py", f"{area}/test_parse.py"]
    return commits, changed, wanted, f"{area}: Raise the limit (#{first + 4})"


async def commit_part(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["plain", "staged"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for a commit of some of the changes, with a message like the others."""
    commits, changed, wanted, message = part(seed, level)
    staged = ["git add settings.ini token.txt"] if level == "staged" else []
    heads = await make(server, commits, {"main": len(commits) - 1})
    for path, text in changed.items():
        await server.shell.write(f"repo/{path}", text)
    for line in staged:
        await server.shell.run(f"cd repo && {line}")
    area = wanted[0].partition("/")[0]
    yield (
        f"In {REPO}, the limit in {area}/parse.py was raised, with a test of it. Commit this, and "
        "nothing else: the other changes stay in the working tree, not staged. The message is one "
        "line in the form of the last commits: the area, 'Raise the limit', and the next number."
    )
    base = commits[-1].files
    files = {**base, **{path: changed[path] for path in wanted}}
    checks = await committed(server, "main", [heads["main"]], files)
    index = {each.split("\t", 1)[1]: each.split()[1] for each in
             (await git(server, "ls-files", "-s")).splitlines()}  # fmt: skip
    checks |= {
        "the message": await git(server, "log", "-1", "--format=%B", "refs/heads/main") == message,
        "the index": index == blobs(files),
        "the working tree": await remaining(server) == worked({**base, **changed}),
    }
    yield graded(checks)


async def solve_part(agent: Agent, seed: int = 0, level: str = "plain") -> str:
    """Look, unstage, stage and commit."""
    _, _, wanted, message = part(seed, level)
    await agent.call("git_status", repo_path=REPO)
    await agent.call("git_log", repo_path=REPO, max_count=4)
    await agent.call("git_diff_unstaged", repo_path=REPO)
    if level == "staged":
        await agent.call("git_reset", repo_path=REPO)
    await agent.call("git_add", repo_path=REPO, files=wanted)
    await agent.call("git_commit", repo_path=REPO, message=message)
    return "done"


def conflict(seed: int, level: str) -> tuple[list[Commit], dict[str, str], str]:
    """A history with two branches, the files of their merge, and the rules of it."""
    draw = draws(f"conflict/{level}", seed)
    old, ours, theirs = sorted(draw.sample(range(10, 99), 3))
    price = draw.randint(100, 900)
    text = "name = {name}\ntimeout = {timeout}\nretries = {retries}\n"
    base = {
        "app.ini": text.format(name="app", timeout=old, retries=3),
        "CHANGES.md": "# Changes\n\n- The first version\n",
        "price.txt": f"{price}\n",
    }
    mine = {
        **base,
        "app.ini": text.format(name="app", timeout=ours, retries=3),
        "CHANGES.md": "# Changes\n\n- A longer timeout\n- The first version\n",
    }
    their = {
        **base,
        "app.ini": text.format(name="app", timeout=theirs, retries=5),
        "CHANGES.md": "# Changes\n\n- More retries\n- The first version\n",
    }
    if level == "three":
        mine["price.txt"], their["price.txt"] = f"{price + 1}\n", f"{price + 2}\n"
    merged = {
        **base,
        "app.ini": text.format(name="app", timeout=theirs, retries=5),
        "CHANGES.md": "# Changes\n\n- A longer timeout\n- More retries\n- The first version\n",
        "price.txt": mine["price.txt"],
    }
    commits = [Commit("Begin", base), Commit("Wait longer", mine, (0,)),
               Commit("Retry more", their, (0,))]  # fmt: skip
    return commits, merged, "Merge branch 'retry'"


async def end_merge(
    server: ToolServerWorld, seed: Seed = 0, level: Literal["two", "three"] = "two"
) -> AsyncGenerator[str | Grade]:
    """Ask for a merge with conflicts to be brought to its end."""
    commits, merged, message = conflict(seed, level)
    heads = await make(
        server, commits, {"main": 1, "retry": 2}, "git merge -q retry >/dev/null 2>&1 || true"
    )
    yield (
        f"A merge of the branch retry into main has stopped with conflicts in {REPO}. End it: "
        "the larger timeout counts, and the retries of their side. CHANGES.md keeps the lines of "
        "both sides, ours first. In any other conflict our side counts. Commit the merge with the "
        f"message {message!r}, and leave nothing uncommitted."
    )
    checks = await committed(server, "main", [heads["main"], heads["retry"]], merged)
    checks |= {
        "the message": await git(server, "log", "-1", "--format=%B", "refs/heads/main") == message,
        "the working tree": await remaining(server) == worked(merged),
        "retry": await git(server, "rev-parse", "refs/heads/retry") == heads["retry"],
    }
    yield graded(checks)


async def solve_merge(agent: Agent, seed: int = 0, level: str = "two") -> str:
    """Read the conflicts, write what counts, and commit."""
    _, merged, message = conflict(seed, level)
    paths = ["app.ini", "CHANGES.md", *(["price.txt"] if level == "three" else [])]
    await agent.call("git_status", repo_path=REPO)
    for path in paths:
        await agent.call("read_text", path=path)
        await agent.call("write_text", path=path, text=merged[path])
    await agent.call("git_add", repo_path=REPO, files=paths)
    await agent.call("git_commit", repo_path=REPO, message=message)
    return "done"


def changes(seed: int) -> tuple[list[Commit], int]:
    """A history in which a setting gets a bad value, and the number of that commit."""
    draw = draws("changes", seed)
    bad, noise = draw.randint(4, 9), draw.randint(10, 11)
    commits: list[Commit] = []
    for place in range(13):
        # Its line moves and gets other spaces before and after its value changes.
        spaces = " " if place in (2, 3) or place >= noise else ""
        size = 512 if place < bad else 8
        head = f"# {draw.choice(WORDS)}\n" * (place % 3)
        cache = f"cache{spaces}={spaces}{size}\n"
        other = f"queue={draw.randint(1, 9)}\n"
        files = {"app.conf": head + other + cache, "NOTES.md": f"{draw.choice(WORDS)} {place}\n"}
        title = draw.choice(("Tidy the settings", "Shrink the cache", "Reorder", "Notes", "Format"))
        commits.append(Commit(f"{title} {place}", files, (place - 1,) if place else ()))
    return commits, bad


async def find_change(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for the commit that changed a value."""
    commits, bad = changes(seed)
    branches = {"main": len(commits) - 1}
    heads = await make(server, commits, branches)
    told = await server.shell.run(f"git -C repo rev-parse main~{len(commits) - 1 - bad}")
    wanted = told.output.strip()
    yield (
        f"Since some commit, the cache of app.conf in {REPO} has the value 8 in place of 512. Find "
        "the commit with which that value came. Write its full id, and nothing else, as the file "
        "CULPRIT of the working tree. Commit nothing, and leave main checked out as it is."
    )
    said = (await read_left(server, "repo/CULPRIT")).strip()
    files = {**commits[-1].files}
    there = await remaining(server)
    there.pop("repo/CULPRIT", None)
    yield graded(
        {
            "the commit": said == wanted,
            "main": await git(server, "rev-parse", "refs/heads/main") == heads["main"],
            "checked out": await git(server, "symbolic-ref", "HEAD") == "refs/heads/main",
            "the files": there == worked(files),
        }
    )


async def solve_change(agent: Agent, seed: int = 0) -> str:
    """Read the log, bisect by the diffs to main, and write the id."""
    commits, bad = changes(seed)
    await agent.call("git_log", repo_path=REPO, max_count=20)
    last = len(commits) - 1
    for place in (6, 3, bad - 1):
        await agent.call("git_show", repo_path=REPO, revision=f"main~{last - place}:app.conf")
    shown = await agent.call("git_show", repo_path=REPO, revision=f"main~{last - bad}")
    found = shown.text.partition("commit ")[2].split()[0]
    await agent.call("write_text", path="CULPRIT", text=f"{found}\n")
    return "done"


def fix(seed: int) -> tuple[list[Commit], dict[str, str], str]:
    """A history with a release, the release's files with the fix, and the fix's title."""
    draw = draws("fix", seed)
    rate, name = draw.choice((5, 10, 20)), draw.choice(WORDS)
    body = "def price(total):\n    return total - total {sign} {rate}\n"
    old = f"# version {{version}}\n{body}"
    begin = {"price.py": old.format(version="1.0", sign="/", rate=rate), "NAME": f"{name}\n"}
    release = {**begin, "VERSION": "1.0.1\n"}
    more = {**begin, "price.py": old.format(version="2.0", sign="/", rate=rate), "NEW.md": "New\n"}
    fixed = {**more, "price.py": old.format(version="2.0", sign="//", rate=rate)}
    later = {**fixed, "NEW.md": "New, and more\n"}
    wanted = {**release, "price.py": old.format(version="1.0", sign="//", rate=rate)}
    title = f"Round the discount of {name} down"
    commits = [Commit("Begin", begin), Commit("Release 1.0.1", release, (0,)),
               Commit("Begin version 2", more, (0,)), Commit(title, fixed, (2,)),
               Commit("Write more", later, (3,))]  # fmt: skip
    return commits, wanted, title


async def port_fix(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a fix of main on the branch of a release."""
    commits, wanted, title = fix(seed)
    heads = await make(server, commits, {"main": 4, "release-1": 1})
    yield (
        f"In {REPO}, main has a commit {title!r}. Bring that fix, and no other change of main, to "
        "the branch release-1, as one commit with the same message. Leave main as it is, and "
        "release-1 checked out."
    )
    checks = await committed(server, "release-1", [heads["release-1"]], wanted)
    said = await git(server, "log", "-1", "--format=%B", "refs/heads/release-1")
    checks |= {
        "the message": said == title,
        "main": await git(server, "rev-parse", "refs/heads/main") == heads["main"],
        "checked out": await git(server, "symbolic-ref", "HEAD") == "refs/heads/release-1",
        "the working tree": await remaining(server) == worked(wanted),
    }
    yield graded(checks)


async def solve_fix(agent: Agent, seed: int = 0) -> str:
    """Look at the fix, check the release out, edit, and commit."""
    _, wanted, title = fix(seed)
    await agent.call("git_log", repo_path=REPO)
    await agent.call("git_show", repo_path=REPO, revision="main~1")
    await agent.call("git_checkout", repo_path=REPO, branch_name="release-1")
    await agent.call("read_text", path="price.py")
    await agent.call("write_text", path="price.py", text=wanted["price.py"])
    await agent.call("git_add", repo_path=REPO, files=["price.py"])
    await agent.call("git_commit", repo_path=REPO, message=title)
    return "done"


def lines(seed: int) -> tuple[list[Commit], dict[str, int], str, str, dict[str, str]]:
    """A history with branches, the title of a commit, the branch that has it, and the new files."""
    draw = draws("lines", seed)
    topic = draw.choice(WORDS)
    base = {"guide.md": f"# {topic}\n", "pending.md": "nothing yet\n"}
    commits = [Commit("Begin", base)]
    branches = {"main": 0}
    title = f"Explain {topic}"
    # A second branch has a commit of the same title, and another text.
    for number, name in enumerate(draw.sample(WORDS, 4)):
        said = title if number in (0, 1) else f"Draft {name}"
        files = {**base, "guide.md": f"# {topic}\n\n{name} {draw.randint(1, 99)}\n"}
        commits.append(Commit(said, files, (0,)))
        commits.append(
            Commit(f"Polish {name}", {**files, f"{name}.md": "x\n"}, (len(commits) - 1,))
        )
        branches[f"docs-{name}"] = len(commits) - 1
    branch = list(branches)[1]
    words = commits[1].files["guide.md"].splitlines()[-1]
    wanted = {**commits[2].files, "pending.md": f"see {words}\n"}
    return commits, branches, branch, words, wanted


async def choose_branch(server: ToolServerWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a pending change to be committed on the branch that it belongs to."""
    commits, branches, branch, words, wanted = lines(seed)
    heads = await make(server, commits, branches)
    await server.shell.write("repo/pending.md", wanted["pending.md"])
    before = await server.shell.run("git -C repo for-each-ref --format='%(refname)'")
    yield (
        f"In {REPO}, pending.md has a change that belongs to the branch whose guide.md has the "
        f"line {words!r}. Commit it there with the message 'Refer to the guide', as one commit, "
        "and leave that branch checked out. No other branch changes, and none is added."
    )
    checks = await committed(server, branch, [heads[branch]], wanted)
    said = await git(server, "log", "-1", "--format=%B", f"refs/heads/{branch}")
    told = await git(server, "for-each-ref", "--format=%(refname:short) %(objectname)")
    others = dict(line.split() for line in told.splitlines())
    others.pop(branch, None)
    checks |= {
        "the message": said == "Refer to the guide",
        "the refs": await names(server) == before.output.strip(),
        "the other branches": others == {n: h for n, h in heads.items() if n != branch},
        "checked out": await git(server, "symbolic-ref", "HEAD") == f"refs/heads/{branch}",
    }
    yield graded(checks)


async def solve_branch(agent: Agent, seed: int = 0) -> str:
    """Look at the branches, check one out, and commit."""
    _, branches, branch, _, _ = lines(seed)
    await agent.call("git_branch", repo_path=REPO, branch_type="local")
    for name in list(branches)[1:3]:
        await agent.call("git_show", repo_path=REPO, revision=f"{name}:guide.md")
    await agent.call("git_checkout", repo_path=REPO, branch_name=branch)
    await agent.call("git_add", repo_path=REPO, files=["pending.md"])
    await agent.call("git_commit", repo_path=REPO, message="Refer to the guide")
    return "done"


def declare() -> Environment:
    """Declare the environment, its templates and its editor."""
    env = Environment("servers-git", version="0.1.0", world=ToolServer([SERVER]))
    env.tool()(read_text)
    env.tool()(write_text)
    for template, oracle in (
        (commit_part, solve_part),
        (end_merge, solve_merge),
        (find_change, solve_change),
        (port_fix, solve_fix),
        (choose_branch, solve_branch),
    ):
        env.template()(template).oracle(oracle)
    return env
