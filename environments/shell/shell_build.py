"""A Makefile to repair: it does not build, and later does not build again what has changed."""

import random
import re
from collections.abc import AsyncGenerator
from typing import Literal

from shell_files import File, Files, Seed, draws, fill, graded, need, put, read_small, run
from shell_words import WORDS, a_word, words

from hud_mcp import Agent, Environment, Grade, ShellWorld, Verifier

__all__ = ["declare"]

JOIN = '''"""Prints the chapters that are named, by their numbers, under the title in title.txt."""

import pathlib
import sys

names = sorted(sys.argv[1:], key=lambda name: int(pathlib.Path(name).name.split("-")[0]))
print(pathlib.Path("title.txt").read_text().strip().upper())
for number, name in enumerate(names, 1):
    print(f"{number}. {pathlib.Path(name).read_text().strip()}")
'''
README = """# The build

`make` makes two files in the folder `out`, which it creates where it is missing:

- `out/book.txt`: what `python3 tools/join.py` prints for all files `chapters/*.txt`;
- `out/words.txt`: the first word of each line of `out/book.txt`, in order, one on each line.

After a chapter was changed, added or removed, or `title.txt` or `tools/join.py` was changed, `make`
brings both up to date.
`make clean` removes the folder `out`, also where there is a file or folder that is called `clean`.
"""
MAKEFILE = """# The build; README.md says what it does.
CHAPTERS = $(wildcard chapters/*.txt)

all: out/book.txt out/words.txt

out/book.txt: $(CHAPTERS) title.txt tools/join.py
	mkdir -p out
	python3 tools/join.py $(CHAPTERS) > out/book.txt

out/words.txt: out/book.txt
	awk '{print $$1}' out/book.txt > out/words.txt

clean:
	rm -rf out

.PHONY: all clean
"""
BREAKS = {
    "tab": ("\tpython3", "        python3"),
    "dollar": ("$$1", "$1"),
    "folder": ("\tmkdir -p out\n", ""),
    "order": ("out/words.txt: out/book.txt", "out/words.txt: book.txt"),
    "stale": ("$(CHAPTERS) title.txt tools/join.py", "chapters/1-*.txt"),
    "phony": ("\n.PHONY: all clean\n", ""),
}
LEVELS = {
    "broken": ("tab", "dollar", "folder"),
    "stale": ("tab", "dollar", "stale", "phony", "order"),
}
"""What is wrong at each level; nothing builds at first in both."""
GOOD = MAKEFILE.replace("$(CHAPTERS) title", "$(CHAPTERS) chapters title")
"""A removed chapter changes its folder, which is a prerequisite for that."""


def into(text: str, out: str) -> str:
    """A text in which the folder `out` has another name."""
    return re.sub(r"\bout\b", out, text)


def chapters(draw: random.Random, count: int, time: int) -> dict[str, File]:
    """Some chapters; the tenth one sorts before the second by its name."""
    return {
        f"chapters/{number}-{draw.choice(WORDS)}.txt": File(f"{words(draw, 5)}\n", time=time)
        for number in draw.sample(range(1, 14), count)
    }


def built(files: Files) -> tuple[bytes, bytes]:
    """Both files as they are to be."""
    found = {path: str(file.data) for path, file in files.items() if isinstance(file, File)}
    names = [path for path in found if path.startswith("chapters/")]
    names.sort(key=lambda path: int(path.partition("/")[2].partition("-")[0]))
    lines = [found["title.txt"].strip().upper()]
    lines += [f"{number}. {found[name].strip()}" for number, name in enumerate(names, 1)]
    book = "".join(f"{line}\n" for line in lines)
    return book.encode(), "".join(f"{line.split()[0]}\n" for line in lines).encode()


async def builds(clean: Verifier, files: Files, out: str) -> bool:
    """Whether `make` makes what these files are to become."""
    await clean.run(["make"], timeout_s=30)
    made = tuple([await read_small(clean, f"{out}/{name}.txt") for name in ("book", "words")])
    return made == built(files)


