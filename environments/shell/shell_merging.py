"""Texts of several encodings made one list, and configurations made one."""

import json
import random
import unicodedata
from collections.abc import AsyncGenerator
from typing import Any, Literal

from shell_files import File, Files, Seed, draws, fill, graded, named, need, put, read_small, run
from shell_words import WORDS, a_word

from hud_mcp import Agent, Environment, Grade, ShellWorld

__all__ = ["declare", "inbox_case", "merged", "settings_case"]

NAMES = [
    "Zoë Ångström",
    "Jürgen Groß",
    "Łucja Żak",
    "Søren Ørsted",
    "Chloé Dupré",
    "Émile Brontë",
    "Björn Åberg",
    "Núria Peña",
    "Agnès Łoś",
    "Ólafur Jón",
    "Günter Öz",
    "Márta Kiss",
    "Ana Lima",
    "Tom Reed",
    "Ida Holm",
    "Max Stein",
]
POLISH = "ŁłŻżśŚ"


def inbox_case(seed: int, level: str) -> tuple[Files, list[str]]:
    """Lists of names in several encodings, and the one list that they become."""
    draw = draws(f"inbox/{level}", seed)
    kinds = ["utf-8", "utf-8-sig", "iso-8859-1", "utf-16", "iso-8859-2"]
    kinds += ["cp1252", "utf-16-be"] if level == "messy" else []
    draw.shuffle(kinds)
    files: dict[str, File | str | bytes] = {}
    rows: list[str] = []
    first: dict[str, str] = {}
    for kind in kinds:
        path = f"inbox/{draw.choice(WORDS)}-{draw.randint(10, 99)}.txt"
        lines: list[str] = []
        for name in [draw.choice(NAMES) for _ in range(9)]:
            spelled = f"{name} {draw.choice('ABC')}."
            spelled = draw.choice((spelled, spelled.upper(), spelled.lower()))
            if not writable(spelled, kind):
                continue
            kept = unicodedata.normalize("NFC", spelled)
            first.setdefault(kept.casefold(), kept)
            loose = kind.startswith("utf") and level == "messy"
            text = (
                unicodedata.normalize("NFD", spelled)
                if loose and draw.random() < 1 / 2
                else spelled
            )
            lines.append(draw.choice((text, f" {text}", f"{text}\t", text)))
        lines.insert(draw.randint(0, len(lines)), "")
        end = draw.choice(("\n", "\r\n")) if level == "messy" else "\n"
        files[path] = end.join(lines).encode(kind)
        rows.append(f"{path.removeprefix('inbox/')},{kind}")
    files["inbox/ENCODINGS.csv"] = "file,encoding\n" + "\n".join(rows) + "\n"
    files[f"inbox/{draw.choice(WORDS)}.txt.bak"] = "Not Listed\n"
    return files, sorted(first.values())


def writable(text: str, kind: str) -> bool:
    """Whether an encoding has all of a text, and gives it back."""
    try:
        return text.encode(kind).decode(kind) == text
    except UnicodeError:
        return False


