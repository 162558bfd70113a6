"""Reading what a HUD environment has, and declaring it as one of ours."""

import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from hud_mcp.channel.bridge.browser import BrowserScreen, browser_problem
from hud_mcp.channel.bridge.control import Control
from hud_mcp.channel.bridge.desktop import DesktopScreen, desktop_problem
from hud_mcp.channel.bridge.origin import Origin, read_origin
from hud_mcp.channel.bridge.proxy import ServerTool, ToolServer, server_problem, tool_name
from hud_mcp.channel.bridge.shell import shell_problem
from hud_mcp.channel.bridge.template import BridgedTemplate
from hud_mcp.channel.bridge.tools import shell_tools
from hud_mcp.channel.bridge.world import Binding, BridgeSpec, BridgeWorld, Uses
from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidEnvironment, sole_cause
from hud_mcp.tool import CORE_TOOLS, Tool
from hud_mcp.worlds.browser.remote import REMOTE_ACTIONS
from hud_mcp.worlds.desktop import DESKTOP_ACTIONS

__all__ = ["BridgedEnvironment", "bridge"]

logger = logging.getLogger(__name__)


_OF_NO_USE = {"filetracking/1": "it is for HUD's own records, and not for agents"}


class BridgedEnvironment(Environment):
    """A HUD environment, declared as one of ours. Made by `bridge`.

    Attributes:
        notes: What of it cannot be used here, each with the reason.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        name: str,
        version: str,
        uses: Uses,
        tools: Iterable[Tool],
        tasks: Iterable[Mapping[str, Any]],
        notes: Iterable[str],
        known: Any,
    ) -> None:
        super().__init__(name, version=version, world=BridgeSpec(origin, uses))
        self.notes = tuple(notes)
        self._origin = origin
        self._known = known
        for tool in tools:
            self._tools[tool.name] = tool
        for entry in tasks:
            self._templates[str(entry["id"])] = BridgedTemplate(entry, env=name)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what the server said of itself, and of its source where that is here."""
        said = json.dumps(self._known, sort_keys=True, default=str)
        return hashlib.sha256(f"{said}\n{self._origin.digest}".encode()).hexdigest()

    async def close(self) -> None:
        """End the server, if it was started here. Closing twice is no error."""
        await self._origin.close()


async def bridge(source: str, *, python: str | None = None) -> BridgedEnvironment:
    """Ask a HUD server what it has, and declare that as an environment.

    Args:
        source: `tcp://[token@]host:port`, or `hud:path/to/env.py`, which is served by a process
            of our own until the environment is closed.
        python: For the second: the interpreter that has `hud`.

    Raises:
        EnvironmentFailed: Nothing answers there, or no HUD server.
        InvalidEnvironment: What it says cannot be declared.
        ChannelFailed, SourceNotFound: The source is none of the two.
    """
    origin = read_origin(source, python)
    try:
        control = await Control.open(origin)
        try:
            return await _read(origin, control)
        finally:
            await control.bye()
            await control.leave()
    except BaseException:
        await origin.close()
        raise


async def _read(origin: Origin, control: Control) -> BridgedEnvironment:
    notes: list[str] = []
    tasks = [task for task in await control.list_tasks() if _is_usable(task, notes)]
    uses, tools = await _Capabilities(control, notes).read()
    name, version = control.environment["name"], control.environment["version"]
    for note in notes:
        logger.warning("%s of %s", note, origin)
    known = {
        "name": name,
        "version": version,
        "tasks": tasks,
        "capabilities": sorted(
            (key, each.get("protocol")) for key, each in control.bindings.items()
        ),
    }
    logger.info(
        "bridged %s %s at %s: %d templates, %d tools", name, version, origin, len(tasks), len(tools)
    )
    return BridgedEnvironment(
        origin,
        name=_plain_name(name),
        version=version,
        uses=uses,
        tools=tools,
        tasks=tasks,
        notes=notes,
        known=known,
    )


def _is_usable(task: Mapping[str, Any], notes: list[str]) -> bool:
    try:
        BridgedTemplate(task, env="hud")
    except (InvalidEnvironment, KeyError, TypeError) as exc:
        notes.append(f"The task {task.get('id')!r} cannot be bridged ({exc})")
        return False
    return True


def _plain_name(name: str) -> str:
    """The environment's name, as names are here."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    return (plain if plain[:1].isalpha() else f"hud-{plain}".rstrip("-"))[:64]


class _Capabilities:
    """Decides what each capability is used for."""

    def __init__(self, control: Control, notes: list[str]) -> None:
        self._control = control
        self._notes = notes
        self._tools: dict[str, Tool] = {}
        self._shells: list[str] = []
        self._screen: Uses | None = None
        self._kinds: Mapping[str, Callable[[str, Binding], Awaitable[str | None]]] = {
            "ssh": self._read_shell,
            "mcp": self._read_server,
            "cdp": self._read_browser,
            "rfb": self._read_desktop,
        }

    async def read(self) -> tuple[Uses, list[Tool]]:
        for name, binding in self._control.bindings.items():
            protocol = str(binding.get("protocol"))
            reads = self._kinds.get(protocol.partition("/")[0])
            problem = _OF_NO_USE.get(protocol, "there is no bridge for its protocol")
            if reads is not None:
                problem = await reads(name, binding)
            if problem is not None:
                self._notes.append(
                    f"The capability {name!r} ({protocol}) cannot be bridged: {problem}"
                )
        actions = {"wait", "custom"} if self._shells else {"wait"}
        uses = self._screen or Uses(actions=frozenset(actions))
        return replace(uses, shells=tuple(self._shells)), list(self._tools.values())

    async def _read_shell(self, name: str, binding: Binding) -> str | None:
        problem = shell_problem(binding["params"])
        if problem is None:
            prefix = "" if not self._shells else name
            self._shells.append(name)
            for tool in shell_tools(name):
                self._add(tool, tool_name(prefix, tool.name, self._taken))
        return problem

    async def _read_server(self, name: str, binding: Binding) -> str | None:
        problem = server_problem(binding)
        if problem is not None:
            return problem
        try:
            server = await ToolServer.open(self._control, name, binding)
            try:
                declared = await server.tools()
            finally:
                await server.close()
        except Exception as exc:  # noqa: BLE001  # whatever another's server does is named
            cause = sole_cause(exc)
            return f"it does not list its tools: {type(cause).__name__}: {cause}"
        for each in declared:
            called = tool_name(name, each.name, self._taken)
            try:
                tool = ServerTool(each, server=name, name=called, world=BridgeWorld)
            except InvalidEnvironment as exc:
                self._notes.append(f"The tool {each.name!r} cannot be bridged ({exc})")
                continue
            self._add(tool, called)
        return None

    async def _read_browser(self, name: str, binding: Binding) -> str | None:
        return browser_problem(binding) or self._use_screen(
            Uses(screen=name, open_screen=BrowserScreen.open, actions=REMOTE_ACTIONS)
        )

    async def _read_desktop(self, name: str, _binding: Binding) -> str | None:
        return desktop_problem() or self._use_screen(
            Uses(screen=name, open_screen=DesktopScreen.open, actions=DESKTOP_ACTIONS)
        )

    def _use_screen(self, uses: Uses) -> str | None:
        """Have actions work on a screen, if there is none yet."""
        if self._screen is not None:
            return f"actions work on {self._screen.screen!r}, and on one screen only"
        self._screen = uses
        return None

    @property
    def _taken(self) -> set[str]:
        return {*self._tools, *CORE_TOOLS}

    def _add(self, tool: Tool, name: str) -> None:
        tool.name = name
        self._tools[name] = tool
