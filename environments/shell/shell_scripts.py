"""Programs to repair: a shell script that meets odd names, and slow ones with much to do."""

import random
from collections.abc import AsyncGenerator, Callable
from typing import Literal

from shell_files import (
    File,
    Files,
    Seed,
    draws,
    fill,
    graded,
    named,
    need,
    put,
    read_small,
    run,
    scan,
)
from shell_files import seen_as as digest_of
from shell_words import WORDS, a_word, words

from hud_mcp import Agent, Environment, Grade, ShellWorld, Verifier

__all__ = ["declare", "folder_case"]

Names = Literal["spaces", "odd"]
TIDY = """#!/bin/bash
# Puts the files of a folder into folders by their extensions. README.md says how.
set -e
cd $1
for name in $(ls); do
  if [ -f $name ]; then
    ext=${name##*.}
    mkdir -p $ext
    mv $name $ext/
    echo "$name -> $ext"
  fi
done
"""
TIDY_README = """# tidy.sh

`bash tidy.sh FOLDER` moves each regular file that lies directly in FOLDER into a folder of FOLDER
that is called as the file's extension, in lower case. The folder is made where it is missing.

- The extension is what stands after the last dot of the name. Without a dot, or where nothing
  stands after the last one, it is `other`.
- Files whose names begin with a dot, folders, and links stay as they are.
- Where the folder has something of the file's name already, the file stays, and the line is
  `NAME stays`. Nothing is ever overwritten.
- For each other file, the line is `NAME -> EXTENSION`. Lines come in the order of the names' bytes.
- Names may have spaces and any other signs but line feeds; FOLDER may have spaces too.
"""
TIDY_GOOD = """#!/bin/bash
# Puts the files of a folder into folders by their extensions. README.md says how.
export LC_ALL=C.UTF-8
cd -- "$1" || exit 1
LC_ALL=C
for name in *; do
  [ -f "$name" ] && [ ! -L "$name" ] || continue
  ext=${name##*.}
  case $name in *.) ext=other ;; *.*) ;; *) ext=other ;; esac
  ext=$(printf %s "$ext" | tr '[:upper:]' '[:lower:]')
  if [ -e "./$ext/$name" ] || [ -L "./$ext/$name" ]; then
    printf '%s stays\\n' "$name"
    continue
  fi
  mkdir -p -- "./$ext"
  mv -- "./$name" "./$ext/"
  printf '%s -> %s\\n' "$name" "$ext"
done
"""


def folder_case(purpose: str, seed: int, names: str, top: str) -> tuple[Files, Files, str]:
    """A folder, what it is to become, and the lines that are to be printed."""
    draw = draws(f"{purpose}/{names}", seed)
    odd = names == "odd"
    before: dict[str, File | str | bytes] = {f"{top}/{draw.choice(WORDS)}/deep.TXT": "Stays.\n"}
    endings = [".txt", ".csv", ".TXT", ".tar.gz", "", ".Md"] + ([".", ".t x"] if odd else [])
    for _ in range(16):
        name = "-".join(draw.sample(WORDS, 2))
        name = draw.choice((name, name.replace("-", " "), name.title()))
        if odd:
            name = draw.choice(
                (name, f"-{name}", f"[{name}]*", f"{name} ", f"{name}'s", f"a\\{name}")
            )
        before[f"{top}/{name}{draw.choice(endings)}"] = f"{words(draw, 3)}\n"
    before[f"{top}/.hidden.txt"] = "Stays.\n"
    files = [path for path in before if path.count("/") == 1 and "/." not in path]
    if odd:
        name = draw.choice([path for path in files if path.lower().endswith((".txt", ".csv"))])
        ending = name.rpartition(".")[2].lower()
        before[f"{top}/{ending}/{name.partition('/')[2]}"] = "Older.\n"
        before[f"{top}/link.txt"] = File(link=".hidden.txt")
    after, lines = dict(before), []
    for path in sorted(files, key=str.encode):
        name = path.partition("/")[2]
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        place = f"{top}/{ending or 'other'}/{name}"
        if place in before:
            lines.append(f"{name} stays\n")
            continue
        after[place] = after.pop(path)
        lines.append(f"{name} -> {ending or 'other'}\n")
    return before, after, "".join(lines)


