"""AgentBench's `os_interaction`: questions about a machine, and work on it, graded by scripts."""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.imports import (
    ImportedSet,
    NotRunnable,
    as_tasks,
    json_rows,
    missing_programs,
    row,
    row_id,
)

_TITLE = "AgentBench-OS"
_GYM = "agentbench-os"
_DATA, _SCRIPTS = "data/os_interaction/data", "data/os_interaction/scripts"
NAMES = (
    "1/stock", "2/environment", "3/ac", "4/N11", "4/N225", "4/N37", "4/N4", "4/N41", "4/Q09",
    "4/Q19", "4/Q30", "4/Q47", "4/Q49", "5/new", "6/new", "7/bootstrap", "dev",
)  # fmt: skip
"""The set's files, without a copy of one of them that is published too."""
_LANGUAGES = ("bash", "python")
_IMAGES = (None, "default", "ubuntu")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_DRAWN = re.compile(r"\$\{?RANDOM|\brandom\b|\bshuf\b|\bdate\b|\bmktemp\b|/dev/u?random|\$\$|&\s*$")
"""The expressions in a preparation that make other files each time."""
_WHOLE = (
    (
        re.compile(
            r"\b(useradd|adduser|groupadd|addgroup|usermod|gpasswd|(?<!getent )passwd|chpasswd"
            r"|runuser|sudo|su|chown|chgrp|apt|apt-get|dpkg|service|systemctl|crontab|mount|setfacl"
            r"|iptables)\s"
        ),
        "it needs root: its scripts make users, install packages or become another user",
    ),
    (
        re.compile(r"/tmp/\w+"),  # noqa: S108  # of a row
        "it works in /tmp, which no verifier has a copy of",
    ),
    (re.compile(r"/var/log"), "it looks at the machine's own /var/log, and a sandbox has none"),
)
_PREPARED = (
    (
        re.compile(r"(?<![\w.])/(usr|etc|bin|boot|lib|proc|sys)\b"),
        "its preparation writes to the system's own folders, which are read-only in a sandbox",
    ),
    (
        re.compile(r"echo \d{5,}>"),
        "its preparation names a descriptor that is not open, as in `echo 12345>file`",
    ),
)
_ELSEWHERE = r"/(?!root|home|var|opt|srv|mnt|tmp|dev)\w"
_MADE = (
    (
        re.compile(
            rf"(?:>|\bmkdir|\btouch)[^|;&\n]*?\s{_ELSEWHERE}"
            rf"|\b(?:mv|cp|ln|install)\s[^|;&\n]*\s{_ELSEWHERE}\S*\s*(?:$|[|;&\n])"
        ),
        "it writes to a folder that a sandbox has not",
    ),
)
_ASKED = (
    (
        re.compile(r"-perm\s+[-/]?(?:[2467]\d{3}|\S*s\b)|\bchmod\s+(?:[2467]\d{3}|\S*\+\w*s)\b"),
        "it looks at setuid or setgid, which no verifier keeps",
    ),
    (re.compile(r"\bps -"), "it counts processes, and each moment has others"),
    (re.compile(r"\bfree\b"), "it looks at free memory, and each moment has another"),
    (
        re.compile(r"\bdu -sh"),
        "it looks at the room that files take, which the file system of a verifier decides",
    ),
)
"""The texts in a row's scripts that speak against it, and the reasons.

Each is a cause that the row itself shows; none is that a solution happened to fail.
"""
_LACKING = "is not there"
_FORGEABLE = "its scripts find out what is right from what the agent left, or run that"
_PROGRAMS = ("g++", "gcc", "vim", "curl", "wget", "zip", "unzip", "tree", "file", "less", "bc",
             "ping", "ifconfig", "netstat")  # fmt: skip


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every reader has both
    """Read the rows of every file, in order."""
    tasks: list[Task] = []
    for name in NAMES:
        path = f"{_DATA}/{name}.json"
        rows = json_rows(files.read(path), path, _TITLE)
        tasks += as_tasks(rows, partial(_task, files, name), _TITLE)
    if any(_LACKING in (why_not_runnable(task) or "") for task in tasks):
        files.notes.append(
            f"Rows lack scripts: put {_SCRIPTS} of github.com/THUDM/AgentBench beside their files."
        )
    return tasks


def _task(files: Files, name: str, index: int, raw: Mapping[str, Any]) -> Task:
    split = "dev" if name == "dev" else "test"
    scripts = f"{_SCRIPTS}/{PurePosixPath(name).parts[0]}"
    setup: list[list[Any]] = []
    evaluate: list[list[Any]] = []
    gold: dict[str, Any] = {}
    try:
        setup, evaluate, gold = _calls(files, scripts, raw)
        why = _why_not(raw, setup, evaluate, gold)
    except NotRunnable as exc:
        why = str(exc)
    return row(
        row_id("agentbench-os", name.replace("/", "-"), index),
        _GYM,
        f"{raw['description']}\n\nWork in the shell. Answer with nothing but what is asked for; "
        "where something is to be done, answer `done` when it is.",
        parts=[split, name.partition("/")[0]],
        split=split,
        source=f"{files.published.credit(f'{_DATA}/{name}.json')}, row {index}",
        setup=setup,
        evaluate=evaluate,
        not_runnable=why,
        metadata={
            "labels": raw.get("labels", []),
            "gold": gold,
            **({"forgeable": _FORGEABLE} if _is_forgeable(evaluate) else {}),
        },
    )


