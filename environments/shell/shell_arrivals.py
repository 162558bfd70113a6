"""Work while something arrives: files are delivered, a colleague saves a file, another commits."""

import configparser
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from shell_files import (
    Files,
    Seed,
    arrive,
    draws,
    fill,
    graded,
    intact,
    need,
    read_small,
    run,
    scan,
)
from shell_repository import Commit, History, git, history, make_repository
from shell_words import PRODUCTS, WORDS, a_word, words

from hud_mcp import Agent, BrokenByAgent, Environment, Grade, ShellWorld, Verifier

__all__ = ["declare", "deliveries_case", "push_case", "settings_case"]

Told = Annotated[bool, Field(description="Whether a reply says that something has come.")]
Level = Literal["plain", "corrected"]
END = "END OF DAY"
_LOOKS = 12

LISTS = """# Lists of deliveries

A list has one line for each thing that came: `product,count`. The same product may come more than
once. Lists are numbered from 1 in the order in which they come. The last list of a day ends with
the line `END OF DAY`.
"""
CORRECTIONS = """
A line `list N: product,count` corrects the list N: all that it says of this product is replaced by
this count.
"""


@dataclass(frozen=True)
class Deliveries:
    """The day's lists in their order, each with its number, and what came in all."""

    lists: list[str]
    totals: str
    readme: str

    def files(self, *numbers: int) -> Files:
        """Some of the lists, by their numbers."""
        return {f"deliveries/list-{n}.csv": self.lists[n - 1] for n in numbers}


def deliveries_case(seed: int, level: str) -> Deliveries:
    """Draw three lists; a corrected day's last list corrects a product of its first one."""
    draw = draws(f"deliveries/{level}", seed)
    names = draw.sample(PRODUCTS, 6)
    counts = [Counter[str]() for _ in range(3)]
    lines: list[list[str]] = []
    for number in range(3):
        # The first list has each of three products twice.
        chosen = names[:3] * 2 if number == 0 else draw.sample(names, 5)
        rows = [(name, draw.randint(2, 40)) for name in chosen]
        for name, count in rows:
            counts[number][name] += count
        lines.append([f"{name},{count}" for name, count in rows])
    if level == "corrected":
        name, count = names[1], draw.randint(41, 60)
        counts[0][name] = count
        lines[2].insert(2, f"list 1: {name},{count}")
    lines[2].append(END)
    total = sum(counts, Counter[str]())
    totals = "".join(f"{name},{total[name]}\n" for name in sorted(total))
    readme = LISTS + (CORRECTIONS if level == "corrected" else "")
    return Deliveries(["".join(f"{line}\n" for line in each) for each in lines], totals, readme)


