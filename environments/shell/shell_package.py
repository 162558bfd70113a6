"""A Python package to repair, of which the tests show a part; and one whose test is flaky."""

import json
import random
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, Literal

from shell_files import Files, Seed, draws, fill, graded, named, need, put, run
from shell_package_text import BUGS, PACKAGE, README, TESTS, Bug
from shell_words import FIRST_NAMES, LAST_NAMES, a_word

from hud_mcp import Agent, Environment, Grade, ShellWorld

__all__ = ["chosen", "declare", "invoices"]

Level = Literal["shown", "mixed", "many"]
CUSTOMERS = [*LAST_NAMES[:6], "Groß", "GROSS", "Straße & Co"]


def chosen(seed: int, level: str) -> list[Bug]:
    """What is wrong in the package of a seed: at most one thing at a place."""
    draw = draws(f"package/{level}", seed)
    shown = [bug for bug in BUGS if bug.shown]
    silent = [bug for bug in BUGS if not bug.shown]
    counts = {"shown": (1, 0), "mixed": (1, 2), "many": (2, 4)}[level]
    for _ in range(1000):
        bugs = [*draw.sample(shown, counts[0]), *draw.sample(silent, counts[1])]
        files = broken(bugs)
        if all(bug.wrong in files[bug.path] for bug in bugs):
            return bugs
    raise RuntimeError(f"No package was drawn for the seed {seed}.")


def renamed(seed: int, files: Mapping[str, str]) -> dict[str, str]:
    """The package's files with the name and the tax of a seed."""
    percent = draws("percent", seed).choice((7, 19, 21, 25))
    swaps = {
        "tally": a_word("package", seed),
        "percent=19": f"percent={percent}",
        "19 per cent": f"{percent} per cent",
        "11900": str(10_000 + 100 * percent),
        "23.80": f"{20 + percent / 5:.2f}",
        "11.90": f"{10 + percent / 10:.2f}",
    }
    return {swapped(path, swaps): swapped(text, swaps) for path, text in files.items()}


def swapped(text: str, swaps: Mapping[str, str]) -> str:
    """A text with some words in the place of others."""
    for old, new in swaps.items():
        text = text.replace(old, new)
    return text


def broken(bugs: list[Bug]) -> dict[str, str]:
    """The package with something wrong in it."""
    files = dict(PACKAGE)
    for bug in bugs:
        files[bug.path] = files[bug.path].replace(bug.right, bug.wrong)
    return files


