"""OSWorld: tasks on an Ubuntu desktop. Every row is read; those that a shell can do run here.

What a row prepares, looks at and compares is data; each kind of it that runs here is written anew
in the environment `osworld`, and any other makes its row say which one it misses.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from hud_mcp.errors import InvalidTask
from hud_mcp.loading.importers.files import Files, InFolder
from hud_mcp.loading.importers.rows import Choice, row, row_id
from hud_mcp.task import Task

__all__ = ["read"]

GYM = "osworld"
_FOLDER = "evaluation_examples"
_ALL, _SMALL = f"{_FOLDER}/test_all.json", f"{_FOLDER}/test_small.json"
_LINES = "osworld_examples.jsonl"
"""The rows in one file, as copies of the set have them."""

METRICS = frozenset({
    "check_direct_json_object", "check_gnome_favorite_apps", "check_include_exclude",
    "check_json_settings", "check_list", "check_text_enlarged", "compare_text_file", "exact_match",
    "infeasible", "is_expected_url_pattern_match", "is_in_list", "is_utc_0", "literal_match",
})  # fmt: skip
"""How results are compared: what `environments/osworld` has."""
GETTERS = frozenset({"rule", "vm_command_line", "vm_file"})
"""What is looked at there."""

_SHELL_DOMAIN = "os"
_DONE_WITHOUT = re.compile(r"pyautogui\.(click\(960, 540\)|hotkey\('ctrl', 'alt', 't'\))")
"""A click into the empty desktop, or a terminal that opens: a shell needs neither."""
_OTHER_INPUT = re.compile(r"pyautogui\.(write|press|typewrite|drag|moveTo|scroll)")
_SCREEN = re.compile(r"pyautogui|xdotool|wmctrl|xdg-open|DISPLAY=")
_DESKTOP = re.compile(r"gsettings|gnome|dbus|timedatectl|pactl|pulseaudio|gio trash|systemctl")
_ROOT = re.compile(r"\b(useradd|adduser|usermod|passwd|chpasswd|apt|apt-get|snap|dpkg|su)\b")
_SUDO = re.compile(r"echo\s+['\"]?password['\"]?\s*\|\s*sudo\s+-S\s+")


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every importer has both
    """The rows, in the order in which the benchmark lists them.

    Raises:
        SourceNotFound: A file cannot be had.
        InvalidTask: One is not what OSWorld publishes.
    """
    small = _listed(files, _SMALL)
    tasks: list[Task] = []
    for domain, name, raw in _examples(files):
        try:
            parts = [domain, "Ubuntu", *(["small"] if (domain, name) in small else [])]
            tasks.append(_task(raw, domain, parts))
        except (KeyError, TypeError, AttributeError) as exc:
            raise InvalidTask(f"{domain}/{name}: this is no row of OSWorld: {exc!r}.") from exc
    return tasks


def _listed(files: Files, name: str) -> set[tuple[str, str]]:
    data = files.read_optional(name)
    listed = cast("dict[str, list[str]]", orjson.loads(data)) if data is not None else {}
    return {(domain, each) for domain, names in listed.items() for each in names}


def _examples(files: Files) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """Each row with its domain and its name: of a file of its own, or a line of one for all."""
    # One file for all is in folders of users' alone; the published place has none.
    lines = files.read_optional(_LINES) if isinstance(files, InFolder) else None
    if lines is not None:
        for line in filter(None, lines.splitlines()):
            raw = cast("dict[str, Any]", orjson.loads(line))
            yield raw["domain"], raw["file_id"], raw
        return
    listed = cast("dict[str, list[str]]", orjson.loads(files.read(_ALL)))
    for domain, names in listed.items():
        for name in names:
            data = files.read(f"{_FOLDER}/examples/{domain}/{name}.json")
            yield domain, name, cast("dict[str, Any]", orjson.loads(data))


def _task(raw: Mapping[str, Any], domain: str, parts: list[str]) -> Task:
    evaluator = cast("dict[str, Any]", raw["evaluator"])
    config = cast("list[dict[str, Any]]", raw.get("config") or [])
    why = _why_not(domain, config, evaluator)
    steps = [_step(step) for step in config if _runs_in_shell(step)]
    return row(
        row_id("osworld", domain, raw["id"]),
        GYM,
        f"{raw['instruction']}\n\nYou are `user` on Ubuntu, and your home is /home/user. Answer "
        "FAIL if this cannot be done, and DONE when you have done it.",
        parts=parts,
        split="test",
        source=f"{_FOLDER}/examples/{domain} of github.com/xlang-ai/OSWorld (Apache-2.0), "
        f"{raw['id']}",
        setup=[["osworld_prepare", *steps]],
        evaluate=[["osworld_evaluate", evaluator]],
        not_runnable=why,
        metadata={
            "domain": domain,
            "related_apps": raw.get("related_apps", []),
            "left_out": [step for step in config if not _runs_in_shell(step)],
        },
    )


def _why_not(domain: str, config: list[dict[str, Any]], evaluator: Mapping[str, Any]) -> str | None:
    """Why a row does not run here; None where it does."""
    metrics = _several(evaluator["func"])
    unknown = [f"metric {name}" for name in metrics if name not in METRICS]
    if domain != _SHELL_DOMAIN:
        return "; ".join(["it needs a desktop", *unknown])
    if unknown:
        return unknown[0]
    if metrics == ["infeasible"]:
        return None  # what was prepared for it plays no part in its grade
    steps = [*config, *cast("list[dict[str, Any]]", evaluator.get("postconfig") or [])]
    if any(step["type"] == "download" for step in steps):
        return "it downloads files that are published elsewhere"
    for step in steps:
        if not _runs_in_shell(step) and not _is_done_without(step):
            return "it needs a desktop"
    return _why_not_getters(steps, evaluator)


def _why_not_getters(steps: list[dict[str, Any]], evaluator: Mapping[str, Any]) -> str | None:
    getters = [
        cast("dict[str, Any]", each)
        for field in ("result", "expected")
        for each in _several(evaluator.get(field))
        if isinstance(each, dict)
    ]
    for getter in getters:
        if getter["type"] not in GETTERS:
            return f"getter {getter['type']}"
    text = " ".join([*map(_command, steps), *(_words(each.get("command")) for each in getters)])
    if _DESKTOP.search(text):
        return "it needs a desktop (GNOME's settings)"
    if _ROOT.search(text) or "which spotify" in text:
        return "it needs root"
    return None


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return cast("list[Any]", given) if isinstance(given, list) else [given]


def _command(step: Mapping[str, Any]) -> str:
    """The words of a step's command."""
    return _words(cast("Mapping[str, Any]", step.get("parameters") or {}).get("command"))


def _words(command: Any) -> str:
    return " ".join(map(str, _several(command)))


def _runs_in_shell(step: Mapping[str, Any]) -> bool:
    """Whether a step is a command that needs no screen and no other user."""
    if step["type"] not in ("execute", "command"):
        return False
    text = _command(step)
    return not _SCREEN.search(text) and not _ROOT.search(text)


def _is_done_without(step: Mapping[str, Any]) -> bool:
    """Whether a shell has what a step is for: time that passes, or a terminal in front."""
    if step["type"] == "sleep":
        return True
    if step["type"] == "activate_window":
        return "Terminal" in str(step.get("parameters"))
    text = _command(step)
    return bool(_DONE_WITHOUT.search(text)) and not _OTHER_INPUT.search(text)


def _step(step: Mapping[str, Any]) -> list[str]:
    """A step as the words of a command; `sudo` with the machine's password is left out.

    One word is a line for the shell.
    """
    parameters = cast("Mapping[str, Any]", step["parameters"])
    command = parameters["command"]
    if isinstance(command, str):
        return [_SUDO.sub("", command)]
    words = [str(word) for word in cast("list[Any]", command)]
    return [" ".join(words)] if parameters.get("shell") else words
