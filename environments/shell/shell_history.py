"""A git history to mend: what was lost, a wrong author, and a key that must go."""

import random
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Literal

from shell_files import Seed, draws, graded, need, run
from shell_repository import (
    PEOPLE,
    Commit,
    History,
    git,
    history,
    make_repository,
    wanted_history,
)
from shell_words import FIRST_NAMES, LAST_NAMES, WORDS, words

from hud_mcp import Agent, Environment, Grade, ShellWorld, Verifier

__all__ = ["declare", "notes_history"]

How = Literal["reset", "branch", "stash"]
What = Literal["author", "secret"]


def notes_history(draw: random.Random, count: int) -> list[Commit]:
    """A straight history of notes: each commit changes one file or adds one."""
    files: dict[str, str] = {"README.md": f"# {words(draw, 3)}\n"}
    commits = [Commit("Begin", dict(files), author=draw.choice(PEOPLE))]
    for place in range(1, count):
        name = draw.choice((*files, f"notes/{draw.choice(WORDS)}.md"))
        files[name] = files.get(name, "") + f"{words(draw, 6)}\n"
        verb = draw.choice(("Extend", "Correct", "Reword"))
        title = f"{verb} {name.rpartition('/')[2]}: {words(draw, 2)}"
        commits.append(Commit(title, dict(files), [place - 1], draw.choice(PEOPLE)))
    return commits


def lost_case(seed: int, how: str) -> tuple[list[Commit], str, str, str]:
    """Commits, the title of what was lost, its file and text."""
    draw = draws(f"lost/{how}", seed)
    commits = notes_history(draw, 7)
    name = f"plans/{draw.choice(WORDS)}.txt"
    text = "".join(f"{words(draw, 6)}\n" for _ in range(4))
    return commits, f"Plan the {words(draw, 2)}", name, text


async def lose(shell: ShellWorld, seed: int, how: str) -> str:
    """Make the repository and lose something; return the hash of what was lost."""
    commits, title, name, text = lost_case(seed, how)
    draw = draws(f"lose/{how}", seed)
    await make_repository(shell, commits)
    await shell.write(f"repo/{name}", text)
    add = f"git add {name.split('/')[0]}"
    if how == "stash":
        await git(shell, add, f"git stash push -q -m '{title}'", time=90_000)
        for index in range(4):
            near = f"{text}{words(draw, 4)}\n" if index % 2 else f"{words(draw, 9)}\n"
            await shell.write(f"repo/{name}", near)
            stash = f"git stash push -q -m '{draw.choice(WORDS)} {title[9:]} {index}'"
            await git(shell, add, stash, time=91_000 + index)
        lost = await git(shell, "git rev-parse stash@{4}")
        await git(shell, "git stash clear")
        return lost.strip()
    author = f"--author='{PEOPLE[1]}'"
    branch = "git checkout -q -b plans" if how == "branch" else "true"
    await git(shell, branch, add, f"git commit -q {author} -m '{title}'", time=90_000)
    if how == "branch":
        await shell.write(f"repo/{name}", f"{text}More.\n")
        await git(shell, add, f"git commit -q {author} -m '{title}, more'", time=91_000)
    lost = await git(shell, "git rev-parse HEAD")
    if how == "branch":
        await git(shell, "git checkout -q main", "git branch -q -D plans", time=92_000)
    else:
        await git(shell, "git reset -q --hard HEAD~1", time=92_000)
    await shell.write("repo/README.md", commits[-1].files["README.md"] + f"{words(draw, 4)}\n")
    await git(shell, "git commit -q -a -m 'Say more'", time=93_000)
    return lost.strip()


LOST = {
    "reset": "A commit with the title '{title}' was lost from the branch main of the git "
    "repository /workspace/repo. Bring its change back: as one new commit on top of what main has "
    "now, with the same title and author.",
    "branch": "In the git repository /workspace/repo the branch plans was deleted by mistake. Its "
    "last commit was '{title}, more'. Bring the branch back as it was, at the same commit.",
    "stash": "In the git repository /workspace/repo all stashes were dropped. One of them had the "
    "message '{title}', exactly so. Add what it changed to the branch main: as one new commit on "
    "top, with that message as its title.",
}


