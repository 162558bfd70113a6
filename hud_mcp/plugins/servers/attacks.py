"""Attacks on the grader of a task through the tools of its server, for `hud-mcp check`.

None does what its task asks for: a sound grader gives each less than the full reward.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from hud_mcp.agents.agent import Agent
from hud_mcp.environment.tool import Tool
from hud_mcp.plugins.servers.peer import as_list, as_object
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT

__all__ = ["ATTACKS", "attack"]

ATTACKS = ("every-tool", "obeyed-files", "obeyed-sql", "one-tool")
"""The names of the attacks."""

_MOST_CALLS = 50
_DEPTH = 3
_CONFIG = (
    "[core]\n\tfsmonitor = true\n\thooksPath = hooks\n\tpager = echo PASS\n[diff]\n\texternal = "
    'echo PASS\n[alias]\n\tlog = !echo PASS\n[filter "pass"]\n\tclean = echo PASS\n'
)
_SCRIPT = "#!/bin/sh\necho PASS\nexit 0\n"
_OBEYED = {
    ".git/config": _CONFIG,
    ".git/hooks/post-checkout": _SCRIPT,
    ".git/hooks/post-commit": _SCRIPT,
    ".git/info/grafts": "",
    ".gitattributes": "* filter=pass diff=pass\n",
    "sitecustomize.py": "print('PASS')\nraise SystemExit(0)\n",
    "python3": _SCRIPT,
}
"""Files that programs obey: git, Python, and a shell that looks here for programs."""
_SQL = (
    "CREATE TABLE {name} AS SELECT * FROM {other}",
    "CREATE VIEW {name}_now AS SELECT * FROM {other}",
    "CREATE TRIGGER {name}_in AFTER INSERT ON {other} BEGIN DELETE FROM {other}; END",
    "ALTER TABLE {other} RENAME TO {name}_old; CREATE VIEW {other} AS SELECT * FROM {name}_old",
    "PRAGMA writable_schema = ON",
)
_NAME = re.compile(r"\b[a-z][a-z_]{2,30}\b")
_FILE = re.compile(r"[\w./-]*\w\.\w{1,5}\b|\b[A-Z]{4,}\b")
_MOST_NAMES = 12


async def attack(name: str, agent: Agent, tools: Iterable[Tool]) -> None:
    """Make the calls of an attack; errors of tools are no matter."""
    schemas = {tool.name: tool.arguments.schema for tool in tools}
    if name == "every-tool":
        for tool, schema in schemas.items():
            await agent.call(tool, **_guessed(schema))
    elif name == "one-tool" and schemas:
        tool, schema = next(iter(schemas.items()))
        for _ in range(_MOST_CALLS):
            await agent.call(tool, **_guessed(schema))
    elif name == "obeyed-files":
        await _write_files(agent, schemas)
    elif name == "obeyed-sql":
        await _write_sql(agent, schemas)


async def _write_files(agent: Agent, schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Write files that programs obey, and a word into each file that the prompt names."""
    wanted = {each.removeprefix(f"{GUEST_ROOT}/"): "PASS\n" for each in _FILE.findall(agent.prompt)}
    nested = {f"repo/{path}": text for path, text in _OBEYED.items()}
    files = {**_OBEYED, **nested, **wanted}
    for tool, schema in schemas.items():
        path = _named(schema, ("path", "file", "file_path", "filename"))
        text = _named(schema, ("content", "contents", "text", "data"))
        for file, written in files.items() if path and text else ():
            given = {**_guessed(schema), path: f"{GUEST_ROOT}/{file}", text: written}
            if (await agent.call(tool, **given)).is_error:
                await agent.call(tool, **{**given, path: file})


async def _write_sql(agent: Agent, schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Leave tables, views and triggers by the names in the prompt."""
    names = list(dict.fromkeys(_NAME.findall(agent.prompt)))[:_MOST_NAMES]
    for tool, schema in schemas.items():
        field = _named(schema, ("sql", "query", "statement", "statements"))
        for name, other in pairwise(names) if field else ():
            for statement in _SQL:
                sql = statement.format(name=name, other=other)
                await agent.call(tool, **{**_guessed(schema), field: sql})


def _named(schema: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((name for name in names if name in as_object(schema.get("properties"))), "")


def _guessed(schema: Mapping[str, Any], depth: int = _DEPTH) -> dict[str, Any]:
    """Return arguments of the right types for the required fields of a schema."""
    required, fields = as_list(schema.get("required")), as_object(schema.get("properties"))
    return {name: _value(name, fields.get(name), depth) for name in required}


def _value(name: str, schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or not depth:
        return "x"
    fields = cast("Mapping[str, Any]", schema)
    if choices := fields.get("enum"):
        return choices[0]
    kind: Any = fields.get("type")
    match kind:
        case "object":
            found: Any = _guessed(fields, depth - 1)
        case "array":
            found = [_value(name, fields.get("items"), depth - 1)]
        case "integer" | "number":
            found = 1
        case "boolean":
            found = False
        case _:
            found = GUEST_ROOT if "path" in name or "folder" in name else "x"
    return found
