"""The declaration of several MCP servers as the one world of an environment."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.environment.spec import Opening
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.several_world import ToolServersWorld
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.values.needs import Needs

if TYPE_CHECKING:
    from hud_mcp.environment.environment import Environment

__all__ = ["ToolServer", "ToolServers"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_OF_PLACE = ("files", "make", "secrets", "allow", "limits", "isolation")
"""The options of the sandbox, which a server that has one of its own does not share."""


class ToolServers(ToolServer):
    """Several servers. Made by `ToolServer` of a mapping, whose options are those of all.

    The options `describe` and `without` name tools with their servers, as agents do. `declared` has
    them without those options.
    """

    def __init__(
        self, command: Mapping[str, Sequence[str] | str | ToolServer], **options: Any
    ) -> None:
        _check(command, options)
        super().__init__([*command], **options)
        self.command = ()
        given = {n: s if isinstance(s, ToolServer) else ToolServer(s) for n, s in command.items()}
        self.declared = given
        self.members = {n: _joined(each, n, self.options) for n, each in given.items()}
        self._shared = {n: each for n, each in self.members.items() if not given[n].is_apart}
        kinds = {each.replayable for each in self.members.values()}
        if len(kinds) > 1:
            raise InvalidEnvironment("ToolServer: write replayable=True for all servers, or none.")
        self.replayable = kinds == {True}
        self.open_world = any(each.open_world for each in self.members.values())
        needs = [each.needs for each in self.members.values()]
        cpus, memory_mb = sum(each.cpus for each in needs), sum(each.memory_mb for each in needs)
        self.needs = Needs.most(needs).model_copy(update={"cpus": cpus, "memory_mb": memory_mb})

    def check(self, folder: Path) -> None:
        """Check each of them, and the files of all."""
        for each in (super(), *self.members.values()):
            each.check(folder)

    def missing(self, folder: Path) -> str | None:
        """Return the reason why one of them cannot be started here."""
        return next((why for s in self.members.values() if (why := s.missing(folder))), None)

    def files(self, folder: Path) -> Iterable[Path]:
        """Return the files of all of them."""
        return dict.fromkeys(path for s in self.members.values() for path in s.files(folder))

    async def prepare(self, environment: "Environment") -> None:
        """List each of them, and offer their tools by its name and theirs."""
        for each in self.members.values():
            await each.prepare(environment)
        self.prompts = {n: p for s in self.members.values() for n, p in s.prompts.items()}
        self.resources = [
            {**template, "uriTemplate": f"{name}/{template['uriTemplate']}"}
            for name, each in self.members.items()
            for template in each.resources
        ]

    async def open(self, opening: Opening) -> ToolServersWorld:
        """Open the shared sandbox with its files, and those of servers that have their own."""
        found = {name: await each._found(opening.folder) for name, each in self._shared.items()}
        worlds, shell, stack = dict[str, ToolServerWorld](), None, AsyncExitStack()
        try:
            if found:
                shell = await self._opened(self._make_shell(readonly=self._mounts()), opening)
                stack.push_async_callback(shell.close)
            for name, each in self.members.items():
                if name in found:
                    launch = each._offered(found[name][0])
                    worlds[name] = ToolServerWorld(shell, launch, log=opening.log)
                else:
                    worlds[name] = await each.open(opening)
                    stack.push_async_callback(worlds[name].close)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stack.aclose()
            raise
        launch = Launch(
            name=", ".join(worlds),
            quiet=self._quiet,
            is_replayable=self.replayable,
            has_files=self._files is not None or self._make is not None,
        )
        return ToolServersWorld(shell, launch, worlds, [*found], log=opening.log)

    def _mounts(self) -> dict[str, str | Path]:
        """Return the read-only places of the shared sandbox, each parent before its children."""
        found: dict[str, str | Path] = {}
        for each in self._shared.values():
            found |= each._readonly
            for guest, source in each._program.mounts.items() if each._program else ():
                # One program hides packages by an empty folder that another one needs.
                if guest not in found or source.name != "empty":
                    found[guest] = source
        return {guest: found[guest] for guest in sorted(found, key=lambda path: Path(path).parts)}


ToolServer.several = ToolServers


def _check(servers: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse names with which the tools of two servers could have the same name."""
    for name, each in servers.items():
        if not _NAME.fullmatch(name) or isinstance(each, ToolServers | Mapping):
            raise InvalidEnvironment(
                f"ToolServer: {name!r} cannot be one of several servers. Expected a name of "
                "letters, digits, _ and -, at most 40, and a command or a ToolServer of one server."
            )
        if longer := [other for other in servers if other.startswith(f"{name}_")]:
            raise InvalidEnvironment(
                f"ToolServer: tools of {longer[0]!r} would be named like those of {name!r}. Write "
                f"{longer[0].replace('_', '-')!r}."
            )
    if not servers or any(options.get(each) is not None for each in ("url", "headers", "http")):
        text = "there is no server; each one has its own url, headers and http"
        raise InvalidEnvironment(f"ToolServer: {text}.")


def _joined(spec: ToolServer, name: str, shared: Mapping[str, Any]) -> ToolServer:
    """Return the declaration of one of several servers, with the options of all."""
    own, top = spec.options, f"{name}_"
    given: Mapping[str, str] = shared["describe"] or {}
    described = {n.removeprefix(top): text for n, text in given.items() if n.startswith(top)}
    without = [each.removeprefix(top) for each in shared["without"] if each.startswith(top)]
    options: dict[str, Any] = {
        **own,
        "describe": {**(own["describe"] or {}), **described},
        "without": [*own["without"], *without],
        "mask": [*own["mask"], *shared["mask"]],
        "era": shared["era"] if own["era"] == "auto" else own["era"],
        **{each: own[each] or shared[each] for each in ("quiet", "replayable", "sampling")},
    }
    if not spec.is_apart:
        options |= {each: shared[each] for each in _OF_PLACE}
        options |= {n: {**(shared[n] or {}), **(own[n] or {})} for n in ("env", "readonly")}
    made, made.member = copy(spec), name
    ToolServer.__init__(made, spec.command, **options)
    return made
