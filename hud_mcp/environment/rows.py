"""Rows of tasks in files: JSON Lines, JSON and Python, ours and HUD's, each with its place.

An error about a row names its file and line, even if it is found later.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from pydantic import ValidationError

from hud_mcp.base.lines import json_lines, read_json_lines
from hud_mcp.base.secrets import hide
from hud_mcp.base.text import read_text_bytes
from hud_mcp.environment.author_files import load_module
from hud_mcp.environment.task import FROM_JSON, Task, Validation
from hud_mcp.errors import InvalidTask, SourceNotFound, did_you_mean

_HUD = "hud"
"""The key in a task's metadata for the fields that only HUD's rows have."""

_HUD_FIELDS = ("columns", "agent_config", "runtime_config", "verifier")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:\n]|[\w.+-]+', re.DOTALL)
"""A token of JSON: a text, a mark, the end of a line, or a number or word."""
_OUTER = (dict, list)
_DEEPEST = 100
"""The deepest nesting of a row's values. Records of deeper values cannot be written."""


@dataclass(frozen=True)
class Rows:
    """The content of a file: its tasks in order, each one's file and line, and the set's names."""

    tasks: list[Task]
    places: list[str]
    name: str
    id: str | None = None
    description: str | None = None


def read_file(path: Path) -> Rows:
    """Read a file of tasks: `.json`, `.py`, or else JSON Lines; or a folder of such files.

    A folder has an `env.py`, or files of JSON. A Python file has public tasks, or sequences of
    them.

    Raises:
        SourceNotFound: There is no such file.
        InvalidTask: A row is wrong; the text names the file, the line and the field.
        InvalidEnvironment: A Python file does not load.
    """
    if path.is_dir() and (files := task_files(path)):
        return _joined(path, [read_file(each) for each in files])
    if path.is_file() and path.suffix == ".py":
        return _read_python(path)
    if path.is_file() and path.suffix == ".json":
        return _read_json(path)
    return read_lines(path)


def task_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold its tasks: its `env.py`, else its JSON, by name."""
    if (folder / "env.py").is_file():
        return [folder / "env.py"]
    return sorted(p for p in folder.iterdir() if p.suffix in (".jsonl", ".json") and p.is_file())


def _joined(folder: Path, parts: list[Rows]) -> Rows:
    """Return the rows of several files as one set; two rows of one id are an `InvalidTask`."""
    tasks = [task for rows in parts for task in rows.tasks]
    places = [place for rows in parts for place in rows.places]
    first: dict[str, str] = {}
    for task, place in zip(tasks, places, strict=True):
        if (other := first.setdefault(task.id, place)) is not place:
            raise InvalidTask(
                f"{place}: the id {task.id!r} is taken by {other}; give each row its own id."
            )
    return Rows(tasks, places, folder.resolve().name)


def read_lines(path: Path) -> Rows:
    """Read JSON Lines: one task a line; empty lines are skipped. It fails like `read_file`."""
    if not path.is_file():
        raise SourceNotFound(
            f"There is no taskset at {path}; name a file that ends in .jsonl, .json or .py."
        )
    found = _Found(path)
    hide(path)
    for number, raw in read_json_lines(read_text_bytes(path), path, InvalidTask):
        found.add(read_row(raw, f"{path}:{number}"), number)
    return Rows(found.tasks, found.places, path.stem)


def write_file(
    path: Path, tasks: Iterable[Task], *, form: Literal["hud-mcp", "hud"] = "hud-mcp"
) -> None:
    """Write `.jsonl` or `.json`, without fields that equal their defaults.

    Raises:
        InvalidTask: The file has another suffix; or HUD has no row for a task, which the text
            names. Nothing was written.
    """
    if path.suffix not in (".json", ".jsonl"):
        raise InvalidTask(f"{path}: tasks are written to a .jsonl or a .json file.")
    rows = [hud_row(task) if form == "hud" else task.row for task in tasks]
    if path.suffix == ".json":
        path.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        path.write_bytes(json_lines(rows))


def read_row(raw: Any, where: str) -> Task:
    """Read a row of JSON; `InvalidTask` names its place, `where`, and the wrong field."""
    if not isinstance(raw, dict):
        raise InvalidTask(f"{where}: a task is an object, not {type(raw).__name__}.")
    row = _from_hud_row(cast("dict[str, Any]", raw))
    for name, value in row.items():
        if type(value) in _OUTER and _is_deeper(value, _DEEPEST):
            raise InvalidTask(f"{where}: {name}: it is nested more than {_DEEPEST} levels deep.")
    try:
        return Task.model_validate(row, context=dict(FROM_JSON))
    except ValidationError as exc:
        raise InvalidTask(f"{where}: {_told(exc)}") from None


def hud_row(task: Task) -> dict[str, Any]:
    """Return a task as a row of HUD's SDK; `InvalidTask` if it has a prompt, and no template."""
    if task.prompt is not None:
        raise InvalidTask(
            f"The task {task.id!r} has a prompt and its own calls, but HUD's rows name a "
            "template. Write it in this project's form, or as a template."
        )
    kept: dict[str, Any] = task.metadata.get(_HUD, {})
    row = {"env": task.env, "id": task.template, "args": task.args, "slug": task.id}
    return row | {
        name: value for name, value in kept.items() if name in (*_HUD_FIELDS, "validation")
    }


