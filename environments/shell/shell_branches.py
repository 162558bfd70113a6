"""A commit that broke something, to be found by bisection; and two branches to merge."""

import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

from shell_files import Seed, draws, fill, graded, need, put, run
from shell_repository import PEOPLE, Commit, git, history, make_repository
from shell_words import PRODUCTS, WORDS, words

from hud_mcp import Agent, Environment, Grade, ShellWorld, normalize

__all__ = ["bisect_case", "declare", "merge_case"]

CHECK = """#!/bin/sh
# Says how the commit is that is checked out in /workspace/repo: 0 good, 1 bad, 125 not to be told.
cd /workspace/repo || exit 125
said=$(python3 -B price.py 3 {total}) || exit 125
[ "$said" = "{wanted}" ]
"""
PRICE = '''"""Prices. {note}"""

import sys

LEAST = {least}
RATE = {rate}


def price(count, each):
    """What some cost, with the discount for {least} or more."""
    total = count * each
    return total - total // RATE if count {sign} LEAST else total

{more}
if __name__ == "__main__":
    print(price(int(sys.argv[1]), int(sys.argv[2])){end}
'''


@dataclass(frozen=True)
class BisectCase:
    """A history, and where in it something broke."""

    commits: list[Commit]
    check: str
    broken: int
    decoys: list[int]


