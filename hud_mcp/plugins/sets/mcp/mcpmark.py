"""MCPMark: work on files, graded by each task's own program; other services say what they need."""

import ast
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files, keep_bytes
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, row, row_id
from hud_mcp.plugins.sets.mcp import places

_TITLE = "MCPMark"
_FILES = "test_environments"
"""The benchmark's folder of files, by category; `--host test_environments=DIR` names another."""
_ASKED = (
    "The test directory is /workspace.\n\nNote: Based on your understanding, solve the task all at "
    "once by yourself, don't ask for my opinions on anything."
)
_LEAST_PARTS = 4  # a service, a category, a task and a file; or a suite after the service too


def read(files: Files, choice: Choice) -> list[Task]:
    """Read the rows of every service below `tasks` of a copy of the repository."""
    folder = places.own_folder(files)
    top = folder / "tasks" if (folder / "tasks").is_dir() else folder
    found = sorted(top.rglob("description.md"))
    rows = [each for each in found if len(each.relative_to(top).parts) >= _LEAST_PARTS]
    if not rows:
        places.no_rows(files, top, "SERVICE/SUITE/CATEGORY/TASK/description.md")
    place = Path(choice.hosts.get(_FILES, top.parent / _FILES)).expanduser()
    starts = {each.name: places.begin(each, "") for each in place.glob("[!.]*") if each.is_dir()}
    named = ((ascii(str(each))[1:-1], each) for each in rows)
    return as_tasks(named, partial(_task, files, top, starts), _TITLE)


def _task(files: Files, top: Path, starts: Mapping[str, places.Begin], _: int, path: Path) -> Task:
    parts = path.relative_to(top).parts
    "/".join(parts).encode()  # a name of other bytes has no place in a row
    service, suite = parts[0], parts[1] if len(parts) > _LEAST_PARTS else "standard"
    category, url = _meta(path.with_name("meta.json"), top, parts[-3])
    missing = f"it needs the files of {url or category} in the folder {_FILES}/{category}"
    begun = starts.get(category, ([], [missing]))
    setup, reasons = places.begin_over([service], begun, files)[1:]
    evaluate: list[list[Any]] = []
    if service == places.HERE:
        program = path.with_name("verify.py")
        text = places.text_of(program, top)
        reasons = [*reasons, *_needs(text, program)]
        evaluate = [["mcpmark_verify", keep_bytes(text.encode())]]
    return row(
        row_id("mcpmark", service, suite, *parts[-3:-1]),
        places.GYM,
        f"{places.text_of(path, top).strip()}\n\n{_ASKED}",
        parts=list(dict.fromkeys((service, suite, parts[-3]))),
        split=suite,
        source=files.published.credit(f"tasks/{'/'.join(parts[:-1])}"),
        setup=setup,
        evaluate=evaluate,
        not_runnable="; ".join(reasons) or None,
    )


def _meta(path: Path, top: Path, category: str) -> tuple[str, str]:
    """Return the category of a task, and the published address of its files, or an empty text."""
    try:
        meta: Any = orjson.loads(places.text_of(path, top)) if path.exists() else {}
        url = places.field_of(meta, "meta_data", dict, {}).get("stateUrl")
        return places.field_of(meta, "category_id", str, category), str(url or "")
    except ValueError as exc:
        raise InvalidTask(f"{path}: {exc}.") from exc


def _needs(text: str, path: Path) -> Iterator[str]:
    """Yield what a program needs beside the modules of Python, as reasons."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in texts, which run as well
            tree = ast.parse(text)
    except (SyntaxError, ValueError) as exc:
        line = getattr(exc, "lineno", None) or 1
        raise InvalidTask(f"{path}:{line}: this is no program of Python: {exc}.") from exc
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or node.names[0].name}"]
        for name in names:
            if name.split(".")[0] not in sys.stdlib_module_names:
                yield f"its verify.py needs the module {name}"
        if isinstance(node, ast.Name) and node.id == "__file__":
            yield "its verify.py reads files beside it"


SET = ImportedSet(_TITLE, read)
