"""Small tasks on a tree of files: find one, rename a host in some, set rights."""

import re
from collections.abc import AsyncGenerator, Mapping
from typing import Literal

from shell_files import (
    File,
    Files,
    Seed,
    as_file,
    draws,
    fill,
    graded,
    intact,
    named,
    need,
    put,
    run,
    scan,
    seen_as,
)
from shell_words import WORDS, a_word, words

from hud_mcp import Agent, Environment, Grade, ShellWorld

__all__ = ["declare", "twin_case"]


def twin_case(seed: int, names: str) -> tuple[Files, str, list[str]]:
    """A store of texts, the path of the one that is the sample, and paths of near ones."""
    draw = draws(f"twin/{names}", seed)
    odd = names == "odd"
    folders = [f"{a}/{b}" for a in draw.sample(WORDS, 4) for b in draw.sample(WORDS, 3)]
    folders += [".cache/old", "field notes"] if odd else []
    sample = "".join(f"{words(draw, 6)}\n" for _ in range(6))
    files: dict[str, File | str | bytes] = {"sample.txt": sample}

    def place(text: str) -> str:
        name = "-".join(draw.sample(WORDS, 2))
        name = draw.choice((name, f"-{name}", f"{name} (copy)")) if odd else name
        path = f"store/{draw.choice(folders)}/{name}.txt"
        if path in files:
            return place(text)
        files[path] = text
        return path

    for _ in range(40):
        place("".join(f"{words(draw, 6)}\n" for _ in range(6)))
    lines = sample.splitlines()
    near = [sample.rstrip("\n"), f"{sample.replace(lines[2], lines[2].upper())}", f"{sample}\n"]
    near += [sample.replace("\n", "\r\n"), sample.replace(" ", "  ", 1)] if odd else []
    others = [place(text) for text in near]
    answer = place(sample)
    keys = list(files)
    draw.shuffle(keys)
    return {key: files[key] for key in keys}, answer, others


def as_path(answer: str) -> str:
    """A path from the task's folder on, however it was written."""
    path = answer.strip().strip("`'\"").removeprefix("/workspace/").removeprefix("./")
    return path if path.startswith("store/") else f"store/{path}"


async def find_twin(
    shell: ShellWorld, seed: Seed = 0, names: Literal["plain", "odd"] = "plain"
) -> AsyncGenerator[str | float]:
    """Ask which file has the bytes of the sample."""
    files, twin, _ = twin_case(seed, names)
    await need(shell)
    await fill(shell, files)
    answer = yield (
        "Exactly one file somewhere below /workspace/store has the same bytes as "
        "/workspace/sample.txt. Answer with the path of that file alone, from store/ on."
    )
    yield float(as_path(str(answer)) == twin)


async def solve_twin(agent: Agent) -> str:
    """Compare digests."""
    await run(agent, "ls -la; wc sample.txt")
    await run(agent, "find store -type f | head -60")
    digest = (await run(agent, "sha256sum < sample.txt")).split()[0]
    found = await run(agent, f"find store -type f -exec sha256sum {{}} + | grep {digest}")
    return found.split("  ", 1)[1].strip()


HOST_LINES = (
    "url = postgres://{}:5432/main",
    "primary={}",
    "replicas={},{}",
    'server "{}" weight=2',
    "# {} answers within a second",
)


def host_case(seed: int, names: str) -> tuple[str, str, Files, Files]:
    """The old and the new host, the files, and the files as they are to be."""
    draw = draws(f"host/{names}", seed)
    old = f"db{draw.randint(1, 9)}.{draw.choice(WORDS)}.example.net"
    new = f"{draw.choice(WORDS)}{draw.randint(10, 99)}.example.org"
    like = [f"x{old}", f"{old}work", f"old-{old}", f"{old}.backup", old.replace(".", "-", 1)]
    before: dict[str, str] = {}
    for _ in range(9):
        lines: list[str] = []
        for _ in range(draw.randint(4, 8)):
            line = draw.choice(HOST_LINES)
            others = [*like, f"{draw.choice(WORDS)}.example.net"]
            if names == "plain":
                others = others[-1:]
            lines.append(line.format(draw.choice((old, *others)), draw.choice((old, *others))))
        lines.append(f"listen = {draw.randint(2000, 9000)}")
        folder = draw.choice(("etc", "etc/conf.d", "etc/sites"))
        before[f"{folder}/{draw.choice(WORDS)}.conf"] = "\n".join(lines) + "\n"
    first = next(iter(before))
    before[first] += f"main = {old}\n"
    after = {path: _renamed(text, old, new) for path, text in before.items()}
    kept = {f"{first}.bak": before[first], "etc/README.md": f"The host is {old} since May.\n"}
    return old, new, {**before, **kept}, {**after, **kept}