async def find_lost(
    shell: ShellWorld, seed: Seed = 0, how: How = "reset"
) -> AsyncGenerator[str | Grade]:
    """Ask for a commit, a branch or a stash that was lost."""
    _, title, name, text = lost_case(seed, how)
    await need(shell, "git")
    lost = await lose(shell, seed, how)
    before = (await git(shell, "git rev-parse main")).strip()
    yield LOST[how].format(title=title) + (
        " Leave the other commits and branches as they are, and make no others."
    )
    async with shell.verifier(copy=["repo/.git"]) as clean:
        now = await history(clean)
        tip = now.tips.get("refs/heads/main", "")
        added = await changed_files(clean, before, tip) if tip and tip != before else {}
    heads = {ref for ref in now.tips if ref.startswith("refs/heads/")}
    if how == "branch":
        back = now.tips.get("refs/heads/plans") == lost
        yield graded({"branch": back}, harmless=tip == before and len(heads) <= 2)  # noqa: PLR2004
        return
    parents, author, _, _, message = now.fields.get(tip, ([], "", "", "", ""))
    right = parents == [before] and message.partition("\n")[0] == title and added == {name: text}
    right = right and (how == "stash" or author == PEOPLE[1])
    yield graded({"commit": right}, harmless=heads == {"refs/heads/main"})


async def changed_files(clean: Verifier, old: str, new: str) -> dict[str, str]:
    """What differs between two commits, with the text that it has in the new one."""
    look = ["git", "diff", "--no-ext-diff", "--no-textconv", "--name-only", "-z", old, new]
    names = (await clean.run(look, cwd="repo")).stdout.split("\0")[:-1]
    show = {
        name: await clean.run(["git", "cat-file", "blob", f"{new}:{name}"], cwd="repo")
        for name in names[:5]
    }
    return {name: done.stdout if done.exit_code == 0 else "" for name, done in show.items()}


async def solve_lost(agent: Agent, how: str) -> str:
    """Look at the reflog, or at what nothing reaches, and bring it back."""
    title = agent.prompt.partition("'")[2].partition("'")[0]
    await run(agent, "cd repo && git status -sb && git log --oneline --all")
    await run(agent, "cd repo && git reflog")
    if how == "stash":
        await run(agent, "cd repo && git fsck --no-reflogs --unreachable | grep commit")
        every = "$(git fsck --no-reflogs --unreachable | awk '/commit/ {print $3}')"
        told = await run(agent, f"cd repo && git log --no-walk --format='%h %s' {every}")
        lines = [line.split(" ", 1) for line in told.splitlines()]
        (found,) = (name for name, said in lines if said == f"On main: {title}")
        await run(agent, f"cd repo && git show --stat {found} && git diff {found}^1 {found}")
        await run(agent, f"cd repo && git stash apply --index {found} && git status -s")
        await run(agent, f"cd repo && git commit -q -m '{title}'")
    else:
        told = await run(agent, "cd repo && git reflog --format='%h %gs' HEAD")
        found = next(line.split()[0] for line in told.splitlines() if line.endswith(title))
        await run(agent, f"cd repo && git show {found}")
        bring = f"git cherry-pick {found}" if how == "reset" else f"git branch plans {found}"
        await run(agent, f"cd repo && {bring}")
    await run(agent, "cd repo && git status -sb && git log --stat -3")
    await run(agent, "cd repo && git log --oneline --graph --all")
    return "done"


def rewrite_case(
    seed: int, what: str
) -> tuple[list[Commit], list[Commit], dict[str, int], str, str]:
    """Commits as they are and as they are to be, tags, what is to go, and what comes for it."""
    draw = draws(f"rewrite/{what}", seed)
    commits = notes_history(draw, 12)
    side = replace(commits[8], message=f"Try {words(draw, 2)}", parents=[6], branch="trial")
    last = dict(commits[-1].files)
    merge = Commit("Merge the trial", {**last, "trial.txt": "It went well.\n"}, [11, 12])
    after = Commit("Finish", {**merge.files, "END.md": "The end.\n"}, [13], PEOPLE[1])
    commits += [side, merge, after]
    tags = {"v1.0": 3, "v1.1": 7, "trial-end": 12}
    if what == "author":
        name = f"{draw.choice(FIRST_NAMES)} {draw.choice(LAST_NAMES)}"
        wrong, good = f"{name} <root@localhost>", f"{name} <{name.split()[1].lower()}@example.org>"
        near = {5: f"{name} <root@localhost.example>", 10: "Bruno Keller <root@localhost>"}
        authors = dict.fromkeys((1, 4, 7, 9, 12), wrong) | near
        commits = [
            replace(each, author=authors.get(place, each.author))
            for place, each in enumerate(commits)
        ]
        fixed = [
            replace(each, author=good if each.author == wrong else each.author) for each in commits
        ]
        return commits, fixed, tags, wrong, good
    key = f"sk-{draw.getrandbits(80):020x}"
    commits = [with_key(each, place, key) for place, each in enumerate(commits)]
    fixed = [
        replace(
            each,
            message=each.message.replace(key, "REMOVED"),
            files={path: text.replace(key, "REMOVED") for path, text in each.files.items()},
        )
        for each in commits
    ]
    return commits, fixed, tags, key, "REMOVED"