def _calls(
    files: Files, scripts: str, raw: Mapping[str, Any]
) -> tuple[list[list[Any]], list[list[Any]], dict[str, Any]]:
    """Return a row's setup, grading and solution; raise NotRunnable if a script is not there."""
    init = _created(raw).get("init")
    steps = [_script(files, scripts, each) for each in _several(init)]
    setup: list[list[Any]] = [["run", _line(step)] for step in steps if step is not None]
    if (start := _script(files, scripts, raw.get("start"))) is not None:
        setup.append(["run", f"{{ {_line(start)}\n}} >/dev/null 2>&1"])
    graded = cast("dict[str, Any]", raw["evaluation"])
    example = _script(files, scripts, graded.get("example"))
    if "match" in graded:
        match: Any = graded["match"]
        rule = cast("dict[str, str]", {"answer": match} if isinstance(match, str) else match)
        if "answer" not in rule:
            return setup, [["response_match", rule["regex"]]], {}
        return setup, [["response_is", rule["answer"]]], {"answer": rule["answer"]}
    several = _several(graded["check"])
    checks = [_script(files, scripts, each) or example for each in several]
    if None in checks:
        raise NotRunnable("it has no example to compare with")
    known = cast("list[tuple[str, str]]", checks)
    asks = None in several or any(each[0] == "python" for each in known)
    gold = {} if example is None else {"command": _line(example), "answer": None if asks else ""}
    calls: list[Any] = ["agentbench_check", [list(each) for each in known]]
    if None in several and _is_made_anew(setup, raw):
        calls.append([str(call[1]) for call in setup])
    return setup, [calls], gold


def _is_forgeable(evaluate: Sequence[Sequence[Any]]) -> bool:
    """Whether scripts look at what the agent left to find out what is right, or run it."""
    for call in evaluate:
        if call[0] == "agentbench_check" and len(call) == 2:  # noqa: PLR2004  # nothing made anew
            codes = [code for _, code in call[1]]
            if len(codes) > 1 or any("source " in code for code in codes):
                return True
    return False


def _is_made_anew(setup: Sequence[Sequence[Any]], raw: Mapping[str, Any]) -> bool:
    """Whether a question's subject can be made once more as it was: nothing of it is drawn."""
    return not raw.get("start") and not any(_DRAWN.search(str(call[1])) for call in setup)


def _script(files: Files, folder: str, given: Any) -> tuple[str, str] | None:
    """Return a script as its language and its text; raise NotRunnable if its file is not there."""
    if given is None:
        return None
    if isinstance(given, str):
        return "bash", given
    language = str(given.get("language", "bash"))
    if "code" in given:
        return language, str(given["code"])
    data = files.read_optional(f"{folder}/{given['file']}")
    if data is None:
        raise NotRunnable(f"the script {given['file']} {_LACKING}")
    return language, data.decode()


def _line(script: tuple[str, str]) -> str:
    language, code = script
    return code if language == "bash" else f"python3 -c {shlex.quote(code)}"


def _created(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a row's machine; empty for a list, which is a slip of the row."""
    created: Any = raw.get("create") or {}
    return cast("dict[str, Any]", created) if isinstance(created, dict) else {}


def _several(given: Any) -> list[Any]:
    return cast("list[Any]", given) if isinstance(given, list) else [given]


def _why_not(
    raw: Mapping[str, Any],
    setup: list[list[Any]],
    evaluate: list[list[Any]],
    gold: Mapping[str, Any],
) -> str | None:
    image = _created(raw).get("local")
    if image not in _IMAGES:
        return f"it needs the image {image}"
    prepared = "\n".join(str(call[1]) for call in setup)
    scripts = [each for call in evaluate if call[0] == "agentbench_check" for each in call[1]]
    if unknown := [language for language, _ in scripts if language not in _LANGUAGES]:
        return f"it needs {unknown[0]}"
    solved = str(gold.get("command") or "")
    return _why_not_text(prepared, solved, "\n".join(code for _, code in scripts))


def _why_not_text(prepared: str, solved: str, checked: str) -> str | None:
    prepared, solved, checked = (_COMMENT.sub("", each) for each in (prepared, solved, checked))
    whole = f"{prepared}\n{solved}\n{checked}"
    looked_at = {
        whole: _WHOLE,
        prepared: _PREPARED,
        f"{prepared}\n{solved}": _MADE,
        f"{solved}\n{checked}": _ASKED,
    }
    for text, rules in looked_at.items():
        for pattern, why in rules:
            if pattern.search(text):
                return why
    named = {name for name in _PROGRAMS if re.search(rf"(?<![\w/.-]){re.escape(name)}\s", whole)}
    if missing := missing_programs(sorted(named)):
        return f"it needs the program {missing[0]}"
    return None


SET = ImportedSet(_TITLE, read)
