"""OSWorld: tasks on an Ubuntu desktop. Every row is read; those that a shell can do run here.

What a row prepares, looks at and compares is data; each kind of it that runs here is written anew
in the environment `osworld`, and any other makes its row say which one it misses.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.choice import Choice, row, row_id
from hud_mcp.plugins.sets import osworld_steps as steps
from hud_mcp.plugins.sets.download import NotPublished, TokenNeeded, Unreachable
from hud_mcp.plugins.sets.files import Files, InFolder, keep_file
from hud_mcp.plugins.sets.osworld_steps import several, words

__all__ = ["read"]

GYM = "osworld"
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
"""How results are compared: what `environments/osworld` has."""
TABLE_RULES = frozenset({
    "chart", "check_cell", "col_props", "data_validation", "freeze", "pivot_table", "row_props",
    "sheet_data", "sheet_fuzzy", "sheet_name", "sheet_print", "style", "zoom",
})  # fmt: skip
"""By which rules `compare_table` compares there."""
_PROPS = ("chart_props", "pivot_props", "props")
"""Where such a rule names what it looks at; `dv_props` has several of them."""
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
"""What some of them can look at there."""
GETTERS = frozenset({"cloud_file", "list_directory", "rule", "vm_command_line", "vm_file"})
"""What is looked at there."""

_SHELL_DOMAINS = ("os", "multi_apps")
_SHELL_APPS = frozenset({"os", "terminal", "pdf", "image"})
"""What a row with several applications may name, for none of these has a window."""
_ABOUT = "You are `user` on Ubuntu, and your home is /home/user."
_ASKED = "Answer FAIL if this cannot be done, and DONE when you have done it."
_PLAIN = re.compile(r"[^\w.-]")
_HOSTS = frozenset({"drive.usercontent.google.com", "drive.google.com", "huggingface.co"})
"""Where the benchmark's files are published: from no other place is one fetched."""
_PAGE = (b"<!doctype html", b"<html")


def read(files: Files, choice: Choice) -> list[Task]:  # noqa: ARG001  # every importer has both
    """The rows, in the order in which the benchmark lists them.

    Raises:
        SourceNotFound: A file cannot be had.
        InvalidTask: One is not what OSWorld publishes.
    """
    small = _listed(files, _SMALL)
    downloads = _Downloads(files)
    tasks: list[Task] = []
    for domain, name, raw in _examples(files):
        try:
            parts = [domain, "Ubuntu", *(["small"] if (domain, name) in small else [])]
            tasks.append(_task(raw, domain, parts, downloads))
        except (KeyError, TypeError, AttributeError) as exc:
            raise InvalidTask(f"{domain}/{name}: this is not a row of OSWorld: {exc!r}.") from exc
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
        except _Missing as exc:
            why = str(exc)
        has_files = downloads.is_used
    asked = [str(raw["instruction"]), f"{_ABOUT}{steps.folder_told(config)} {_ASKED}"]
    return row(
        row_id("osworld", domain, raw["id"]),
        GYM,
        "\n\n".join(asked),
        parts=parts,
        split="test",
        source=f"{_FOLDER}/examples/{domain} of github.com/xlang-ai/OSWorld (Apache-2.0), "
        f"{raw['id']}",
        setup=[["osworld_prepare", *prepared]],
        evaluate=[["osworld_evaluate", evaluator]],
        not_runnable=why,
        metadata={
            "domain": domain,
            "related_apps": raw.get("related_apps", []),
            "left_out": [step for step in config if not steps.is_taken(step)],
            **({"files": "fetched with the row, by their digests"} if has_files else {}),
        },
    )


def _why_not(
    raw: Mapping[str, Any],
    domain: str,
    config: list[dict[str, Any]],
    evaluator: Mapping[str, Any],
) -> str | None:
    """Why a row does not run here, whatever its files; None where it does."""
    metrics = several(evaluator["func"])
    unknown = [f"metric {name}" for name in metrics if name not in METRICS]
    for options in several(evaluator.get("options")):
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
        for each in several(evaluator.get(field))
        if isinstance(each, dict)
    ]
    for getter in getters:
        if getter["type"] not in GETTERS:
            return f"getter {getter['type']}"
    looked_at = [words(each.get("command")) for each in getters]
    return steps.why_not([*config, *several(evaluator.get("postconfig"))], looked_at)


def _unknown_rule(rule: Mapping[str, Any]) -> list[str]:
    """What of a rule of `compare_table` is not there."""
    kind = str(rule["type"])
    if kind not in TABLE_RULES:
        return [kind]
    named = [name for field in _PROPS for name in rule.get(field, ())]
    named += [name for props in rule.get("dv_props", ()) for name in props]
    known = TABLE_PROPS.get(kind, frozenset[str]())
    return [f"{kind} of {name}" for name in named if name not in known]


class _Missing(Exception):
    """A file of a row cannot be had."""


class _Downloads:
    """The files that rows name, each fetched once and named by its digest.

    A row is data, and may name any address: only the benchmark's own places are asked. A place
    that cannot be reached is asked once an import.

    Attributes:
        is_used: Whether the last row that was asked about has such files.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._unreachable: set[str] = set()
        self.is_used = False

    def taken(self, config: Iterable[Mapping[str, Any]]) -> list[Any]:
        """What is done before the agent begins: commands, and files with where they go.

        Raises:
            _Missing: One of them cannot be had.
        """
        self.is_used = False
        found: list[Any] = []
        for each in config:
            if each["type"] == "download":
                for file in each["parameters"]["files"]:
                    digest = self._digest(str(file["url"]), str(file["path"]))
                    found.append({"path": str(file["path"]), "sha256": digest})
            elif steps.is_taken(each):
                found.append(steps.command_of(each))
        return found

    def evaluator(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """An evaluator with its files by their digests, and with its last steps as commands.

        Raises:
            _Missing: One of them cannot be had.
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
        pairs = zip(several(named["path"]), several(named["dest"]), strict=True)
        kept = {name: value for name, value in named.items() if name != "path"}
        return {**kept, "sha256": [self._digest(str(url), str(name)) for url, name in pairs]}

    def _digest(self, url: str, path: str) -> str:
        """Keep a file, and return the digest by which rows name it.

        Raises:
            _Missing: It cannot be had.
            SourceNotFound: It is another one than it was.
        """
        self.is_used = True
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" or host not in _HOSTS:
            raise _Missing(f"its file is at {host or url!r}, which is no place of the benchmark")
        if host in self._unreachable:
            raise _Missing(f"its files are at {host}, which cannot be reached")
        ids = parse_qs(parts.query).get("id")
        key = ids[0] if ids else hashlib.sha256(url.encode()).hexdigest()[:16]
        name = f"files/{_PLAIN.sub('_', key)}/{_PLAIN.sub('_', PurePosixPath(path).name)}"
        try:
            found = self._files.path(name, url=url)
        except Unreachable as exc:
            self._unreachable.add(host)
            raise _Missing(f"its files are at {host}, which cannot be reached") from exc
        except (NotPublished, TokenNeeded) as exc:
            raise _Missing(f"its files are at {host}, and are not given or not there") from exc
        with found.open("rb") as file:
            begins = file.read(64).lstrip().lower()
        if begins.startswith(_PAGE) and not name.endswith((".html", ".htm")):
            raise _Missing(f"{host} gave a page in place of its file; --refresh asks again")
        return keep_file(found)
