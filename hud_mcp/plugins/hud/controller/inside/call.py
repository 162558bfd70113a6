"""Call one function of a controller. This runs beside the controller, in any Python there.

The call arrives on standard input. The result goes out on a descriptor that no program of the
controller inherits, nor opens by way of /proc. Prints go to standard error.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import inspect
import json
import os
import sys
import traceback
from typing import Any

PR_SET_DUMPABLE = 4


def main() -> None:
    """Read the call, perform it, and write the result."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # not Linux
    out = os.dup(1)  # not inherited
    os.dup2(2, 1)
    call = json.loads(sys.stdin.buffer.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.path[:0] = call["path"]
    try:
        said = json.dumps({"result": perform(call["function"], call["args"])}, default=plain)
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


if __name__ == "__main__":
    main()