def with_key(commit: Commit, place: int, key: str) -> Commit:
    """A commit with a key in it, at some places of the history."""
    files = dict(commit.files)
    if place in (2, 3, 4, 5, 6):
        files["config/service.ini"] = f"[api]\nkey = {key}\nretries = {place}\n"
    elif place in (7, 8, 9, 10, 11, 13, 14):
        files["config/service.ini"] = "[api]\nkey = $API_KEY\nretries = 7\n"
    if place in (5, 6, 7, 8):
        files["old notes/curl.md"] = f"    curl -H 'Key: {key}' https://api.example\n"
    if place == 12:  # noqa: PLR2004  # the branch of the trial
        files["trial.txt"] = f"It went well with {key}.\n"
    message = f"{commit.message}\n\nThe key {key} is still in it." if place == 6 else commit.message  # noqa: PLR2004
    return replace(commit, files=files, message=message)


async def rewrite_history(
    shell: ShellWorld, seed: Seed = 0, what: What = "author"
) -> AsyncGenerator[str | Grade]:
    """Ask for a history with another author, or without a key."""
    commits, fixed, tags, old, new = rewrite_case(seed, what)
    await need(shell, "git")
    await make_repository(shell, commits, tags)
    told = (
        f"Commits whose author is exactly '{old}' are to have the author '{new}'."
        if what == "author"
        else f"The key {old} must go: in every file and every message of every commit, it is to "
        "be replaced by the word REMOVED. No commit that a ref reaches may hold the key then."
    )
    yield (
        f"Rewrite the history of the git repository /workspace/repo. {told} All else stays: the "
        "files, the messages, the authors and their dates, the order and parents of the commits, "
        "and the branches and tags, each at the commit that comes for its old one. Who committed, "
        "and when, does not matter."
    )
    async with shell.verifier(copy=["repo/.git"]) as clean:
        wanted = await wanted_history(clean, fixed, tags)
        now = await history(clean)
    yield graded({"history": is_rewritten(now, wanted, everywhere=what == "secret")})


def is_rewritten(now: History, wanted: History, *, everywhere: bool) -> bool:
    """Whether branches and tags are as they are to be; and that other refs reach nothing else."""
    places = ("refs/heads/", "refs/tags/")
    named = {ref: digest for ref, digest in now.refs.items() if ref.startswith(places)}
    known = set(wanted.commits.values())
    return named == wanted.refs and (not everywhere or set(now.commits.values()) <= known)


async def solve_rewrite(agent: Agent, what: str) -> str:
    """Find where it is, rewrite all branches and tags, and remove what still has it."""
    told = agent.prompt
    old = told.partition("exactly '")[2] if what == "author" else told.partition("The key ")[2]
    old = old.partition("'" if what == "author" else " ")[0]
    new = told.partition("the author '")[2].partition("'")[0]
    await run(agent, "cd repo && git log --all --graph --format='%h %an <%ae> %d %s'")
    await run(agent, "cd repo && git for-each-ref; git -C repo status -s")
    look = "git log --all --format='%h %an <%ae>' | grep -c" if what == "author" else "git grep -c"
    every = "" if what == "author" else " $(git rev-list --all)"
    await run(agent, f"cd repo && {look} -F '{old}'{every}")
    if what == "author":
        name, _, address = new.rstrip(">").partition(" <")
        test = f'[ "$GIT_AUTHOR_NAME <$GIT_AUTHOR_EMAIL>" = "{old}" ]'
        lines = f'if {test}; then GIT_AUTHOR_NAME="{name}"; GIT_AUTHOR_EMAIL="{address}"; fi'
        how = f"--env-filter '{lines}'"
    else:
        await run(agent, f"cd repo && git log --all --format='%h %B' | grep -n '{old}'")
        swap = f"sed -i s/{old}/REMOVED/g"
        how = (
            f"--tree-filter 'grep -rlZ {old} . | xargs -0 -r {swap}' "
            f"--msg-filter 'sed s/{old}/REMOVED/g'"
        )
    quiet = "FILTER_BRANCH_SQUELCH_WARNING=1"
    command = f"{quiet} git filter-branch -f {how} --tag-name-filter cat -- --all"
    await run(agent, f"cd repo && {command} 2>&1 | tail -5")
    await run(agent, "cd repo && git for-each-ref")
    drop = "git for-each-ref --format='delete %(refname)' refs/original | git update-ref --stdin"
    await run(agent, f"cd repo && {drop} && git for-each-ref")
    await run(agent, "cd repo && git log --all --graph --format='%h %an <%ae> %d %s'")
    await run(agent, f"cd repo && {look} -F '{old}'{every}; git status -s")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    env.template(description="Bring back what a repository lost")(find_lost).oracle(solve_lost)
    rewrite = env.template(description="Rewrite a repository's history")(rewrite_history)
    rewrite.oracle(solve_rewrite)
