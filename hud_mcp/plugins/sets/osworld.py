"""OSWorld: tasks on an Ubuntu desktop. Every row is read; those that a shell can do run here.

The environment `osworld` has its own copy of each preparation, getter and comparison that runs
here. A row with any other one names it.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.download import NotPublished, TokenNeeded, Unreachable
from hud_mcp.plugins.sets.files import Files, InFolder, keep_file
from hud_mcp.plugins.sets.imports import ImportedSet, NotRunnable, as_tasks, row, row_id

_TITLE = "OSWorld"
_GYM = "osworld"
_FOLDER = "evaluation_examples"
_ALL, _SMALL = f"{_FOLDER}/test_all.json", f"{_FOLDER}/test_small.json"
_LINES = "osworld_examples.jsonl"
"""The rows in one file, as copies of the set have them."""

METRICS = frozenset({
    "check_direct_json_object", "check_gnome_favorite_apps", "check_include_exclude",
    "check_json_settings", "check_list", "check_moved_jpgs", "check_text_enlarged",
    "compare_docx_files", "compare_pdfs", "compare_pptx_files", "compare_table",
    "compare_text_file", "exact_match", "infeasible", "is_expected_active_tab",
    "is_expected_url_pattern_match", "is_in_list", "is_utc_0", "literal_match",
})  # fmt: skip
"""The comparisons of results that `environments/osworld` has."""
TABLE_RULES = frozenset({
    "chart", "check_cell", "col_props", "data_validation", "freeze", "pivot_table", "row_props",
    "sheet_data", "sheet_fuzzy", "sheet_name", "sheet_print", "style", "zoom",
})  # fmt: skip
"""The rules by which `compare_table` compares there."""
_PROPS = ("chart_props", "pivot_props", "props")
"""The fields that name a rule's properties; `dv_props` has several of them."""
_STYLES = frozenset({
    "bgcolor", "fgcolor", "fill_type", "font_bold", "font_color", "font_family", "font_italic",
    "font_name", "font_size", "font_underline",
})  # fmt: skip
TABLE_PROPS = {
    "chart": frozenset({
        "anchor", "direction", "legend", "title", "type", "xtitle", "ytitle", "ztitle",
    }),
    "check_cell": _STYLES | {"value"},
    "col_props": frozenset({"auto_size", "collapsed", "hidden", "max", "min", "width"}),
    "data_validation": frozenset({
        "allowBlank", "error", "errorStyle", "errorTitle", "formula1", "formula2", "imeMode",
        "operator", "prompt", "promptTitle", "ranges", "showDropDown", "showErrorMessage",
        "showInputMessage", "type",
    }),
    "pivot_table": frozenset({
        "col_fields", "data_fields", "data_fields_name", "filter", "location", "name", "ordered",
        "row_fields", "selection", "show_empty_col", "show_empty_row", "show_headers", "show_total",
    }),
    "row_props": frozenset({"collapsed", "height", "hidden"}),
    "style": _STYLES,
}  # fmt: skip
"""The properties that some rules can compare there."""
GETTERS = frozenset({"cloud_file", "list_directory", "rule", "vm_command_line", "vm_file"})
"""The kinds of results that are read there."""

_SHELL_DOMAINS = ("os", "multi_apps")
_SHELL_APPS = frozenset({"os", "terminal", "pdf", "image"})
"""The applications that a row with several may name, since none of these has a window."""
_ABOUT = "You are `user` on Ubuntu, and your home is /home/user."
_ASKED = "Answer FAIL if this cannot be done, and DONE when you have done it."
_PLAIN = re.compile(r"[^\w.-]")
_HOSTS = frozenset({"drive.usercontent.google.com", "drive.google.com", "huggingface.co"})
"""The hosts of the benchmark's files: no file is fetched from any other host."""
_PAGE = (b"<!doctype html", b"<html")

_TERMINAL = re.compile(
    r"^\s*(?:export DBUS_SESSION_BUS_ADDRESS=\S+\s+)?gnome-terminal(?: --maximize)?"
    r"(?: --working-directory=(\S+))?\s*$"
)
"""A terminal that is opened in a folder."""
_KEY = re.compile(r"pyautogui\.(\w+)\(([^()]*)\)")
_POINTED = ("click(960, 540)", "hotkey('ctrl', 'alt', 't')", "press('enter')")
"""A click into the empty desktop, and a terminal that opens: a shell needs neither."""
_TYPED = re.compile(r"write\('(?:cd ([\w./~-]+)|clear)'\)")
_SCREEN = re.compile(r"pyautogui|xdotool|wmctrl|xdg-open|DISPLAY=|gnome-terminal")
_DESKTOP = re.compile(r"gsettings|gnome|dbus|timedatectl|pactl|pulseaudio|gio trash|systemctl")
_ROOT = re.compile(r"\b(useradd|adduser|usermod|passwd|chpasswd|apt|apt-get|snap|dpkg|su)\b")
_SUDO = re.compile(r"echo\s+['\"]?password['\"]?\s*\|\s*sudo\s+-S\s+")


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every reader has both
    """Read the rows, in the order in which the benchmark lists them."""
    small = _listed(files, _SMALL)
    downloads = _Downloads(files)

    def make(_: int, example: tuple[str, str, Mapping[str, Any]]) -> Task:
        domain, name, raw = example
        parts = [domain, "Ubuntu", *(["small"] if (domain, name) in small else [])]
        return _task(raw, domain, parts, downloads)

    examples = ((f"{domain}/{name}", (domain, name, raw)) for domain, name, raw in _examples(files))
    return as_tasks(examples, make, _TITLE)