def _renamed(text: str, old: str, new: str) -> str:
    part = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
    pieces, at = [], 0
    while (found := text.find(old, at)) >= 0:
        end = found + len(old)
        whole = text[found - 1 : found] not in part or found == 0
        whole = whole and (end == len(text) or text[end] not in part)
        pieces += [text[at:found], new if whole else old]
        at = end
    return "".join([*pieces, text[at:]])


async def rename_host(
    shell: ShellWorld, seed: Seed = 0, names: Literal["plain", "alike"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for another host name in some files."""
    old, new, before, after = host_case(seed, names)
    await need(shell)
    await fill(shell, before)
    yield (
        f"The host {old} is now called {new}. Replace the name in every file below "
        "/workspace/etc whose name ends in .conf, in comments too. A longer name that contains "
        f"the old one, such as x{old} or {old}.backup, is another host: leave it. "
        "Change no other file, and leave no new file below /workspace/etc."
    )
    async with shell.verifier(copy=["etc"]) as clean:
        seen = await scan(clean, "etc")
        plain = not clean.left_out
    yield graded({"all names": intact(seen, after, "etc") and plain})


async def solve_host(agent: Agent) -> str:
    """Look at every place, and replace whole names."""
    words_ = agent.prompt.split()
    old, new = words_[2], words_[6].rstrip(".")
    await run(agent, "find etc -type f")
    await run(agent, f"grep -rnF {old} etc | head -50")
    dots = old.replace(".", r"\\.")
    whole = f"(?<![A-Za-z0-9.-]){dots}(?![A-Za-z0-9.-])"
    lines = (
        "import pathlib, re",
        "for path in pathlib.Path('etc').rglob('*.conf'):",
        f"    path.write_text(re.sub('{whole}', '{new}', path.read_text()))",
    )
    await run(agent, "python3 - <<'E'\n" + "\n".join(lines) + "\nE")
    await run(agent, f"grep -rnF -e {old} -e {new} etc | head -50")
    return "done"


KINDS = ("folders", "scripts", "secrets", "others")
POLICY = """# Rights in a share

- Folders, the share itself too: {folders:o}.
- Files whose names end in .sh: {scripts:o}.
- Files in a folder that is called `secrets`, at any depth below it: {secrets:o}, scripts too.
- All other files: {others:o}.

Links stay, and what they lead to outside of the share stays as it is.
"""


def drawn_modes(seed: int) -> dict[str, int]:
    """The rights that the policy demands."""
    draw = draws("modes", seed)
    choices = ((0o750, 0o711, 0o710), (0o750, 0o700, 0o550), (0o600, 0o400), (0o640, 0o660, 0o440))
    return {kind: draw.choice(each) for kind, each in zip(KINDS, choices, strict=True)}


def rights_case(purpose: str, seed: int, names: str, top: str) -> Files:
    """A folder in which rights are wrong, and another one that stays as it is."""
    draw = draws(f"{purpose}/{names}", seed)
    odd = names == "odd"
    tops = draw.sample(WORDS, 3)
    folders = [f"{top}/{each}" for each in tops]
    folders += [f"{top}/{tops[0]}/secrets", f"{top}/{tops[1]}/deep/secrets/keys", f"{top}/bin"]
    folders += [f"{top}/my files", f"{top}/-old"] if odd else []
    above = [top, f"{top}/{tops[1]}/deep", f"{top}/{tops[1]}/deep/secrets"]
    files: dict[str, File | str | bytes] = {
        path: File(None, draw.choice((0o700, 0o755, 0o777, 0o775))) for path in (*above, *folders)
    }
    for folder in folders:
        for _ in range(draw.randint(2, 4)):
            name = f"{draw.choice(WORDS)}{draw.choice(('.sh', '.txt', '.key', '.SH', ''))}"
            name = draw.choice((name, f"-{name}", f"a {name}")) if odd else name
            mode = draw.choice((0o644, 0o666, 0o777, 0o755, 0o604, 0o444))
            files[f"{folder}/{name}"] = File(f"{words(draw, 4)}\n", mode)
        files[f"{folder}/run.sh"] = File("#!/bin/sh\ntrue\n", 0o644)
    files |= {"outside": File(None, 0o755), "outside/tool.sh": File("#!/bin/sh\n", 0o644)}
    files["outside/notes.txt"] = File("Keep.\n", 0o666)
    if odd:
        files[f"{top}/tool.sh"] = File(link="../outside/tool.sh")
        files[f"{top}/{tops[2]}/beside"] = File(link="../../outside")
    return files


def kind_of(path: str, file: File) -> str:
    """Which rule of the policy is for a path."""
    if file.data is None:
        return "folders"
    if "secrets" in path.split("/")[:-1]:
        return "secrets"
    return "scripts" if path.endswith(".sh") else "others"


async def set_rights(
    shell: ShellWorld, seed: Seed = 0, names: Literal["plain", "odd"] = "plain"
) -> AsyncGenerator[str | Grade]:
    """Ask for a script that sets the rights that a policy demands."""
    modes = drawn_modes(seed)
    script = f"{a_word('rights', seed)}.sh"
    files = rights_case("rights", seed, names, "share")
    await need(shell)
    await fill(shell, {**files, "POLICY.md": POLICY.format(**modes)})
    yield (
        f"Write the bash script /workspace/{script}. It is called as "
        f"`bash {script} FOLDER`, and sets the rights of FOLDER and of everything below it "
        "as /workspace/POLICY.md says. It changes nothing else. /workspace/share is a folder to "
        "try it on; the script is graded on a folder like it, with other names."
    )
    top = "share 2" if names == "odd" else "share"
    hidden = rights_case("hidden rights", seed, names, top)
    async with shell.verifier(copy=[script]) as clean:
        await put(clean, hidden)
        await clean.run(["bash", script, top], timeout_s=30)
        seen = await scan(clean, top, "outside")
    yield rights_grade(hidden, seen, modes)


def rights_grade(
    files: Files, seen: Mapping[str, tuple[str, int]], modes: Mapping[str, int]
) -> Grade:
    """Each rule of the policy, where nothing else was changed."""
    parts = dict.fromkeys(KINDS, True)
    plain = {path: as_file(file) for path, file in files.items() if not as_file(file).link}
    inside = {path: file for path, file in plain.items() if not path.startswith("outside")}
    kept = all(seen.get(path, ("",))[0] == seen_as(file) for path, file in plain.items())
    kept = kept and all(seen[path][1] == plain[path].mode for path in plain.keys() - inside.keys())
    for path, file in inside.items():
        kind = kind_of(path, file)
        parts[kind] = parts[kind] and seen.get(path, ("", 0))[1] == modes[kind]
    return graded(parts, harmless=kept)


async def solve_rights(agent: Agent) -> str:
    """Follow the policy, rule by rule, without following links."""
    said = await run(agent, "cat POLICY.md")
    folders, scripts, secrets, others = re.findall(r": (\d{3})\b", said)
    await run(agent, "ls -laR share outside | head -150")
    await run(agent, "find share -type l -exec ls -l {} +")
    lines = [
        'cd -- "$1" || exit 1',
        f"find . -type f -exec chmod {others} {{}} +",
        f"find . -type f -name '*.sh' -exec chmod {scripts} {{}} +",
        f"find . -type f -path '*/secrets/*' -exec chmod {secrets} {{}} +",
        f"find . -depth -type d -exec chmod {folders} {{}} +",
    ]
    script = named(agent, ".sh")
    await agent.tool("write_file", path=script, content="\n".join(lines) + "\n")
    await run(agent, f"cp -a share try; bash {script} try; ls -laR try; rm -rf try")
    await run(agent, "find share outside ! -type l -printf '%m %p\\n' | sort")
    return "done"


def declare(env: Environment) -> None:
    """Declare the templates of this file."""
    env.template(description="Find the file with the same bytes")(find_twin).oracle(solve_twin)
    env.template(description="Rename a host in configuration files")(rename_host).oracle(solve_host)
    env.template(description="Set rights as a policy says")(set_rights).oracle(solve_rights)
