"""Tasksets by name or path, as `load_taskset` of the HUD SDK has them."""

from pathlib import Path

import anyio.to_thread

from hud_mcp.loading.source import find_taskset
from hud_mcp.taskset import Taskset

__all__ = ["load_taskset"]


async def load_taskset(name: str | Path) -> Taskset:
    """Load a taskset.

    Args:
        name: A shipped set (`quickstart`), a file of tasks (`.jsonl`, `.json`, `.py`), a folder
            of such files, or a name whose file is in the working folder.

    Raises:
        SourceNotFound: There is none; the text lists what there is, and says how to get a set
            that people know by name, such as `GAIA`.
        InvalidTask: Naming the file, the line and the field of the first bad row.
        InvalidEnvironment: A Python file does not load.
    """
    path = find_taskset(str(name))
    if path.suffix == ".py" or (path / "env.py").is_file():
        return Taskset.from_file(path)  # an author's file runs where its caller runs
    return await anyio.to_thread.run_sync(Taskset.from_file, path)
