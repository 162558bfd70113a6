"""The files of an environment: they are found in its sources, and frozen in a copy."""

import ast
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["freeze_folder", "imported_files"]


def freeze_folder(folder: Path, files: Iterable[Path], copy: Path) -> None:
    """Make an empty folder look like another one, in which some files do not change any more.

    The files in it are copied. Everything else of the folder becomes a link.
    """
    top: set[str] = set()
    for file in files:
        if file.is_relative_to(folder):
            place = file.relative_to(folder)
            top.add(place.parts[0])
            (copy / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy / place)
    for entry in folder.iterdir():
        if entry.name not in top:
            (copy / entry.name).symlink_to(entry.resolve())


def imported_files(file: Path) -> set[Path]:
    """Return a Python file and the files of its folder that it imports, directly or indirectly.

    Imports under a computed name are not seen. A file that does not parse imports nothing.
    """
    root = file.parent
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imported_names(path, root):
            waiting.extend(_files_of(name, root))
    return found


def _imported_names(path: Path, root: Path) -> Iterator[str]:
    """Yield the dotted names that a file imports, absolute from the root."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _files_of(name: str, root: Path) -> Iterator[Path]:
    place = root
    for part in filter(None, name.split(".")):
        place = place / part
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate
