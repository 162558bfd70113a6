"""InterCode-bash: a request in words, graded by the files that changed and by what was printed."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files, InFolder
from hud_mcp.plugins.sets.imports import (
    ImportedSet,
    as_tasks,
    json_rows,
    missing_programs,
    row,
    row_id,
)

_TITLE = "InterCode-bash"
_SYSTEMS = {1: "/testbed", 2: "/system", 3: "/workspace", 4: ""}
"""The root of each file system; the last one has nothing but the machine's."""
_GYMS = {3: "intercode-workspace"}
_GYM = "intercode"
_PROGRAMS = (
    "bc", "column", "cpio", "crontab", "dig", "file", "finger", "host", "hostname", "ifconfig",
    "ip", "iostat", "less", "lsof", "man", "md5deep", "netstat", "nslookup", "pstree", "rename",
    "rev", "rsync", "screen", "ssh", "sudo", "tree", "vim", "wget", "zip",
)  # fmt: skip
"""The programs that golds name and minimal machines may lack."""
_LONG = r"\bls\s[^|;]*-\w*[lt]"
_VARIES = (
    (re.compile(r"\bdate\b"), "it prints the time"),
    (re.compile(rf"{_LONG}|-printf '?[^ ]*%[TtACc]"), "it prints when files were made"),
    (re.compile(r"\bls\s[^|;]*-\w*i|-printf '?[^ ]*%i"), "it prints numbers of inodes"),
    (re.compile(r"\bps\b|\bpstree\b|\btop\b|\bjobs\b"), "it prints the processes of the moment"),
    (re.compile(r"\$\$|\bmktemp\b|\$RANDOM|\bshuf\b|sort -R"), "it prints what is drawn"),
    (re.compile(r"\bdf\b|\bfree\b|\buptime\b|\bnetstat\b"), "it prints how the machine is used"),
    (re.compile(r"-ls\b"), "it prints when files were made"),
    (re.compile(r"(?<!&)&\s*$"), "it goes on in the background after it has ended"),
    (
        re.compile(r"\btar -?\w*c\w*f\s+/(?!testbed|system|workspace|tmp)"),
        "it writes beside its file system, where a sandbox has no room",
    ),
    (re.compile(r"\bfind (?:/\S+ )?/ "), "it searches the whole machine, and each has other files"),
    (
        re.compile(r"(?:^|[|;&]\s*)(?:env|printenv)\b"),
        "it prints the variables of the machine's shell",
    ),
)
"""The parts of a gold command whose next run prints otherwise, and the reasons."""
_DIGEST = re.compile(r"\b(?:md5sum|sha\d+sum|cksum)\b")
_CHOSEN = re.compile(r"-name\b|\buniq -\w*[dD]")
"""The choice of some files, or of the digests that occur twice: no archive is among these."""
_ARCHIVED = re.compile(r"\btar -\w*z|\bgzip\b")
_COUNTED = re.compile(r"\|\s*wc -l\s*$")
_COLUMNS = re.compile(r"\b(df\b|find [^|]*-ls\b)[^|]*(?:\|[^|]*)*\|\s*awk '\{print ([^}]*)\}'")
_LASTING = {"df": frozenset({"1", "6", "NF"}), "-ls": frozenset({"3", "4", "5", "6", "7", "NF"})}
"""Columns that are the same each time: names, links, owners, sizes of files."""
_PROGRAM = re.compile(r"^ls -\w+ `which (\S+)`$")
_NETWORK = re.compile(r"\b(curl|wget|ping|ssh|scp|nslookup|dig|host)\s")
_LACKING = "the script that makes its file system is not there"
_ASKED = (
    "Do this in the shell, if possible in one line of bash. Then answer with exactly what your "
    "last command printed, or with nothing where it printed nothing."
)


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every reader has both
    """Read the rows of the four file systems."""
    tasks: list[Task] = []
    for number, root in _SYSTEMS.items():
        script = files.read_optional(f"docker/bash_scripts/setup_nl2b_fs_{number}.sh")
        # A step of it that has no place here, as `rm -rf` of the root itself, ends nothing.
        setup = f"{script.decode()}\ntrue\n" if script is not None and root else ""
        rows = json_rows(_data(files, number), _path(number), _TITLE)
        tasks += as_tasks(rows, partial(_task, files, number, setup), _TITLE)
    if any(why_not_runnable(task) == _LACKING for task in tasks):
        files.notes.append(
            "Rows lack scripts: put docker/bash_scripts of github.com/princeton-nlp/intercode "
            "beside their files."
        )
    return tasks


def _path(number: int) -> str:
    return f"data/nl2bash/nl2bash_fs_{number}.json"


def _data(files: Files, number: int) -> bytes:
    # Copies of the set give a file this short name.
    short = files.read_optional(f"fs{number}.json") if isinstance(files, InFolder) else None
    return files.read(_path(number)) if short is None else short


def _task(files: Files, number: int, setup: str, index: int, raw: Mapping[str, Any]) -> Task:
    gold = str(raw["gold"])
    return row(
        row_id("intercode", f"fs{number}", index),
        _GYMS.get(number, _GYM),
        f"{raw['query']}\n\n{_ASKED}",
        parts=[f"fs{number}"],
        split="test",
        source=f"{files.published.credit(_path(number))}, row {index}",
        setup=[["run", setup]] if setup else [],
        evaluate=[["intercode_reward", gold, setup]],
        not_runnable=_why_not(gold, _SYSTEMS[number], setup),
        metadata={"gold": gold},
    )


def _why_not(gold: str, root: str, setup: str) -> str | None:
    if root and not setup:
        return _LACKING
    named = set(re.findall(r"(?:^|[|;&(`]|\bxargs|\bexec|\bsudo)\s*(?:-\w+\s+)*([a-z0-9]+)", gold))
    if missing := missing_programs(sorted(named & set(_PROGRAMS))):
        return f"it needs the program {missing[0]}"
    if _NETWORK.search(gold):
        return "it needs a network"
    if _DIGEST.search(gold) and not _CHOSEN.search(gold) and _ARCHIVED.search(setup):
        return "it prints digests of files, and an archive among them has the time in it"
    if _is_lasting(gold):
        return None
    return next((why for pattern, why in _VARIES if pattern.search(gold)), None)


def _is_lasting(gold: str) -> bool:
    """Whether it prints the same each time, although a part of it would not.

    Lines are only counted; only lasting columns are printed; or a program of the machine is listed.
    """
    if _COUNTED.search(gold) and not re.search(r"\bps\b", gold):
        return True
    if (shown := _COLUMNS.search(gold)) is not None:
        kind = "df" if shown[1] == "df" else "-ls"
        return set(re.findall(r"\$(\w+)", shown[2])) <= _LASTING[kind]
    listed = _PROGRAM.search(gold)
    return listed is not None and not missing_programs([listed[1]])


SET = ImportedSet(_TITLE, read)
