"""The start of a server: the parts that all sessions' copies share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hud_mcp.plugins.servers.eras import WantedEra
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.plugins.servers.reply import Masker

__all__ = ["Launch"]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The start of a server: the parts that all sessions' copies share.

    Attributes:
        argv: Its words inside; none if it runs elsewhere.
        url: Its address, if it runs elsewhere.
        headers: The headers of each request there, with the values of secrets.
        sse: Whether it speaks the older HTTP with events there.
        port: The port inside on which it speaks HTTP.
        name: Its name, with the version if that is known.
        env: Its environment, with the values of secrets.
        masker: Masks those values.
        era: The wanted era.
        samples: Whether a model answers its requests for one.
        start_s: The longest start.
        quiet: The variables of verifiers.
        is_replayable: Whether its calls are repeated, in place of a snapshot of its files.
        has_files: Whether its folder has files from the beginning.
        listed: The tools of the kept list; None if nothing was offered.
        without: The names of tools that its author leaves out.
        names: The server's own name of each tool, by its name here.
    """

    name: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sse: bool = False
    port: int | None = None
    masker: Masker = field(default_factory=Masker)
    era: WantedEra = "auto"
    samples: bool = False
    start_s: float = 60.0
    quiet: Mapping[str, str] = field(default_factory=dict[str, str])
    is_replayable: bool = False
    has_files: bool = False
    listed: Sequence[Json] | None = None
    without: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