def _listed(files: Files, name: str) -> set[tuple[str, str]]:
    data = files.read_optional(name)
    listed = cast("dict[str, list[str]]", orjson.loads(data)) if data is not None else {}
    return {(domain, each) for domain, names in listed.items() for each in names}


def _examples(files: Files) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
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


def _task(raw: Mapping[str, Any], domain: str, parts: list[str], downloads: "_Downloads") -> Task:
    config = cast("list[dict[str, Any]]", raw.get("config") or [])
    evaluator = cast("dict[str, Any]", raw["evaluator"])
    why = _why_not(raw, domain, config, evaluator)
    prepared: list[Any] = []
    has_files = False
    if why is None:
        try:
            prepared = downloads.taken(config)
            evaluator = downloads.evaluator(evaluator)
        except NotRunnable as exc:
            why = str(exc)
        has_files = downloads.is_used
    asked = [str(raw["instruction"]), f"{_ABOUT}{_folder_told(config)} {_ASKED}"]
    return row(
        row_id("osworld", domain, raw["id"]),
        _GYM,
        "\n\n".join(asked),
        parts=parts,
        split="test",
        source=f"{downloads.published.credit(f'{_FOLDER}/examples/{domain}')}, {raw['id']}",
        setup=[["osworld_prepare", *prepared]],
        evaluate=[["osworld_evaluate", evaluator]],
        not_runnable=why,
        metadata={
            "domain": domain,
            "related_apps": raw.get("related_apps", []),
            "left_out": [step for step in config if not _is_taken(step)],
            **({"files": "fetched with the row, by their digests"} if has_files else {}),
        },
    )


def _why_not(
    raw: Mapping[str, Any], domain: str, config: list[dict[str, Any]], evaluator: Mapping[str, Any]
) -> str | None:
    """Return the reason why a row does not run here, whatever its files; None if it runs."""
    metrics = _several(evaluator["func"])
    unknown = [f"metric {name}" for name in metrics if name not in METRICS]
    for options in _several(evaluator.get("options")):
        for rule in cast("dict[str, Any]", options or {}).get("rules", ()):
            if "type" in rule:
                unknown += [f"metric compare_table: {each}" for each in _unknown_rule(rule)]
    apps = frozenset(map(str, raw.get("related_apps") or ()))
    if domain not in _SHELL_DOMAINS or (domain != _SHELL_DOMAINS[0] and not apps <= _SHELL_APPS):
        return "; ".join(["it needs a desktop", *unknown])
    if unknown:
        return unknown[0]
    if metrics == ["infeasible"]:
        return None  # what was prepared for it plays no part in its grade
    if "compare_pdfs" in metrics and find_spec("pypdf") is None:
        return "it needs pypdf: pip install 'hud-mcp[osworld]'"
    getters = [
        cast("dict[str, Any]", each)
        for field in ("result", "expected")
        for each in _several(evaluator.get(field))
        if isinstance(each, dict)
    ]
    for getter in getters:
        if getter["type"] not in GETTERS:
            return f"getter {getter['type']}"
    looked_at = [_words(each.get("command")) for each in getters]
    return _why_no_shell([*config, *_several(evaluator.get("postconfig"))], looked_at)


def _unknown_rule(rule: Mapping[str, Any]) -> list[str]:
    kind = str(rule["type"])
    if kind not in TABLE_RULES:
        return [kind]
    named = [name for field in _PROPS for name in rule.get(field, ())]
    named += [name for props in rule.get("dv_props", ()) for name in props]
    known = TABLE_PROPS.get(kind, frozenset[str]())
    return [f"{kind} of {name}" for name in named if name not in known]