async def repair_script(
    shell: ShellWorld, seed: Seed = 0, names: Names = "spaces"
) -> AsyncGenerator[str | Grade]:
    """Ask for the repair of a script; its readme is the rule."""
    inbox = f"{a_word('inbox', seed)}-inbox"
    before, _, _ = folder_case("folder", seed, names, inbox)
    await need(shell)
    await fill(shell, {**before, "tidy.sh": TIDY, "README.md": TIDY_README})
    yield (
        "The script /workspace/tidy.sh does not do what /workspace/README.md says. Repair it. "
        f"/workspace/{inbox} is a folder to try it on: work on a copy, if you like. The script is "
        "graded on other folders, by what they become and by the lines that it prints."
    )
    moved, told = True, True
    for number, top in enumerate(("one", "an inbox")):
        before, after, lines = folder_case(f"hidden folder {number}", seed, names, top)
        async with shell.verifier(copy=["tidy.sh"]) as clean:
            await put(clean, before)
            done = await clean.run(["bash", "tidy.sh", top], timeout_s=30)
            seen = await scan(clean, top)
        found = {path: digest for path, (digest, _) in seen.items() if digest != "folder"}
        wanted = {path: digest_of(file) for path, file in after.items()}
        if names == "odd":
            wanted[f"{top}/link.txt"] = wanted[f"{top}/.hidden.txt"]
        moved, told = moved and found == wanted, told and done.stdout == lines
    yield graded({"files": moved, "lines": moved and told})


async def solve_script(agent: Agent) -> str:
    """Read, try on a copy, write it anew, and try again."""
    await run(agent, "cat README.md tidy.sh")
    inbox = named(agent, "-inbox")
    await run(agent, f"ls -laR {inbox}")
    await run(agent, f"cp -a {inbox} try; bash tidy.sh try; ls -R try; rm -r try")
    await agent.tool("write_file", path="tidy.sh", content=TIDY_GOOD)
    await run(
        agent, f"cp -a {inbox} 'try it'; bash tidy.sh 'try it'; ls -laR 'try it'; rm -r 'try it'"
    )
    return "done"


SLOW = {
    "pairs": '''"""Counts pairs of numbers with a sum.

The first line of the input is the sum, each other one a whole number. The output is how many pairs
of two different lines have that sum; equal numbers on different lines are different ones.
"""

import sys

wanted, *numbers = map(int, sys.stdin.read().split())
count = 0
for first in range(len(numbers)):
    for second in range(first + 1, len(numbers)):
        if numbers[first] + numbers[second] == wanted:
            count += 1
print(count)
''',
    "rooms": '''"""Finds out how many guests there were at most.

Each line of the input is a stay: its first second, and the first one after it. The output is the
greatest number of guests at once, and the first second in which there were so many; `0 0` where
there was never one.
"""

import sys

stays = [tuple(map(int, line.split())) for line in sys.stdin if line.strip()]
most, when = 0, 0
for second in range(min((a for a, _ in stays), default=0), max((b for _, b in stays), default=0)):
    here = sum(1 for begin, end in stays if begin <= second < end)
    if here > most:
        most, when = here, second
print(most, when)
''',
    "routes": '''"""Counts routes.

Each line of the input is a road, which leads from the first town to the second; no road is there
twice, and no route comes back to a town. The output is the number of routes from START to END.
"""

import sys

roads = {}
for line in sys.stdin:
    first, second = line.split()
    roads.setdefault(first, []).append(second)


def routes(town):
    if town == "END":
        return 1
    return sum(routes(next_town) for next_town in roads.get(town, []))


print(routes("START"))
''',
}
FAST = {
    "pairs": """import collections
import sys

wanted, *numbers = map(int, sys.stdin.read().split())
seen, count = collections.Counter(), 0
for number in numbers:
    count += seen[wanted - number]
    seen[number] += 1
print(count)
""",
    "rooms": """import sys

changes = []
for line in sys.stdin:
    if line.strip():
        begin, end = map(int, line.split())
        if begin < end:
            changes += [(begin, 1), (end, -1)]
here = most = when = 0
for second, change in sorted(changes):
    here += change
    if here > most:
        most, when = here, second
print(most, when)
""",
    "routes": """import sys

roads = {}
for line in sys.stdin:
    first, second = line.split()
    roads.setdefault(first, []).append(second)
known, stack = {"END": 1}, ["START"]
while stack:
    town = stack[-1]
    ahead = [each for each in roads.get(town, []) if each not in known]
    if ahead:
        stack += ahead
        continue
    known.setdefault(town, sum(known[each] for each in roads.get(town, [])))
    stack.pop()
print(known["START"])
""",
}


def pairs_case(draw: random.Random, size: int) -> tuple[str, str]:
    """Numbers, and the count of pairs with a sum."""
    wanted = draw.randint(-size, size)
    numbers = [draw.randint(-size, size) for _ in range(size)]
    seen: dict[int, int] = {}
    count = 0
    for number in numbers:
        count += seen.get(wanted - number, 0)
        seen[number] = seen.get(number, 0) + 1
    return "\n".join(map(str, [wanted, *numbers])) + "\n", f"{count}\n"


