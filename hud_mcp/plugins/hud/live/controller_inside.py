"""The program beside a controller: it lists the controller's functions, or calls one.

Any Python there runs it. The request arrives on standard input. The reply goes out on a descriptor
that no program of the controller inherits, nor opens by way of /proc. Prints go to standard error.
"""

from __future__ import annotations

import ast
import asyncio
import ctypes
import importlib.util
import inspect
import json
import os
import sys
import traceback
from typing import Any

PR_SET_DUMPABLE = 4


def main() -> None:
    """Read the request, perform it, and write the reply."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # not Linux
    out = os.dup(1)  # not inherited
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.path[:0] = asked["path"]
    try:
        result = perform(asked["function"], asked["args"]) if "function" in asked else functions()
        said = json.dumps({"result": result}, default=plain)
    except BaseException as exc:  # also SystemExit: it is the controller's error
        said = json.dumps({"error": f"{type(exc).__name__}: {exc}", "where": where(exc)})
    data = said.encode()
    while data:
        data = data[os.write(out, data) :]


def perform(function: str, args: Any) -> Any:
    """Call a function of `hud_controller` by its dotted path."""
    module, _, name = ("hud_controller." + function).rpartition(".")
    returned = getattr(importlib.import_module(module), name)(*args)
    if inspect.isawaitable(returned):

        async def wait() -> Any:
            return await returned

        return asyncio.run(wait())
    return returned


def plain(value: Any) -> Any:
    """Return the JSON form of an unknown object: its own dump, else its text."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else str(value)


def where(exc: BaseException) -> str:
    """Return the last line of the controller that an exception passed through."""
    frames = [f for f in traceback.extract_tb(exc.__traceback__) if "hud_controller" in f.filename]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def functions() -> dict[str, Any] | None:
    """Return each function's parameters by its dotted path; None without a controller.

    Nothing of the controller is imported for it.
    """
    spec = importlib.util.find_spec("hud_controller")
    found: dict[str, Any] = {}
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for place, _, files in os.walk(folder):
            for file in sorted(files):
                if file.endswith(".py"):
                    read(folder, os.path.join(place, file), found)
    return found if spec is not None else None


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