class _Downloads:
    """The files that rows name, each fetched once and named by its digest.

    A row is data, and may name any address: only the benchmark's own places are asked, and an
    unreachable one once an import. `is_used` says whether the last row had such files.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.published = files.published
        self._unreachable: set[str] = set()
        self.is_used = False

    def taken(self, config: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Return the commands and files of a preparation; raise NotRunnable if one is missing."""
        self.is_used = False
        found: list[Any] = []
        for each in config:
            if each["type"] == "download":
                for file in each["parameters"]["files"]:
                    digest = self._digest(str(file["url"]), str(file["path"]))
                    found.append({"path": str(file["path"]), "sha256": digest})
            elif _is_taken(each):
                found.append(_command_of(each))
        return found

    def evaluator(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return an evaluator with its files by their digests, and its last steps as commands.

        Raise NotRunnable if a file cannot be had.
        """
        is_used = self.is_used
        made = dict(raw)
        if raw.get("postconfig"):
            made["postconfig"] = self.taken(raw["postconfig"])
        for field in ("result", "expected"):
            value: Any = raw.get(field)
            if isinstance(value, list):
                made[field] = [self._getter(each) for each in cast("list[Any]", value)]
            elif value:
                made[field] = self._getter(value)
        self.is_used = self.is_used or is_used
        return made

    def _getter(self, getter: Any) -> Any:
        named: dict[str, Any] = getter or {}
        if named.get("type") != "cloud_file":
            return named or None
        pairs = zip(_several(named["path"]), _several(named["dest"]), strict=True)
        kept = {name: value for name, value in named.items() if name != "path"}
        return {**kept, "sha256": [self._digest(str(url), str(name)) for url, name in pairs]}

    def _digest(self, url: str, path: str) -> str:
        """Keep a file, and return the digest by which rows name it.

        Raise NotRunnable if it cannot be had, and SourceNotFound if it is another one than before.
        """
        self.is_used = True
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" or host not in _HOSTS:
            raise NotRunnable(f"its file is at {host or url!r}, which is no place of the benchmark")
        if host in self._unreachable:
            raise NotRunnable(f"its files are at {host}, which cannot be reached")
        ids = parse_qs(parts.query).get("id")
        key = ids[0] if ids else hashlib.sha256(url.encode()).hexdigest()[:16]
        name = f"files/{_PLAIN.sub('_', key)}/{_PLAIN.sub('_', PurePosixPath(path).name)}"
        try:
            found = self._files.path(name, url=url)
        except Unreachable as exc:
            self._unreachable.add(host)
            raise NotRunnable(f"its files are at {host}, which cannot be reached") from exc
        except (NotPublished, TokenNeeded) as exc:
            raise NotRunnable(f"its files are at {host}, and are not given or not there") from exc
        with found.open("rb") as file:
            begins = file.read(64).lstrip().lower()
        if begins.startswith(_PAGE) and not name.endswith((".html", ".htm")):
            raise NotRunnable(f"{host} gave a page in place of its file; --refresh asks again")
        return keep_file(found)


def _why_no_shell(steps: Sequence[Mapping[str, Any]], looked_at: Iterable[str]) -> str | None:
    """Return the reason why a shell cannot do these steps, and the commands that read results."""
    for step in steps:
        if step["type"] != "download" and not _is_taken(step) and not _is_done_without(step):
            return "it needs root" if _ROOT.search(_command(step)) else "it needs a desktop"
    text = " ".join([*(_command(step) for step in steps if _is_taken(step)), *looked_at])
    if _DESKTOP.search(text):
        return "it needs a desktop (GNOME's settings)"
    if _ROOT.search(text) or "which spotify" in text:
        return "it needs root"
    return None


def _is_taken(step: Mapping[str, Any]) -> bool:
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
    if _TERMINAL.match(text):
        return True
    keys = [f"{name}({given})" for name, given in _KEY.findall(text)]
    return bool(keys) and all(key in _POINTED or _TYPED.fullmatch(key) for key in keys)


def _folder_told(steps: Iterable[Mapping[str, Any]]) -> str:
    found = None
    for step in steps:
        text = _command(step)
        if (opened := _TERMINAL.match(text)) is not None and opened[1]:
            found = opened[1]
        for key in _KEY.findall(text):
            typed = _TYPED.fullmatch(f"{key[0]}({key[1]})")
            found = typed[1] if typed is not None and typed[1] else found
    if found is None:
        return ""
    whole = found if found.startswith(("/", "~")) else f"/home/user/{found}"
    return f" Work in {whole}, which is the current directory."


def _command_of(step: Mapping[str, Any]) -> list[str]:
    """Return a step as the words of a command, or as one line for the shell, without `sudo`."""
    parameters = cast("Mapping[str, Any]", step["parameters"])
    command = parameters["command"]
    if isinstance(command, str):
        return [_SUDO.sub("", command)]
    every = [str(word) for word in cast("list[Any]", command)]
    return [" ".join(every)] if parameters.get("shell") else every


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return cast("list[Any]", given) if isinstance(given, list) else [given]


def _words(command: Any) -> str:
    return " ".join(map(str, _several(command)))


def _command(step: Mapping[str, Any]) -> str:
    return _words(cast("Mapping[str, Any]", step.get("parameters") or {}).get("command"))


SET = ImportedSet(_TITLE, read)