def bisect_case(seed: int, level: str) -> BisectCase:
    """Draw a history in which one commit changes what is printed."""
    draw = draws(f"bisect/{level}", seed)
    count = 24 if level == "plain" else 60
    broken = draw.randint(count // 4, count - 6)
    rate, each = draw.choice((10, 20)), draw.randint(20, 99) * 10
    untold: set[int] = set()
    if level == "gaps":
        for first in (broken - 8, broken + 3, count - 4):
            untold |= set(range(first, first + draw.randint(2, 4)))
        untold -= {broken - 1, broken, count - 1, 0}
    commits: list[Commit] = []
    more, notes = "", ""
    for place in range(count):
        kind = draw.choice(("more", "notes", "words"))
        if kind == "more":
            more += f"\ndef {draw.choice(WORDS)}_{place}():\n    return {draw.randint(1, 99)}\n\n"
        notes += f"{words(draw, 5)}\n" if kind == "notes" else ""
        text = PRICE.format(
            note=words(draw, 2).capitalize() + ".",
            least=3,
            rate=rate,
            sign=">" if place >= broken else ">=",
            more=more,
            end="" if place in untold else ")",
        )
        verb = draw.choice(("Tidy", "Refactor", "Document", "Rename in", "Simplify"))
        title = f"{verb} {draw.choice(('prices', 'notes', 'output'))}: {words(draw, 2)}"
        parents = [place - 1] if place else []
        files = {"price.py": text, "NOTES.md": notes or "Notes.\n"}
        commits.append(Commit(title, files, parents, draw.choice(PEOPLE)))
    decoy = min(broken + 5, count - 2)
    commits[decoy] = Commit("Break the discount on purpose, to be reverted", commits[decoy].files,
                            commits[decoy].parents)  # fmt: skip
    wanted = 3 * each - 3 * each // rate
    check = CHECK.format(total=each, wanted=wanted)
    decoys = [broken - 1, broken + 1, decoy] if level == "plain" else [broken - 1, decoy]
    return BisectCase(commits, check, broken, decoys)


async def find_breaking(
    shell: ShellWorld, seed: Seed = 0, level: Literal["plain", "gaps"] = "plain"
) -> AsyncGenerator[str | float]:
    """Ask for the commit since which a check fails."""
    case = bisect_case(seed, level)
    await need(shell, "git")
    await make_repository(shell, case.commits, {"v1.0": 0})
    await fill(shell, {"check.sh": case.check})
    every = (await git(shell, "git rev-list --reverse main")).split()
    answer = yield (
        "In the git repository /workspace/repo, `sh /workspace/check.sh` exits with 0 for a good "
        "commit, with 1 for a bad one, and with 125 where it cannot tell. The tag v1.0 is good, "
        "and main is bad: one commit between them broke it. Answer with the hash of that commit "
        "alone, with at least ten digits."
    )
    given = normalize(answer)
    yield float(10 <= len(given) <= 40 and every[case.broken].startswith(given))  # noqa: PLR2004


async def solve_breaking(agent: Agent) -> str:
    """Bisect, and look at what is found."""
    await run(agent, "cat check.sh; cd repo; git log --oneline | head -70; git status -sb")
    await run(agent, "sh check.sh; echo $?; cd repo; git checkout -q v1.0; sh ../check.sh; echo $?")
    await run(agent, "cd repo && git bisect start main v1.0")
    said = await run(agent, "cd repo && git bisect run sh ../check.sh")
    found = next(line.split()[0] for line in said.splitlines() if "first bad commit" in line)
    await run(agent, f"cd repo && git show {found}")
    await run(agent, "cd repo && git bisect reset && git status -sb")
    return found


SHOP = '''"""Prints what a cart costs. Usage: python3 shop.py NAME=COUNT…"""

import configparser
import sys

PRICES = {prices}


def {name}(product, count):
    """What so many of a product cost."""
    return PRICES[product] * count{extra}


def main():
    settings = configparser.ConfigParser()
    settings.read("settings.ini")
    total = 0
    for word in sys.argv[1:]:
        product, _, count = word.partition("=")
        total += {name}(product, int(count))
    {gift}print(total + settings.getint("shop", "fee"))


{more}if __name__ == "__main__":
    main()
'''
GIFT = '''def wrapped(words):
    """What wrapping costs: a tenth of the dearest product, once."""
    return max({name}(word.partition("=")[0], 1) for word in words) // 10


'''


@dataclass(frozen=True)
class MergeCase:
    """Two branches, and what their merge is to have."""

    commits: list[Commit]
    settings: dict[str, int]
    changes: list[str]
    prices: dict[str, int]
    rise: int
    branch: str


def merge_case(seed: int) -> MergeCase:
    """Draw two branches that differ in three files."""
    draw = draws("merge", seed)
    branch = f"gifts-{draw.choice(WORDS)}"
    prices = {product: draw.randint(100, 900) for product in draw.sample(PRODUCTS, 4)}
    keys = ["fee", *draw.sample(WORDS, 5)]
    rise = draw.randint(5, 40)
    base = {key: draw.randint(10, 50) for key in keys}
    sides = [{key: base[key] + draw.choice((0, 3, 7, 11, -4)) for key in keys} for _ in range(2)]
    for index, side in enumerate(sides):
        side["fee"] = base["fee"] + draw.choice((20, 30)) + index
    entries = [f"- {words(draw, 4)}" for _ in range(5)]

    def shop(name: str, extra: str = "", *, gift: bool = False) -> str:
        more = GIFT.replace("{name}", name) if gift else ""
        call = "total += wrapped(sys.argv[1:])\n    " if gift else ""
        return SHOP.format(prices=prices, name=name, extra=extra, gift=call, more=more)

    def tree(values: dict[str, int], changes: list[str], text: str) -> dict[str, str]:
        lines = "".join(f"{key} = {value}\n" for key, value in values.items())
        listed = "".join(f"{line}\n" for line in ["# Changes", "", *changes])
        return {"settings.ini": f"[shop]\n{lines}", "CHANGES.md": listed, "shop.py": text}

    first = Commit("Begin", tree(base, entries[:1], shop("cost")))
    mine = tree(sides[0], [entries[1], entries[2], entries[0]], shop("price", f" + {rise}"))
    theirs = tree(sides[1], [entries[3], entries[4], entries[0]], shop("cost", gift=True))
    commits = [
        first,
        Commit("Rename cost to price, and raise it", mine, [0], PEOPLE[1]),
        Commit("Wrap gifts", theirs, [0], PEOPLE[2], branch),
    ]
    best = {key: max(sides[0][key], sides[1][key]) for key in keys}
    return MergeCase(commits, best, [*entries[1:5], entries[0]], prices, rise, branch)


async def merge_branches(shell: ShellWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for a merge in which both sides' work goes on working."""
    case = merge_case(seed)
    await need(shell, "git")
    await make_repository(shell, case.commits)
    tips = (await git(shell, f"git rev-parse main {case.branch}")).split()
    yield (
        f"In the git repository /workspace/repo, merge the branch {case.branch} into main, with a "
        "merge commit whose first parent is main's last commit. In settings.ini, each key has the "
        "greater of both branches' numbers. CHANGES.md has all entries: first those that are new "
        "on main, then those that are new on the other branch, then the old one. shop.py does what "
        "both branches want: prices as main computes them, wrapping as on the other branch with "
        "these prices, and no function `cost`. Leave the other branch as it is."
    )
    parts = {"commit": False, "settings": False, "changes": False, "shop": False}
    draw = draws("carts", seed)
    async with shell.verifier(copy=["repo/.git"]) as clean:
        now = await history(clean)
        tip = now.tips.get("refs/heads/main", "")
        parents = now.fields.get(tip, ([],))[0]
        harmless = now.tips.get(f"refs/heads/{case.branch}") == tips[1] and len(now.tips) == len(
            tips
        )
        texts: dict[str, str] = {}
        for name in ("settings.ini", "CHANGES.md", "shop.py") if parents == tips else ():
            blob = await clean.run(["git", "cat-file", "blob", f"{tip}:{name}"], cwd="repo")
            texts[name] = blob.stdout
    parts["commit"] = parents == tips
    if parts["commit"]:
        parts["settings"] = read_settings(texts["settings.ini"]) == case.settings
        lines = [line.strip() for line in texts["CHANGES.md"].splitlines() if line.strip()]
        parts["changes"] = lines == ["# Changes", *case.changes]
        parts["shop"] = await sells(shell, texts, case, draw)
    yield graded(parts, harmless=harmless)


def read_settings(text: str) -> dict[str, int]:
    """The numbers of the settings; nothing where there is anything else."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines[:1] != ["[shop]"]:
        return {}
    try:
        return {key.strip(): int(value) for key, _, value in (x.partition("=") for x in lines[1:])}
    except ValueError:
        return {}


async def sells(
    shell: ShellWorld, texts: dict[str, str], case: MergeCase, draw: random.Random
) -> bool:
    """Whether the merged program computes as both branches want; its text is put as data."""
    if "def cost" in texts["shop.py"]:
        return False
    async with shell.verifier() as clean:
        fee = draw.randint(100, 999)
        ini = f"[shop]\nfee = {fee}\n"
        await put(clean, {"shop.py": texts["shop.py"], "settings.ini": ini})
        for _ in range(4):
            cart = {name: draw.randint(1, 9) for name in draw.sample(sorted(case.prices), 2)}
            costs = [case.prices[name] * count + case.rise for name, count in cart.items()]
            gift = max(case.prices[name] + case.rise for name in cart) // 10
            told = [f"{name}={count}" for name, count in cart.items()]
            done = await clean.run(["python3", "shop.py", *told], timeout_s=20)
            if done.stdout.strip() != str(sum(costs) + gift + fee):
                return False
    return True


async def solve_merge(agent: Agent) -> str:
    """Merge, look at each conflict, and at what calls the renamed function."""
    await run(agent, "cd repo && git log --graph --stat --all")
    gifts = agent.prompt.partition("the branch ")[2].split()[0]
    await run(agent, f"cd repo && git diff main...{gifts}")
    await run(agent, f"cd repo && git diff {gifts}...main")
    await run(agent, f"cd repo && git merge {gifts}; git status -s")
    await run(agent, "cd repo && cat settings.ini CHANGES.md shop.py")
    sides: list[dict[str, int]] = []
    lines: list[list[str]] = []
    for branch in ("main", gifts):
        sides.append(read_settings(await run(agent, f"cd repo && git show {branch}:settings.ini")))
        text = await run(agent, f"cd repo && git show {branch}:CHANGES.md")
        lines.append([line for line in text.splitlines() if line.startswith("-")])
    best = {key: max(value, sides[1][key]) for key, value in sides[0].items()}
    ini = "[shop]\n" + "".join(f"{key} = {value}\n" for key, value in best.items())
    await agent.tool("write_file", path="repo/settings.ini", content=ini)
    both = [*lines[0][:-1], *lines[1][:-1], lines[0][-1]]
    listed = "# Changes\n\n" + "".join(f"{line}\n" for line in both)
    await agent.tool("write_file", path="repo/CHANGES.md", content=listed)
    await run(
        agent, "cd repo && git checkout -q --theirs shop.py 2>&1; grep -n 'cost\\|<<<' shop.py"
    )
    raised = await run(agent, "cd repo && git show main:shop.py | grep 'PRICES\\[product\\]'")
    rename = f"s/cost(/price(/; s/^    return PRICES.*/    {raised.strip()}/"
    await run(agent, f"cd repo && sed -i '{rename}' shop.py")
    await run(agent, f"cd repo && cat shop.py && python3 shop.py; git diff {gifts} -- shop.py")
    await run(
        agent, "cd repo && git add -A . && git commit -q -m 'Merge gifts' && git log --graph -3"
    )
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    bisect = env.template(description="Find the commit that broke a check")(find_breaking)
    bisect.oracle(solve_breaking)
    env.template(description="Merge two branches that differ")(merge_branches).oracle(solve_merge)
