"""Loading sources again in a process that has loaded them before."""

import importlib
import importlib.util
import linecache
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

from hud_mcp.environment.digest_inputs import imported_files
from hud_mcp.environment.environment import Environment

__all__ = ["Stamps", "forgotten", "inputs_of", "python_files", "stamps_of"]

Stamps = Mapping[Path, tuple[int, int] | None]
"""The time of each file's last change, and its size; None for a missing file."""


def python_files(environments: Iterable[Environment]) -> set[Path]:
    """Return the files whose code makes these environments: their own, and those they import."""
    found: set[Path] = set()
    for environment in environments:
        for file in {environment.file, environment.source or environment.file}:
            if file.is_file():
                found |= imported_files(file.resolve())
    return found


def inputs_of(environments: Iterable[Environment], tasks: Iterable[Path]) -> set[Path]:
    """Return every file that these environments and their tasks are made of."""
    served = [each for each in environments if each.file.is_file()]
    found = python_files(served) | set(tasks)
    for environment in served:
        found |= set(environment.world.files(environment.file.resolve().parent))
    return found


def stamps_of(files: Iterable[Path]) -> Stamps:
    """Return the stamps that show that a file was written again."""
    found: dict[Path, tuple[int, int] | None] = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            found[file] = None
        else:
            found[file] = (stat.st_mtime_ns, stat.st_size)
    return found


@contextmanager
def forgotten(files: Iterable[Path]) -> Generator[None]:
    """Forget the modules of these files, so that the body loads them again.

    If the body fails, the former modules are there again.
    """
    wanted = {str(file) for file in files}
    gone = {
        name: module
        for name, module in sys.modules.items()
        if (place := getattr(module, "__file__", None)) and str(Path(place).resolve()) in wanted
    }
    for name in gone:
        del sys.modules[name]
    for file in wanted:  # a second edit within a second, of the same size, has the same bytecode
        Path(importlib.util.cache_from_source(file)).unlink(missing_ok=True)
    importlib.invalidate_caches()
    linecache.checkcache()
    try:
        yield
    except BaseException:
        sys.modules.update(gone)
        raise
