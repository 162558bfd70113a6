"""Which files an author's file imports from beside it, read from the sources themselves."""

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["imported_files"]


def imported_files(file: Path) -> set[Path]:
    """A Python file, and those of its own folder that it imports, directly or by others.

    What is imported under a computed name is not seen. A file that does not parse imports
    nothing.
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
    """The dotted names that a file imports, absolute from the root."""
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
    """The files that importing a dotted name runs, where they are below the root."""
    place = root
    for part in filter(None, name.split(".")):
        place = place / part
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate
