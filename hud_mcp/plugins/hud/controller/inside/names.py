"""List the functions of a controller without importing it. This runs beside the controller."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from typing import Any


def main() -> None:
    """Write a JSON object with the parameters of each function, by its dotted path."""
    sys.path[:0] = json.loads(sys.stdin.buffer.read())["path"]
    spec = importlib.util.find_spec("hud_controller")
    found: dict[str, Any] = {}
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for place, _, files in os.walk(folder):
            for file in sorted(files):
                if file.endswith(".py"):
                    read(folder, os.path.join(place, file), found)
    sys.stdout.write(json.dumps(found if spec is not None else None))


def read(folder: str, file: str, found: dict[str, Any]) -> None:
    """Add the functions of one file, and those that a package imports from its modules."""
    parts = os.path.relpath(file, folder)[:-3].split(os.sep)
    prefix = parts[:-1] if parts[-1] == "__init__" else parts
    with open(file, encoding="utf-8") as source:
        body = ast.parse(source.read(), file).body
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            add(prefix, node.name, parameters(node.args), found)
        elif isinstance(node, ast.ImportFrom) and parts[-1] == "__init__" and node.level:
            for alias in node.names:
                add(prefix, alias.asname or alias.name, None, found)


def add(prefix: list[str], name: str, takes: Any, found: dict[str, Any]) -> None:
    """Add a function if it is public."""
    if not name.startswith("_") and name != "*":
        found.setdefault(".".join([*prefix, name]), takes)


def parameters(args: ast.arguments) -> dict[str, Any]:
    """Return each positional parameter, whether it is optional, and the name of the rest."""
    plain = [*args.posonlyargs, *args.args]
    needed = len(plain) - len(args.defaults)
    return {
        "names": [[each.arg, i >= needed] for i, each in enumerate(plain)],
        "rest": args.vararg.arg if args.vararg else None,
    }


if __name__ == "__main__":
    main()