async def await_deliveries(
    shell: ShellWorld, seed: Seed = 0, level: Level = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for the sums of lists, of which two come while one works."""
    case = deliveries_case(seed, level)
    readme = {"deliveries/README.md": case.readme}
    out = f"{a_word('deliveries', seed)}.csv"
    await need(shell)
    await fill(shell, {**readme, **case.files(1)})
    yield (
        "Today's deliveries come as lists into /workspace/deliveries, one after the other, between "
        "your commands; /workspace/deliveries/README.md explains them. Once the day's last list is "
        f"there, write to /workspace/{out} how many of each product came today in all: lines "
        "`product,count`, sorted by product, and nothing else. Leave the lists as they are."
    )
    async with shell.verifier(copy=["deliveries", out]) as clean:
        seen = await scan(clean, "deliveries")
        said = await read_small(clean, out)
    harmless = intact(seen, {**readme, **case.files(1, 2, 3)}, "deliveries")
    right = said is not None and said.decode("utf-8", "replace").split() == case.totals.split()
    yield graded({"sums": right}, harmless=harmless)


async def second_list_comes(shell: ShellWorld, seed: int, level: str) -> None:
    """Bring the second list."""
    await arrive(shell, deliveries_case(seed, level).files(2))


async def last_list_comes(shell: ShellWorld, seed: int, level: str) -> None:
    """Bring the third list, with which the day ends."""
    await arrive(shell, deliveries_case(seed, level).files(3))


async def solve_deliveries(agent: Agent) -> str:
    """Look until the day has ended, then add up."""
    await run(agent, "cat deliveries/README.md; ls -l deliveries")
    said = ""
    for _ in range(_LOOKS):
        said = await run(agent, "for n in 1 2 3; do echo ==; cat deliveries/list-$n.csv; done")
        if END in said:
            break
    counts = [Counter[str]() for _ in range(3)]
    fixed: dict[tuple[int, str], int] = {}
    for number, part in enumerate(said.split("==\n")[1:4]):
        for line in part.split("\n"):
            name, comma, count = line.rpartition(",")
            if not comma or not count.isdigit():
                continue
            if name.startswith("list "):
                where, _, product = name.removeprefix("list ").partition(": ")
                fixed[int(where) - 1, product] = int(count)
            else:
                counts[number][name] += int(count)
    for (number, product), count in fixed.items():
        counts[number][product] = count
    total = sum(counts, Counter[str]())
    text = "".join(f"{name},{total[name]}\n" for name in sorted(total))
    out = agent.prompt.partition("write to /workspace/")[2].split()[0]
    await agent.tool("write_file", path=out, content=text)
    return "done"


@dataclass(frozen=True)
class SettingsCase:
    """A file of settings, what is to be set in it, and what a colleague sets."""

    text: str
    section: str
    wanted: dict[str, int]
    his: str
    his_value: int

    @property
    def saved(self) -> str:
        """The file as the colleague saves it: with his setting, and nobody else's."""
        lines = [
            f"{self.his} = {self.his_value}" if line.startswith(f"{self.his} = ") else line
            for line in self.text.splitlines()
        ]
        return "\n".join([*lines, f"# {self.his}: agreed with the night shift", ""])


def settings_case(seed: int) -> SettingsCase:
    """Draw settings of a service: two are to be changed, the colleague changes a third."""
    draw = draws("shared settings", seed)
    section, *names = draw.sample(WORDS, 8)
    values = {name: draw.randint(10, 99) for name in names}
    lines = [f"[{section}]", f"# {words(draw, 4)}"]
    lines += [f"{name} = {value}" for name, value in values.items()]
    wanted = {name: values[name] + draw.randint(100, 900) for name in names[1:3]}
    text = "\n".join([*lines, ""])
    return SettingsCase(text, section, wanted, names[4], values[names[4]] + draw.randint(100, 900))


async def share_settings(
    shell: ShellWorld,
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
) -> AsyncGenerator[str | Grade]:
    """Ask for two settings in a file that a colleague saves meanwhile, from an older text."""
    case = settings_case(seed)
    await need(shell)
    await fill(shell, {"service.ini": case.text})
    settings = " and ".join(f"{name} to {value}" for name, value in case.wanted.items())
    yield (
        f"In /workspace/service.ini, set {settings}. Bruno works on the same file, in an editor "
        "that knows nothing of other people's changes: he saves it once, soon after you. When you "
        "answer, the file must have your settings and the one that he changes, and every other "
        "setting as it is now."
    )
    async with shell.verifier(copy=["service.ini"]) as clean:
        said = await read_small(clean, "service.ini")
    wanted = _settings(case.saved) | {name: str(value) for name, value in case.wanted.items()}
    found = _settings((said or b"").decode("utf-8", "replace"))
    yield graded({"both settings": found == wanted})


def _settings(text: str) -> dict[str, str]:
    """The settings of a file, of all its sections; nothing where it cannot be read."""
    found = configparser.ConfigParser(interpolation=None)
    try:
        found.read_string(text)
    except configparser.Error:
        return {}
    return {name: value for part in found.sections() for name, value in found[part].items()}


async def has_saved(shell: ShellWorld, seed: int) -> bool:
    """Whether the agent has changed the file."""
    return await shell.read("service.ini") != settings_case(seed).text


async def bruno_saves(shell: ShellWorld, seed: int, *, told: bool) -> str | None:
    """Save the colleague's text over what is there."""
    await shell.write("service.ini", settings_case(seed).saved)
    return "Bruno has saved service.ini." if told else None


async def solve_settings(agent: Agent) -> str:
    """Set both, look what Bruno has made of it, and set both again."""
    asked = agent.prompt.partition("set ")[2].partition(". Bruno")[0]
    pairs = [each.split(" to ") for each in asked.split(" and ")]
    edits = " ".join(f"-e 's/^{name} = .*/{name} = {value}/'" for name, value in pairs)
    await run(agent, "cat service.ini")
    for _ in range(_LOOKS):
        await run(agent, f"sed -i {edits} service.ini")
        said = await run(agent, "cat service.ini")
        if all(f"{name} = {value}" in said for name, value in pairs):
            break
    return "done"


@dataclass(frozen=True)
class PushCase:
    """A repository of prices, and the one that a colleague pushes."""

    commits: list[Commit]
    prices: dict[str, int]
    new: tuple[str, int]

    @property
    def total(self) -> int:
        """The sum of all prices, with the colleague's."""
        return sum(self.prices.values()) + self.new[1]


def push_case(seed: int) -> PushCase:
    """Draw a history in which prices came one after the other."""
    draw = draws("push", seed)
    *names, last = draw.sample(PRODUCTS, 7)
    prices: dict[str, int] = {}
    commits: list[Commit] = []
    for place, name in enumerate(names):
        prices[name] = draw.randint(100, 900)
        files = {f"prices/{each}.txt": f"{price}\n" for each, price in prices.items()}
        parents = [place - 1] if place else []
        commits.append(Commit(f"Add the price of the {name}", {**files, "TOTAL": "0\n"}, parents))
    return PushCase(commits, prices, (last, draw.randint(100, 900)))


_REMOTE = """
git clone -q --bare . ../origin.git
git remote add origin ../origin.git
git fetch -q origin
git branch -q --set-upstream-to=origin/main main
"""
_PUSH = """
set -e
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME="Ada Dahl" GIT_AUTHOR_EMAIL=ada@example.org
export GIT_COMMITTER_NAME="Ada Dahl" GIT_COMMITTER_EMAIL=ada@example.org
export GIT_AUTHOR_DATE="1709294400 +0000" GIT_COMMITTER_DATE="1709294400 +0000"
place=$(mktemp -d); trap 'rm -rf "$place"' EXIT
git clone -q --branch main origin.git "$place/work"
cd "$place/work"
echo "$2" > "prices/$1.txt"
git add prices; git commit -q -m "Add the price of the $1"; git push -q origin main
"""


async def push_total(
    shell: ShellWorld,
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
) -> AsyncGenerator[str | Grade]:
    """Ask for a commit on top of a branch to which a colleague pushes meanwhile."""
    case = push_case(seed)
    await need(shell, "git")
    await make_repository(shell, case.commits)
    base = (await git(shell, *_REMOTE.strip().splitlines(), "git rev-parse main")).split()[-1]
    first, *_, last = case.prices
    yield (
        "The git repository /workspace/repo has the remote origin, which is "
        "/workspace/origin.git. The file TOTAL on its branch main is to have the sum of all "
        "numbers in prices/*.txt, and nothing else. The first price that came is that of the "
        f"{first}, the last one that of the {last}. Ada pushes one more to main soon, while you "
        "work. Write TOTAL, commit it and push it, so that on origin's main it is right for all "
        "prices, with Ada's. All commits that are there stay as they are, and hers too. Make "
        "no merge commit."
    )
    async with shell.verifier(copy={"origin.git": "origin/.git"}) as clean:
        seen = await history(clean, "origin")
        right = await _is_pushed(clean, seen, case, base)
    yield graded({"the sum on main": right})


async def _is_pushed(clean: Verifier, seen: History, case: PushCase, base: str) -> bool:
    """Whether main has one line of commits from the base on, hers among them, and the sum."""
    tip = seen.tips.get("refs/heads/main", "")
    place, line = tip, list[str]()
    while place != base:
        parents = seen.fields[place][0] if place in seen.fields else []
        if len(parents) != 1:
            return False
        line.append(" ".join(seen.fields[place][1:5:3]))
        place = parents[0]
    name, price = case.new
    hers = f"Ada Dahl <ada@example.org> Add the price of the {name}"
    if line.count(hers) != 1 or len(line) < 2:  # noqa: PLR2004  # hers, and one of the agent's
        return False
    files = {f"prices/{each}.txt": f"{n}\n" for each, n in {**case.prices, name: price}.items()}
    listed = await clean.run(["git", "ls-tree", "-r", "--full-tree", tip], cwd="origin")
    found = {row.split("\t")[-1]: row.split()[2] for row in listed.stdout.splitlines()}
    total = found.pop("TOTAL", "")
    if found != {path: _blob(text) for path, text in files.items()}:
        return False
    said = await clean.run(["git", "cat-file", "blob", total], cwd="origin")
    return said.exit_code == 0 and said.stdout.strip() == str(case.total)


def _blob(text: str) -> str:
    """The hash that git gives to a file."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


async def ada_pushes(shell: ShellWorld, seed: int, *, told: bool) -> str | None:
    """Push the colleague's price.

    Raises:
        BrokenByAgent: The remote is no repository any more that takes it.
    """
    name, price = push_case(seed).new
    done = await shell.run(["bash", "-c", _PUSH, "-", name, str(price)])
    if done.exit_code != 0:
        raise BrokenByAgent(f"Nothing can be pushed to origin.git: {done.output[-200:]}")
    return "Ada: I have pushed my price to main." if told else None


async def solve_push(agent: Agent) -> str:
    """Push the sum, look whether Ada has pushed, and push it anew on top of hers."""
    add = "cat prices/*.txt | awk '{ n += $1 } END { print n }' > TOTAL"
    await run(agent, "cd repo; git status -sb; git log --oneline | head; tail prices/* TOTAL")
    await run(
        agent, f"cd repo; {add}; git commit -qam 'Write the sum'; git log --oneline | head -1"
    )
    await run(agent, "cd repo; git push -q origin main; git status -sb")
    for _ in range(_LOOKS):
        said = await run(agent, "cd repo; git fetch -q; git log --format='%an %s' ..origin/main")
        if "Ada Dahl" in said:
            break
    await run(agent, f"cd repo; git pull -q --rebase; {add}; cat TOTAL; ls prices")
    await run(agent, "cd repo; git commit -qam 'Add the new price'; git push -q origin main")
    await run(agent, "cd repo; git fetch -q; git status -sb; git log --oneline origin/main | head")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file, and what happens in each."""
    deliveries = env.template(description="Add up what is delivered today")(await_deliveries)
    deliveries.oracle(solve_deliveries)
    deliveries.after(step=2)(second_list_comes)
    deliveries.after(step=4)(last_list_comes)
    settings = env.template(description="Change settings that a colleague changes too")(
        share_settings
    )
    settings.oracle(solve_settings)
    settings.when(has_saved)(bruno_saves)
    push = env.template(description="Push on top of a colleague's commit")(push_total)
    push.oracle(solve_push)
    push.after(step=3)(ada_pushes)
