"""Where a template runs that has a process of its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hud_mcp.environment.world import Shared

__all__ = ["Place"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a template runs that has a process of its own.

    Attributes:
        root: The world's folder, as the environment's file names it in this process.
        places: More names of it, this one among them.
        namespaces: Opens the namespaces in which the session's own folder is seen there, as
            descriptors to enter in this order; None where the folder is the machine's.
        owner: Who the files are to belong to that the template has made when it asks; None
            where they stay its own.
        follow_links: Whether the template follows links in the folder; None where that is so if
            it has made some itself, as links that an agent makes may lead anywhere.
        stand_in: What stands for the world in that process, as `module:Class`. It is made of a
            function that calls what `calls` names, and of names that only that process has for
            the folder. Its `broken_by_agent` says whose doing an error of the template's is.
        calls: What can be called from there; arguments and results are JSON.
        shared: The services that this server's sessions share.
    """

    root: Path
    places: tuple[Path, ...]
    namespaces: Callable[[], Sequence[int]] | None = None
    owner: int | None = None
    follow_links: bool | None = None
    stand_in: str
    calls: Mapping[str, Callable[..., Awaitable[Any]]] = field(repr=False)
    shared: Shared = field(repr=False)
