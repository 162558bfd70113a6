"""MCP-Atlas: requests over many MCP servers; a model looks for each claim in the answer."""

import ast
import csv
import io
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from hud_mcp.base import libraries
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files
from hud_mcp.plugins.sets.imports import ImportedSet, as_tasks, row, row_id
from hud_mcp.plugins.sets.mcp import places

_TITLE = "MCP-Atlas"
_MOST_CHARS = 1 << 28
"""Of one cell: the way that a person's answer took is in one."""


def read(files: Files, choice: Choice) -> list[Task]:
    """Read each table of tasks in a folder: CSV, or Parquet as the data set has it."""
    folder = places.own_folder(files)
    beside = folder / "services" / "agent-environment" / "data"
    start = places.begin(choice.hosts.get("data", beside), "it needs its files: --host data=DIR")
    tables = [*folder.glob("*.csv"), *folder.glob("*.parquet"), *folder.glob("data/*.parquet")]
    make = partial(_task, files, choice, start)
    tasks = [task for path in sorted(tables) for task in as_tasks(_rows(path), make, _TITLE)]
    return tasks or places.no_rows(files, folder, "a table with TASK, PROMPT and GTFA_CLAIMS")


def _rows(path: Path) -> list[tuple[str, Any]]:
    where, before = str(path), csv.field_size_limit(_MOST_CHARS)
    found: list[tuple[str, Any]] = []
    try:
        if path.suffix == ".parquet":
            table = libraries.parquet.read_table(path).to_pylist()
            return [(f"{path}, row {index}", raw) for index, raw in enumerate(table)]
        text = io.StringIO(places.text_of(path, path.parent), newline="")
        for raw in (lines := csv.DictReader(text, strict=True)):
            where = f"{path}:{lines.line_num}"
            found.append((where, raw))
    except (csv.Error, ValueError) as exc:
        raise InvalidTask(f"{where}: after this, it is no table: {exc}.") from exc
    finally:
        csv.field_size_limit(before)
    return found if "PROMPT" in (lines.fieldnames or ()) else []


def _task(files: Files, choice: Choice, start: places.Begin, _: int, raw: Any) -> Task:
    name, prompt = places.field_of(raw, "TASK", str), places.field_of(raw, "PROMPT", str)
    tools = [each if isinstance(each, str) else places.field_of(each, "name", str)
             for each in _listed(raw, "ENABLED_TOOLS")]  # fmt: skip
    claims = [str(each) for each in _listed(raw, "GTFA_CLAIMS")]
    servers = list(dict.fromkeys(tool.partition("_")[0] for tool in tools))
    here = places.local(files)
    far, used = [each for each in servers if each not in here], _used(raw)
    if choice.gym is None and used and used <= here:  # the others are there to distract
        servers = [each for each in servers if each in here]
    env, setup, reasons = places.begin_over(servers, start, files, gym=choice.gym)
    return row(
        row_id("mcp-atlas", name),
        env,
        prompt,
        parts=servers,
        split="test",
        source=files.published.credit(name),
        setup=setup,
        evaluate=[["mcp_atlas", claims, prompt]],
        not_runnable="; ".join([*reasons, *(["it has no claims"] * (not claims))]) or None,
        metadata={"needs": ["judge"], "mcp/tools": tools, "mcp/not here": far},
    )


def _used(raw: Any) -> set[str]:
    """Return the servers that the way of a row's author used; none without a way."""
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        way: Any = orjson.loads(raw.get("TRAJECTORY") or "[]")
        calls = [call for said in way for call in said.get("tool_calls") or ()]
        return {str(call["function"]["name"]).partition("_")[0] for call in calls}
    return set()


def _listed(raw: dict[str, Any], name: str) -> list[Any]:
    """Return a column's list: as it is, or the text of one in JSON or in Python."""
    found: Any = raw.get(name) or []
    for load in (orjson.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            found = load(found)
    return places.field_of({name: found}, name, list)


SET = ImportedSet(_TITLE, read)
