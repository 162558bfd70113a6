"""The reward of InterCode-bash: files that changed, what they became, and what was printed.

The rule is that of `intercode/envs/bash/bash_env.py` in github.com/princeton-nlp/intercode (MIT):
0.01, and up to 0.33 for each of the three. The answer stands for what the last command printed.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping

from hud_mcp import Answer, Environment, Grade, ShellWorld, SubScore, Verifier

__all__ = ["changes", "declare", "reward", "similarity"]

PART = 0.33
LEAST = 0.01
SCAN = '''
import hashlib, json, os, tarfile
found = {}
def content(path):
    """What is in a file; of an archive its files, for it also has the time at which it was made."""
    try:
        with tarfile.open(path) as archive:
            parts = [(each.name, archive.extractfile(each).read() if each.isfile() else b"")
                     for each in archive]
        return repr(parts).encode()
    except (tarfile.TarError, OSError, EOFError):
        return open(path, "rb").read()
for folder, folders, names in os.walk("/workspace"):
    folders[:] = [each for each in folders if each != ".git"]
    for name in names + [each for each in folders if os.path.islink(os.path.join(folder, each))]:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            found[path] = "link"
        elif os.path.isfile(path):
            try:
                data = content(path)
            except OSError:
                data = b"unreadable"
            runs = os.stat(path).st_mode & 0o100
            found[path] = f"{hashlib.md5(data).hexdigest()} {int(bool(runs))}"
print(json.dumps(found))
'''

Files = Mapping[str, str]


def declare(env: Environment) -> None:
    """Let an environment's tasks name the reward."""
    env.function(intercode_reward, use="evaluate")


async def intercode_reward(
    shell: ShellWorld, answer: Answer[str], gold: str, setup: str = ""
) -> Grade:
    """Compare files and output with those of the gold command, each where no agent has been."""
    async with shell.verifier(copy=".") as clean:
        after = dict(await scanned(clean))
        links = {path: why for path, why in clean.left_out.items() if "link" in why}
        after |= {f"/workspace/{path}": "link" for path in links}
    async with shell.verifier() as clean:
        if setup:
            await clean.run(setup)
        before = await scanned(clean)
        printed = await clean.run(f"exec 2>&1\n{gold}")
        wanted = await scanned(clean)
    return reward(before, after, wanted, answer.raw, printed.stdout)


async def scanned(clean: Verifier) -> Files:
    """Each file with what is in it; a link counts as one."""
    done = await clean.run(["python3", "-I", "-S", "-c", SCAN])
    return json.loads(done.stdout)


def reward(before: Files, after: Files, wanted: Files, answer: str, printed: str) -> Grade:
    """The three parts, as the benchmark weighs and rounds them."""
    mine, gold = changes(before, after), changes(before, wanted)
    other = len(set(mine.items()) ^ set(gold.items()))
    first = round(PART * (1 - math.erf(other)), 2)
    both = [path for path, sign in mine.items() if gold.get(path) == sign == "??"]
    second = PART
    if both:
        same = sum(beneath(after, path) == beneath(wanted, path) for path in both)
        second = round(PART * same / len(both), 2)
    third = round(PART * similarity(answer, printed), 2)
    parts = {"file_diff": first, "file_changes": second, "answer_similarity": third}
    return Grade(
        reward=round(LEAST + sum(parts.values()), 2),
        subscores=tuple(
            SubScore(name=name, value=min(1.0, value / PART), weight=PART)
            for name, value in parts.items()
        ),
    )


def changes(before: Files, after: Files) -> dict[str, str]:
    """What `git status --short` would say: a new folder is one change."""
    found = {path: "D" for path in before if path not in after}
    found |= {path: "M" for path in before if path in after and after[path] != before[path]}
    old = {parent for path in before for parent in parents(path)}
    for path in after:
        if path not in before:
            new = next((each for each in parents(path) if each not in old), None)
            found[f"{new}/" if new is not None else path] = "??"
    return found


def parents(path: str) -> list[str]:
    """The folders that a file is in, the outermost first; what all is in is none."""
    words = path.split("/")
    return ["/".join(words[:end]) for end in range(3, len(words))]


def beneath(files: Files, path: str) -> dict[str, str]:
    """What is in a file, or in the files of a folder."""
    return {
        name: kept.partition(" ")[0]
        for name, kept in files.items()
        if name == path or (path.endswith("/") and name.startswith(path))
    }


def similarity(one: str, other: str) -> float:
    """How like two texts are: the cosine of their words, weighed by how rare they are.

    Words have two letters or more. Without any, only equal texts are alike, but for newlines at
    their ends.
    """
    counts = [Counter(re.findall(r"\b\w\w+\b", text.lower())) for text in (one, other)]
    words = set(counts[0]) | set(counts[1])
    if not words:
        return float(one.rstrip("\n") == other.rstrip("\n"))
    weights = {
        word: math.log(3 / (1 + sum(word in count for count in counts))) + 1 for word in words
    }
    vectors = [{word: count[word] * weights[word] for word in count} for count in counts]
    lengths = [math.sqrt(sum(value * value for value in each.values())) for each in vectors]
    if not all(lengths):
        return 0.0
    product = sum(value * vectors[1].get(word, 0.0) for word, value in vectors[0].items())
    return min(1.0, product / (lengths[0] * lengths[1]))
