"""How many worker processes a job has."""

import os

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.cluster.nodes import count_nodes

__all__ = ["EACH", "place_workers", "read_workers"]

EACH = 4
"""So many runs at once for each worker, where nothing else is said."""


def read_workers(given: int | str | None) -> int | None:
    """Read how many workers are meant.

    Args:
        given: A number, `auto` for one a core, or None for the one server that every job has.

    Raises:
        HudMcpError: It is none of these.
    """
    if given is None:
        return None
    if given == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()
    text = str(given)
    if not text.isdecimal() or int(text) < 1:
        raise HudMcpError(f"workers is {given!r}; give a number from 1, or 'auto' for one a core.")
    return int(text)


async def place_workers(given: int | None, cluster: str | None) -> int | None:
    """How many workers a job has: as given, or one for each node of its cluster.

    Args:
        given: As `read_workers` gives it.
        cluster: As `read_ray` gives it.

    Raises:
        NotInstalled, HudMcpError: The cluster cannot be had. Nothing ran.
    """
    if given is not None or cluster is None:
        return given
    return await count_nodes(cluster)


def _cores() -> int:
    return os.cpu_count() or 1