def invoices(draw: random.Random, count: int) -> str:
    """Lines for the program."""
    end = draw.choice(("\n", "\r\n"))
    lines = ["# invoices"]
    for _ in range(count):
        day = f"202{draw.choice((3, 4))}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        name = draw.choice(CUSTOMERS)
        name = draw.choice((name, name.upper(), f" {name}", name.lower()))
        cents = draw.choice((draw.randint(1, 999), draw.randint(10**4, 10**6), 123_456_789))
        whole, part = f"{cents // 100:,}".replace(",", "."), f"{cents % 100:02}"
        net = draw.choice((f"{whole},{part}", f"{whole},{part[0]}", whole))
        lines.append(f"{day};{name};{net};{draw.choice((0, 1, 10, 30, 60))}")
    lines.insert(count // 2, "")
    return end.join(lines) + draw.choice((end, ""))


async def repair_package(
    shell: ShellWorld, seed: Seed = 0, level: Level = "shown"
) -> AsyncGenerator[str | Grade]:
    """Ask for the repair of a package; its readme is the rule."""
    told = partial(renamed, seed)
    name = a_word("package", seed)
    files = told({**broken(chosen(seed, level)), "README.md": README, "tests.py": TESTS})
    await need(shell)
    await fill(shell, files)
    yield (
        f"The Python package /workspace/{name} does not do what /workspace/README.md says. "
        "`python3 tests.py` shows a part of it; other faults have no test. Repair the package. "
        f"It is graded by what `python3 -m {name}` prints for other inputs."
    )
    draw = draws("invoices", seed)
    inputs = [invoices(draw, count) for count in (1, 2, 6, 25, 60)]
    async with shell.verifier() as clean:
        await put(clean, told(PACKAGE))
        wanted = [(await clean.run(["python3", "-m", name], stdin=each)) for each in inputs]
    if any(done.exit_code != 0 for done in wanted):
        raise RuntimeError(f"The package itself does not work: {wanted[0].stderr[-300:]}")
    async with shell.verifier(copy=[name]) as clean:
        printed = [
            (await clean.run(["python3", "-m", name], stdin=each, timeout_s=20)).stdout
            for each in inputs
        ]
    right = [done.stdout == text for done, text in zip(wanted, printed, strict=True)]
    yield graded({"other inputs": all(right)})


async def solve_package(agent: Agent) -> str:
    """Read the rules and every file, and put right what differs from them."""
    await run(agent, "cat README.md; ls -R")
    await run(agent, "python3 tests.py")
    name = agent.prompt.partition("/workspace/")[2].split()[0]
    for path in [path for path in PACKAGE if "__init__" not in path]:
        place = path.replace("tally", name)
        text = await agent.tool("read_file", path=place)
        for bug in BUGS:
            if bug.path == path and bug.wrong in text and bug.right not in text:
                await agent.tool("edit_file", path=place, old=bug.wrong, new=bug.right)
    await run(agent, "python3 tests.py")
    await run(agent, f"printf '2024-02-01;A;1.000.000,5;28' | python3 -m {name}")
    return "done"


ROSTER = '''"""Who is on duty: reads teams as JSON, and prints their plans as JSON.

A team is {"people": [...], "days": n, "away": {"name": [day, ...]}}. People take turns in the order
in which they first appear in `people`; a second time they are no other person. On each day, from 0
on, it is the turn of the next person after the one who was on duty last, without those who are away
that day. Where all are away, the plan has null for the day, and the turn stays. A plan is a list of
names. What is planned for one team changes nothing for another.
"""

import json
import sys

{head}

def plan(team{more}):
    """The plan of one team."""
    {people}
    turn, found = 0, []
    {away}
    for day in range(team["days"]):
        for step in range(len(people)):
            name = people[(turn + step) % len(people)]
            if day not in away.get(name, []):
                turn = (turn + step + 1) % len(people)
                found.append(name)
                break
        else:
            found.append(None)
    return found


if __name__ == "__main__":
    print(json.dumps([plan(team) for team in json.load(sys.stdin)]))
'''
FLAWS = {
    "set": {
        "head": "",
        "more": "",
        "people": 'people = list(set(team["people"]))',
        "away": 'away = team["away"]',
    },
    "shared": {
        "head": "AWAY = {}\n",
        "more": ", away=AWAY",
        "people": 'people = list(dict.fromkeys(team["people"]))',
        "away": 'away.update(team["away"])',
    },
}
FLAKY = '''"""The test that fails now and then."""

import json
import random
import unittest

from ROSTER import plan

TEAMS = json.load(open("teams.json"))


class Plans(unittest.TestCase):
    def test_plans(self):
        random.shuffle(TEAMS)
        for team in TEAMS:
            with self.subTest(team["people"]):
                self.assertEqual(plan(team), team["plan"])


if __name__ == "__main__":
    unittest.main()
'''


def drawn_teams(draw: random.Random, count: int) -> list[dict[str, Any]]:
    """Some teams, with people in common, and their plans."""
    pool = draw.sample(FIRST_NAMES, 7)
    teams: list[dict[str, Any]] = []
    for _ in range(count):
        people = draw.sample(pool, draw.randint(2, 5))
        days = draw.randint(4, 9)
        away = {
            name: sorted(draw.sample(range(days), draw.randint(1, days)))
            for name in draw.sample(people, draw.randint(0, 2))
        }
        listed = [*people, draw.choice(people)]
        teams.append(
            {"people": listed, "days": days, "away": away, "plan": planned(people, days, away)}
        )
    return teams


def shown_teams(draw: random.Random, flaw: str) -> list[dict[str, Any]]:
    """Two teams for which the flawed program is right on some runs, and wrong on others."""
    while True:
        teams = drawn_teams(draw, 2)
        people = [list(dict.fromkeys(team["people"])) for team in teams]
        if flaw == "set":
            if [len(each) for each in people] == [2, 2] and not any(t["away"] for t in teams):
                return teams
            continue
        spoiled = [
            planned(mine, team["days"], {**other["away"], **team["away"]}) != team["plan"]
            for mine, team, other in zip(people, teams, reversed(teams), strict=True)
        ]
        if sorted(spoiled) == [False, True]:
            return teams


def planned(people: list[str], days: int, away: dict[str, list[int]]) -> list[str | None]:
    """The plan of a team, as the text of the program says."""
    found: list[str | None] = []
    queue = list(people)
    for day in range(days):
        free = [name for name in queue if day not in away.get(name, [])]
        found.append(free[0] if free else None)
        if free:
            at = queue.index(free[0]) + 1
            queue = queue[at:] + queue[:at]
    return found


async def repair_flaky(
    shell: ShellWorld, seed: Seed = 0, flaw: Literal["set", "shared"] = "set"
) -> AsyncGenerator[str | Grade]:
    """Ask for the repair of a program whose test fails now and then."""
    draw = draws(f"flaky/{flaw}", seed)
    text = ROSTER
    for name, part in FLAWS[flaw].items():
        text = text.replace(f"{{{name}}}", part)
    name = f"{a_word('roster', seed)}_plan"
    files: Files = {f"{name}.py": text, "test_plans.py": FLAKY.replace("ROSTER", name)}
    await need(shell)
    await fill(shell, {**files, "teams.json": json.dumps(shown_teams(draw, flaw), indent=1)})
    yield (
        "`python3 test_plans.py` in /workspace fails on some runs and passes on others, though "
        f"the test is right. Find the cause and repair /workspace/{name}.py, so that it always "
        f"does what its first docstring says. It is graded by what `python3 {name}.py` prints "
        "for other teams, many times."
    )
    teams = drawn_teams(draw, 12)
    asked = [{k: v for k, v in team.items() if k != "plan"} for team in teams]
    wanted = [team["plan"] for team in teams]
    async with shell.verifier(copy=[f"{name}.py"]) as clean:
        right = 0
        for turn in range(5):
            done = await clean.run(
                ["python3", f"{name}.py"],
                stdin=json.dumps(asked),
                timeout_s=20,
                env={"PYTHONHASHSEED": str(turn * 7 + 1)},
            )
            right += done.stdout.strip() == json.dumps(wanted)
    yield graded({"every run": right == 5})  # noqa: PLR2004  # as many as there were


async def solve_flaky(agent: Agent) -> str:
    """Repeat the test, read the program, and repair what depends on the run."""
    await run(agent, "ls; cat test_plans.py")
    await run(agent, "for i in 1 2 3 4 5 6; do python3 test_plans.py 2>&1 | tail -1; done")
    path = named(agent, "_plan.py")
    text = await agent.tool("read_file", path=path)
    good = {"set": FLAWS["shared"]["people"], "shared": FLAWS["set"]["away"]}
    if "set(" in text:
        await agent.tool("edit_file", path=path, old=FLAWS["set"]["people"], new=good["set"])
    else:
        old = FLAWS["shared"]["away"]
        await agent.tool("edit_file", path=path, old=old, new=good["shared"])
        await agent.tool("edit_file", path=path, old=", away=AWAY", new="")
    await run(agent, "for i in 1 2 3 4 5 6; do python3 test_plans.py 2>&1 | tail -1; done")
    await run(agent, "python3 -c \"import json; print(json.load(open('teams.json'))[0])\"")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    env.template(description="Repair a Python package")(repair_package).oracle(solve_package)
    env.template(description="Repair a flaky program")(repair_flaky).oracle(solve_flaky)