async def repair_build(
    shell: ShellWorld, seed: Seed = 0, level: Literal["broken", "stale"] = "broken"
) -> AsyncGenerator[str | Grade]:
    """Ask for the repair of a Makefile; its readme is the rule."""
    draw = draws(f"build/{level}", seed)
    text = MAKEFILE
    for name in LEVELS[level]:
        text = text.replace(*BREAKS[name])
    start = 1_709_294_400
    title = File(f"The {draw.choice(WORDS)} book\n")
    files: Files = {**chapters(draw, 5, start), "title.txt": title, "tools/join.py": JOIN}
    await need(shell, "make", "awk")
    out = a_word("build", seed)
    told = {"Makefile": text, "README.md": README}
    await fill(shell, {**files, **{path: into(each, out) for path, each in told.items()}})
    yield (
        f"`make` fails in /workspace, which is to make files in the folder {out}. Repair "
        "/workspace/Makefile, and change no other file, so that it does all that "
        "/workspace/README.md says. It is graded with other chapters, and after changes to them."
    )
    hidden: dict[str, File | str | bytes] = {
        **chapters(draw, 8, start),
        "title.txt": File(f"{words(draw, 3)}\n"),
        "tools/join.py": JOIN,
    }
    yield graded(await tried(shell, hidden, draw, level, out))


async def tried(
    shell: ShellWorld,
    hidden: dict[str, File | str | bytes],
    draw: random.Random,
    level: str,
    out: str,
) -> dict[str, bool]:
    """What the agent's Makefile does with other chapters, where it was copied as data."""
    async with shell.verifier(copy=["Makefile"]) as clean:
        await put(clean, hidden)
        parts = {"builds": await builds(clean, hidden, out)}
        if not parts["builds"] or level == "broken":
            return parts
        later = 2_000_000_000  # files that are newer than any clock's now
        name = draw.choice(sorted(path for path in hidden if path.startswith("chapters/")))
        hidden[name] = File(f"{words(draw, 4)}\n", time=later)
        await put(clean, {name: hidden[name]})
        parts["changed chapter"] = await builds(clean, hidden, out)
        await put(clean, {"clean": "In the way.\n"})
        await clean.run(["make", "clean"], timeout_s=30)
        parts["clean"] = not await clean.exists(out)
        hidden[name] = File("again\n", time=1_709_294_400)
        hidden["title.txt"] = File(f"{words(draw, 2)}\n", time=1_709_294_400)
        await put(clean, {name: hidden[name], "title.txt": hidden["title.txt"]})
        await builds(clean, hidden, out)
        hidden["title.txt"] = File(f"{words(draw, 3)}\n", time=later)
        await put(clean, {"title.txt": hidden["title.txt"]})
        parts["changed title"] = await builds(clean, hidden, out)
    async with shell.verifier(copy=["Makefile"]) as clean:
        hidden["title.txt"] = File("plain\n")
        await put(clean, hidden)
        await clean.run(["make"], timeout_s=30)
        del hidden[name]
        await clean.run(["bash", "-c", 'rm -- "$1"; touch -d "2030-01-01" chapters', "-", name])
        parts["removed chapter"] = await builds(clean, hidden, out)
    return parts


async def solve_build(agent: Agent, level: str) -> str:
    """Read what it says, repair what differs, and try each change."""
    await run(agent, "cat README.md; ls -R")
    await run(agent, "cat -A Makefile; make")
    await run(agent, "cat tools/join.py")
    out = agent.prompt.partition("the folder ")[2].partition(".")[0]
    text = into(GOOD if level == "stale" else MAKEFILE, out)
    await agent.tool("write_file", path="Makefile", content=text)
    await run(agent, f"make && cat {out}/*")
    await run(agent, "make; sleep 0.01; touch title.txt; make; touch chapters/*; make")
    if level == "stale":
        await run(agent, "touch clean; make clean; rm clean; ls")
    await run(agent, "make clean")
    return "done"


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Repair a Makefile")(repair_build).oracle(solve_build)
