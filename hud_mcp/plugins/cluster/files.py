"""The files of a job that are sent to the nodes of a cluster."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError

__all__ = ["ROWS", "gather_files"]

ROWS = "tasks.jsonl"
"""The file of the job's tasks, in the folder that is sent."""

_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "node_modules", "*.sqlite3", "*.sqlite3-*", "*.pyc"
)
_MOST_BYTES = 400_000_000
"""Ray refuses a folder of 500 MB."""


def gather_files(sources: Sequence[str], tasks: Taskset, folder: Path) -> list[str]:
    """Copy what a job's servers read into a folder.

    Args:
        sources: The environments, as a job has them.
        tasks: What is run of them.
        folder: An empty one.

    Returns:
        The sources, as they are named in that folder.

    Raises:
        HudMcpError: It is too much to be sent.
    """
    tasks.save(folder / ROWS)
    copied: dict[Path, str] = {}
    return [_gathered(source, folder, copied) for source in sources]


def _gathered(source: str, folder: Path, copied: dict[Path, str]) -> str:
    scheme = "hud:" if source.startswith("hud:") else ""
    place, name = _split(source.removeprefix(scheme))
    if place is None:
        return source  # it comes with the package, or is an address
    top = place if place.is_dir() else place.parent
    if top not in copied:
        size = sum(path.stat().st_size for path in top.rglob("*") if path.is_file())
        if size > _MOST_BYTES:
            raise HudMcpError(
                f"{top} has {size / 1e6:.0f} MB, and a cluster is sent at most "
                f"{_MOST_BYTES / 1e6:.0f}. Move {place.name} and its files to a folder of their "
                "own."
            )
        copied[top] = f"env{len(copied)}"
        shutil.copytree(top, folder / copied[top], ignore=_LEFT_OUT)
    inside = f"./{copied[top]}" if place.is_dir() else f"{copied[top]}/{place.name}"
    return f"{scheme}{inside}{'' if name is None else f':{name}'}"


def _split(source: str) -> tuple[Path | None, str | None]:
    """The file or folder that a source names, and which environment of it."""
    if "/" not in source and "\\" not in source:
        return None, None
    if Path(source).exists():
        return Path(source).resolve(), None
    place, _, name = source.rpartition(":")
    return (Path(place).resolve(), name) if place and Path(place).exists() else (None, None)