def _from_hud_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of HUD's SDK as a row of this project; return any other row unchanged."""
    if not {"env", "id"} <= set(row) or {"template", "prompt", "gym"} & set(row):
        return row
    made = dict(row)
    template, slug = made.pop("id"), made.pop("slug", None)
    args: Any = made.get("args") or cast("dict[str, Any]", {})
    kept = {name: made.pop(name) for name in _HUD_FIELDS if name in made}
    if isinstance(made.get("validation"), list):
        kept["validation"] = made.pop("validation")
    kept = {name: value for name, value in kept.items() if value is not None}
    if slug is None and isinstance(template, str) and isinstance(args, dict):
        slug = _hud_slug(template, cast("dict[str, Any]", args))
    made |= {"id": slug, "template": template, "args": args}
    if kept:
        made["metadata"] = {**(made.get("metadata") or {}), _HUD: kept}
    return made


def _hud_slug(template: str, args: dict[str, Any]) -> str:
    """Return the name that HUD's SDK gives a row without a slug, so that both agree on it."""
    if not args:
        return template
    raw = json.dumps(args, sort_keys=True, default=str).encode()
    return f"{template}-{hashlib.sha1(raw, usedforsecurity=False).hexdigest()[:8]}"


@dataclass
class _Found:
    """The tasks of one file found so far. Two of one id are refused, by their lines."""

    path: Path
    tasks: list[Task] = field(default_factory=list[Task])
    places: list[str] = field(default_factory=list[str])
    lines: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, task: Task, line: int, *, place: str = "") -> None:
        where = f"{self.path}:{line}"
        if task.id in self.lines:
            raise InvalidTask(
                f"{where}: the id {task.id!r} is taken by line {self.lines[task.id]}; give each "
                "row its own id."
            )
        self.lines[task.id] = line
        self.tasks.append(task)
        self.places.append(f"{where}: {place}" if place else where)


def _told(exc: ValidationError) -> str:
    """Return the first mistake of a row; an unknown name first, as it explains a missing one."""
    errors = exc.errors(include_url=False, include_input=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    path = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":  # a sentence of ours, which says what to do
        said = first["msg"].removeprefix("Value error, ")
        at = f"{path}: " if path and not said.startswith(f"{path}.") else ""
        return f"{at}{said}."
    known = _fields_at(first["loc"][:-1])
    extra = first["type"] == "extra_forbidden"
    hint = did_you_mean(str(first["loc"][-1]), known) if extra else ""
    said = "there is no such field" if extra else first["msg"].lower()
    return f"{path}: {said}.{hint} The fields are: {', '.join(known)}."


def _fields_at(path: tuple[int | str, ...]) -> list[str]:
    inside = path and path[0] == "validation"
    return list((Validation if inside else Task).model_fields)


def _is_deeper(value: dict[Any, Any] | list[Any], most: int) -> bool:
    """Whether the nesting of JSON values exceeds a number of levels, without recursion."""
    level: list[Any] = [value]
    for _ in range(most):
        level = [each for outer in level for each in _inside(outer) if type(each) in _OUTER]
        if not level:
            return False
    return any(map(len, level))


def _inside(outer: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", outer).values() if type(outer) is dict else outer


def _read_json(path: Path) -> Rows:
    hide(path)
    text = read_text_bytes(path)
    if not text.strip():
        raise InvalidTask(f"{path} holds no tasks. Write a list of them as JSON.")
    try:
        raw: Any = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{path}: this file is not JSON: {exc}.") from None
    named: Mapping[str, Any] = {}
    if isinstance(raw, dict) and isinstance(cast("dict[str, Any]", raw).get("tasks"), list):
        named = cast("dict[str, Any]", raw)
        unknown = sorted(set(named) - {"tasks", "name", "id", "description"})
        if unknown:
            raise InvalidTask(
                f"{path}: {unknown[0]}: a set of tasks has no such field. It has: tasks, name, id, "
                "description."
            )
        raw = named["tasks"]
    rows: list[Any] = cast("list[Any]", raw) if isinstance(raw, list) else [raw]
    key = "tasks" if named else None
    lines = list(_row_lines(text.decode(), key)) if isinstance(raw, list) else [1]
    found = _Found(path)
    for row, line in zip(rows, lines, strict=True):
        found.add(read_row(row, f"{path}:{line}"), line)
    return Rows(
        found.tasks,
        found.places,
        str(named.get("name") or path.stem),
        id=_text_or_none(named, "id", path),
        description=_text_or_none(named, "description", path),
    )


def _text_or_none(named: Mapping[str, Any], name: str, path: Path) -> str | None:
    value = named.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidTask(f"{path}: {name}: this is a text, not {type(value).__name__}.")
    return value


def _row_lines(text: str, key: str | None) -> Iterator[int]:
    """Yield the line on which each item of a list begins, in valid JSON.

    `key` is the list's name in the outermost object; None if the list is outermost.
    """
    line, depth, name, within = 1, 0, None, False
    rows_at = 1 if key is None else 2
    awaited = False
    last = ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == "\n":
            line += 1
            continue
        if mark == ":" and depth == 1:
            name = orjson.loads(last)
        if awaited:
            awaited = False
            if mark != "]":
                yield line
        if mark in "[{":
            depth += 1
            if depth == rows_at and mark == "[" and (key is None or name == key):
                within = awaited = True
        elif mark in "]}":
            within = within and depth != rows_at
            depth -= 1
        elif mark == "," and depth == rows_at and within:
            awaited = True
        last = mark if mark[0] == '"' else last
        line += mark.count("\n")


def _read_python(path: Path) -> Rows:
    module = load_module(path)
    lines = _assigned_lines(path)
    found = _Found(path)
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        for task, place in _tasks_of(name, value):
            if id(task) not in seen:
                seen.add(id(task))
                found.add(task, lines.get(name, 1), place=place)
    if not found.tasks:
        raise InvalidTask(
            f"{path} declares no tasks; write `tasks = [count(word='lamp'), …]` in it."
        )
    return Rows(found.tasks, found.places, path.stem)


def _tasks_of(name: str, value: Any) -> Iterator[tuple[Task, str]]:
    if isinstance(value, Task):
        yield value, name
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for i, each in enumerate(cast("Sequence[Any]", value)):
            if isinstance(each, Task):
                yield each, f"{name}[{i}]"


def _assigned_lines(path: Path) -> dict[str, int]:
    """Return the line on which each name of a file was assigned last."""
    found: dict[str, int] = {}
    for node in ast.parse(path.read_bytes()).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        found |= {t.id: node.lineno for t in targets if isinstance(t, ast.Name)}
    return found