async def unite_lists(
    shell: ShellWorld, seed: Seed = 0, level: Literal["plain", "messy"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for one list in UTF-8 of lists in several encodings."""
    files, wanted = inbox_case(seed, level)
    name = f"{a_word('lists', seed)}.txt"
    await need(shell)
    await fill(shell, files)
    yield (
        "/workspace/inbox/ENCODINGS.csv lists text files beside it with the encoding of each; a "
        "byte order mark is no part of a text. Each line of a file is a name. Write "
        f"/workspace/{name}, in UTF-8 without a byte order mark, each name on a line that ends "
        "with a line feed. Leave out spaces and tabs around a name, and empty lines. Write names "
        "in Unicode's NFC. Names that differ only in case, after that, are the same: keep the "
        "first one, in the order in which the files are listed. Sort by code point, as Python's "
        "sorted does."
    )
    async with shell.verifier(copy=[name]) as clean:
        data = await read_small(clean, name)
    text = "\n".join(wanted).encode()
    yield graded({"the list": data in (text, text + b"\n")})


UNITE = """
import csv, unicodedata
first = {}
for row in csv.DictReader(open("inbox/ENCODINGS.csv")):
    text = open(f"inbox/{row['file']}", encoding=row["encoding"]).read()
    for line in text.lstrip("\\ufeff").split("\\n"):
        name = unicodedata.normalize("NFC", line.strip())
        if name:
            first.setdefault(name.casefold(), name)
with open("NAMES", "w", encoding="utf-8") as file:
    file.writelines(f"{name}\\n" for name in sorted(first.values()))
"""


async def solve_lists(agent: Agent) -> str:
    """Look at the bytes, unite the lists, and look at the result."""
    await run(agent, "ls -la inbox; cat inbox/ENCODINGS.csv")
    made = named(agent, ".txt")
    listed = (await run(agent, "tail -n +2 inbox/ENCODINGS.csv | cut -d, -f1")).split()
    for name in listed:
        await run(agent, f"head -c 64 inbox/{name} | od -c | head -5")

    await run(agent, f"python3 - <<'E'\n{UNITE.replace('NAMES', made)}\nE")
    await run(agent, f"file {made}; cat -A {made} | head -60")
    return "done"


RULES = """# How settings are merged

Each file is a JSON object. They are merged one after the other: the first is the base, and each
next one is merged into what there is.

- Where both have an object under a key, these are merged by the same rules.
- A value of null removes the key, with all that is below it. Where there is no such key, nothing
  happens; a null is never in the result, at any depth.
- The key `name+` with a list appends its items to the list `name`; where there is none, it makes
  that list. No key of the result ends with a plus.
- Any other value replaces what there is: a list too, and an object where there was none.
- An object that replaces something else is merged into an empty object, so that these rules hold
  for what is in it.
- In one object, keys take effect in the order in which the file has them.
"""


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge an object into another one, as the rules say."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif key.endswith("+"):
            there = result.get(key[:-1])
            result[key[:-1]] = [*(there if isinstance(there, list) else []), *value]
        elif isinstance(value, dict):
            there = result.get(key)
            result[key] = merged(there if isinstance(there, dict) else {}, value)
        else:
            result[key] = value
    return result


def drawn_settings(draw: random.Random, *, depth: int, over: bool) -> dict[str, Any]:
    """Draw an object; one that is merged over another has removals and additions."""
    found: dict[str, Any] = {}
    for key in draw.sample(WORDS[:8], draw.randint(4, 6)):
        kinds = ["number", "text", "flag", "list", "object", "object"]
        kinds += ["null", "more", "more"] if over else []
        kind = draw.choice(kinds)
        if kind == "object" and depth:
            found[key] = drawn_settings(draw, depth=depth - 1, over=over)
        elif kind == "null":
            found[key] = None
        elif kind == "more":
            found[f"{key}+"] = draw.sample(WORDS, 2)
        else:
            items: list[Any] = [draw.randint(0, 9), draw.choice(WORDS), draw.random() < 1 / 2]
            found[key] = draw.choice((*items, draw.sample(WORDS, 2)))
    return found


def settings_case(seed: int, level: str, *, hidden: bool = False) -> list[list[dict[str, Any]]]:
    """Groups of settings, each in the order in which they are merged."""
    draw = draws(f"settings/{level}/{'hidden' if hidden else 'shown'}", seed)
    groups: list[list[dict[str, Any]]] = []
    for _ in range(8 if hidden else 1):
        base = drawn_settings(draw, depth=3, over=False)
        overs = [drawn_settings(draw, depth=3, over=True) for _ in range(draw.randint(2, 4))]
        groups.append([base, *overs])
    return groups


async def merge_settings(
    shell: ShellWorld, seed: Seed = 0, level: Literal["once", "program"] = "once"
) -> AsyncGenerator[str | Grade]:
    """Ask for settings merged by rules, or for a program that merges them."""
    (group,) = settings_case(seed, level)
    made = f"{a_word('settings', seed)}.json"
    program = f"merge_{a_word('settings', seed)}.py"
    draw = draws("settings/names", seed)
    names = [f"{name}.json" for name in draw.sample(WORDS, len(group))]
    files: dict[str, File | str | bytes] = {
        f"settings/{name}": json.dumps(each, indent=1) + "\n"
        for name, each in zip(names, group, strict=True)
    }
    files |= {"RULES.md": RULES, f"settings/{names[-1]}.old": json.dumps(group[0]) + "\n"}
    order = [names[0], f"# {names[-1]}", *names[1:]]
    files["settings/ORDER"] = "\r\n".join(order) + "\r\n"
    await need(shell)
    await fill(shell, files)
    if level == "once":
        yield (
            "Merge the files that /workspace/settings/ORDER lists, in its order, as "
            "/workspace/RULES.md says. In ORDER, lines that begin with # are comments. Write the "
            f"result as JSON to /workspace/{made}. Change nothing below /workspace/settings."
        )
        async with shell.verifier(copy=[made]) as clean:
            text = await read_small(clean, made)
        yield graded({"settings": same_json(text or b"", merged_all(group))})
        return
    yield (
        f"Write the Python program /workspace/{program}, in one file, with the standard library "
        f"alone. `python3 {program} BASE.json OTHER.json…` merges two or more files in the order "
        "given, as /workspace/RULES.md says, and prints the result as JSON. /workspace/settings "
        "has examples. The program is graded on other files."
    )
    cases = settings_case(seed, level, hidden=True)
    right = 0
    async with shell.verifier(copy=[program]) as clean:
        for number, each in enumerate(cases):
            paths = {f"in{number}/{place}.json": json.dumps(one) for place, one in enumerate(each)}
            await put(clean, paths)
            done = await clean.run(["python3", program, *paths], timeout_s=20)
            right += same_json(done.stdout.encode(), merged_all(each))
    yield graded({"hidden files": right == len(cases)})


def merged_all(group: list[dict[str, Any]]) -> dict[str, Any]:
    """All of a group."""
    result: dict[str, Any] = {}
    for each in group:
        result = merged(result, each)
    return result


def same_json(text: bytes, wanted: object) -> bool:
    """Whether a text is a value in JSON; 1, 1.0 and true differ."""
    try:
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(wanted, sort_keys=True)
    except (ValueError, RecursionError):
        return False


MERGE = """
import json, sys
def merge(base, over):
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif key.endswith("+"):
            there = result.get(key[:-1])
            result[key[:-1]] = (there if isinstance(there, list) else []) + value
        elif isinstance(value, dict):
            there = result.get(key)
            result[key] = merge(there if isinstance(there, dict) else {}, value)
        else:
            result[key] = value
    return result
result = {}
for path in sys.argv[1:]:
    result = merge(result, json.load(open(path)))
print(json.dumps(result, indent=1))
"""


async def solve_settings(agent: Agent, level: str) -> str:
    """Read the rules, write the program, and run it on the files in order."""
    await run(agent, "cat RULES.md; ls settings")
    order = await run(agent, "cat -A settings/ORDER")
    names = [line.removesuffix("^M$") for line in order.splitlines() if not line.startswith("#")]
    for name in names:
        await run(agent, f"cat settings/{name}")
    program = named(agent, ".py") if level == "program" else "merge.py"
    await agent.tool("write_file", path=program, content=MERGE.lstrip())
    paths = " ".join(f"settings/{name}" for name in names)
    made = named(agent, ".json") if level == "once" else "/dev/null"
    await run(agent, f"python3 {program} {paths} | tee {made}")
    if level == "once":
        await run(agent, f"rm {program}; python3 -m json.tool {made} | grep -c null")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    env.template(description="Make one list of many encodings")(unite_lists).oracle(solve_lists)
    settings = env.template(description="Merge settings by rules")(merge_settings)
    settings.oracle(solve_settings)