def rooms_case(draw: random.Random, size: int) -> tuple[str, str]:
    """Stays, and the greatest number at once; without stays for nothing."""
    stays: list[tuple[int, int]] = []
    for _ in range(size):
        begin = draw.randint(5, 5 + size * 40)
        stays.append((begin, begin + draw.randint(0, 400)))
    changes = sorted([(a, 1) for a, b in stays if a < b] + [(b, -1) for a, b in stays if a < b])
    here = most = when = 0
    for second, change in changes:
        here += change
        if here > most:
            most, when = here, second
    return "".join(f"{a} {b}\n" for a, b in stays), f"{most} {when}\n"


def routes_case(draw: random.Random, size: int) -> tuple[str, str]:
    """Roads between layers of towns, with dead ends, and the number of routes."""
    roads: list[tuple[str, str]] = []
    layer = {"START": 1}
    for index in range(size):
        following: dict[str, int] = {}
        towns = [f"{draw.choice(WORDS)}{index}x{each}" for each in range(2)]
        for town, count in layer.items():
            for target in towns if draw.random() < 0.9 else towns[:1]:  # noqa: PLR2004  # a share
                roads.append((town, target))
                following[target] = following.get(target, 0) + count
            roads.append((town, f"dead{index}{town}"))
        layer = following
    roads += [(town, "END") for town in layer]
    draw.shuffle(roads)
    return "".join(f"{a} {b}\n" for a, b in roads), f"{sum(layer.values())}\n"


Case = Callable[[random.Random, int], tuple[str, str]]
CASES: dict[str, tuple[Case, int, str]] = {
    "pairs": (pairs_case, 150_000, "150,000 numbers"),
    "rooms": (rooms_case, 100_000, "100,000 stays within 4,000,000 seconds"),
    "routes": (routes_case, 2500, "10,000 roads, with routes through 2,500 towns"),
}


async def speed_up(
    shell: ShellWorld, seed: Seed = 0, program: Literal["pairs", "rooms", "routes"] = "pairs"
) -> AsyncGenerator[str | Grade]:
    """Ask for a program that is as right, and ends with much to do."""
    draw_case, size, told = CASES[program]
    draw = draws(f"slow/{program}", seed)
    example, printed = draw_case(draw, 12)
    slow = SLOW[program]
    name = f"{a_word('slow', seed)}.py"
    await need(shell)
    await fill(shell, {name: slow, "example.txt": example, "example.out": printed})
    yield (
        f"The program /workspace/{name} is right, but far too slow for large inputs. Rewrite it "
        "with the standard library alone, in the one file, so that it prints the same, and copes "
        f"with {told} within 40 seconds. It reads standard input: `python3 {name} < "
        "example.txt` prints what example.out has. It is graded by what it prints for other "
        "inputs, small and large."
    )
    async with shell.verifier(copy=[name]) as clean:
        known = await read_small(clean, name) in (None, slow.encode())  # it is too slow
        right = not known and (program != "rooms" or await prints(clean, name, "", "0 0\n"))
        for each in (1, 2, 3, 9, 30, 60, size):
            right = right and await prints(clean, name, *draw_case(draw, each))
    yield graded({"other inputs": right})


async def prints(clean: Verifier, name: str, text: str, wanted: str) -> bool:
    """Whether a program prints what it is to for an input."""
    done = await clean.run(["python3", name], stdin=text, timeout_s=45)
    return done.stdout.strip() == wanted.strip()


async def solve_slow(agent: Agent, program: str) -> str:
    """Read it, write it anew, and compare both on the example."""
    name = named(agent, ".py")
    await run(agent, f"ls -l; cat {name}")
    await run(agent, "head -5 example.txt; wc -l example.txt; cat example.out")
    await run(agent, f"time python3 {name} < example.txt")
    await run(agent, f"cp {name} old.py")
    text = SLOW[program].partition("import sys")[0] + FAST[program]
    await agent.tool("write_file", path=name, content=text)
    await run(agent, f"python3 {name} < example.txt | diff - example.out && echo same")
    await run(
        agent,
        f"head -3 example.txt > part.txt; for p in old.py {name}; do python3 $p < part.txt; done",
    )
    await run(agent, "rm old.py part.txt")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    env.template(description="Repair a script for odd names")(repair_script).oracle(solve_script)
    env.template(description="Make a slow program fast enough")(speed_up).oracle(solve_slow)
