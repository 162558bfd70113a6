"""Read what a HUD environment offers, and declare it as one of ours."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from hud_mcp.environment import Environment
from hud_mcp.environment.tool import Tool, prefixed_name
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment, sole_cause
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.declarations import BridgedTemplate, ServerTool, listed_tasks
from hud_mcp.plugins.hud.bridge.desktop import DESKTOP_ACTIONS
from hud_mcp.plugins.hud.bridge.origin import Origin, read_origin
from hud_mcp.plugins.hud.bridge.proxy import list_tools, server_problem
from hud_mcp.plugins.hud.bridge.robot import (
    ROBOT_ACTIONS,
    RobotScreen,
    read_contract,
    robot_problem,
)
from hud_mcp.plugins.hud.bridge.screens import (
    Binding,
    Uses,
    browser_problem,
    desktop_problem,
    open_browser,
    open_desktop,
)
from hud_mcp.plugins.hud.bridge.shell import shell_problem
from hud_mcp.plugins.hud.bridge.world import BridgeSpec, BridgeWorld
from hud_mcp.plugins.hud.wire.streams import ChannelFailed
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.shell.actions import SHELL_ACTIONS, shell_tools

logger = logging.getLogger(__name__)


_NAME_CHARS = 64
_OF_NO_USE = {"filetracking/1": "it is for HUD's own records, and not for agents"}


class BridgedEnvironment(Environment):
    """A HUD environment, declared as one of ours. Made by `bridge`.

    `listed` has the tasks in its source beside its templates.
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
        notes: list[str],
        known: Any,
        rows: list[dict[str, Any]],
    ) -> None:
        super().__init__(name, version=version, world=BridgeSpec(origin, uses))
        self._origin = origin
        self._known = known
        for tool in tools:
            self._tools[tool.name] = tool
        for entry in tasks:
            self._templates[str(entry["id"])] = BridgedTemplate(entry, env=name)
        self.listed = listed_tasks(
            rows, hud_name=known["name"], env=name, templates=self._templates, notes=notes
        )
        for note in notes:
            logger.warning("%s of %s", note, origin)
            self.tell_agents(note)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the server's description, and of its source if that is on this machine."""
        said = json.dumps(self._known, sort_keys=True, default=str)
        return hashlib.sha256(f"{said}\n{self._origin.digest}".encode()).hexdigest()

    async def close(self) -> None:
        """End the server if it was started here. It may be called twice."""
        await self._origin.close()


async def bridge(source: str, *, python: str | None = None) -> BridgedEnvironment:
    """Ask a HUD server for its description, and declare that as an environment.

    Args:
        source: `tcp://[token@]host:port`; or `hud:path/to/env.py`, for which a process of ours runs
            until the environment is closed.
        python: The interpreter that has `hud`, for the second form.

    Raises:
        EnvironmentFailed: Nothing answers there, or another kind of server does.
        InvalidEnvironment: The description cannot be declared.
        ChannelFailed, SourceNotFound: The source has neither form.
    """
    origin = read_origin(source, python)
    # The interpreter takes seconds to read the rows, beside the server that starts.
    reading = asyncio.ensure_future(origin.rows())
    try:
        control = await _connect(origin)
        try:
            return await _read(origin, control, reading)
        finally:
            await control.bye()
            await control.leave()
    except BaseException:
        reading.cancel()
        await asyncio.wait([reading])
        await origin.close()
        raise


async def _connect(origin: Origin) -> Control:
    try:
        return await Control.open(origin)
    except EnvironmentFailed as exc:
        if not isinstance(exc.__cause__, ChannelFailed):
            raise
        # The person who starts a server may know its address; an agent, which asks later, may not.
        raise EnvironmentFailed(f"The HUD server cannot be reached: {exc.__cause__}") from exc


async def _read(
    origin: Origin, control: Control, reading: "asyncio.Future[list[dict[str, Any]] | str]"
) -> BridgedEnvironment:
    notes = list(control.odd)
    tasks = [task for task in await control.list_tasks() if _is_usable(task, notes)]
    uses, tools = await _Capabilities(control, notes).read()
    name, version = control.environment["name"], control.environment["version"]
    rows = await reading
    if isinstance(rows, str):
        notes.append(f"The tasks that it declares beside its templates cannot be listed: {rows}")
        rows = []
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
        name=_line_of(name),
        version=version,
        uses=uses,
        tools=tools,
        tasks=tasks,
        notes=notes,
        known=known,
        rows=rows,
    )


def _is_usable(task: Any, notes: list[str]) -> bool:
    entry = cast("dict[str, Any]", task) if isinstance(task, dict) else {}
    task_id: Any = entry.get("id")
    try:
        if not isinstance(task_id, str) or not task_id:
            raise InvalidEnvironment("it has no id")  # noqa: TRY301  # one of several reasons
        BridgedTemplate(entry, env="hud")
    except InvalidEnvironment as exc:
        shown = repr(task_id) if entry else repr(cast("Any", task))
        notes.append(f"The task {shown:.80} cannot be bridged: {exc}")
        return False
    return True


def _line_of(name: str) -> str:
    """Return the environment's name as one line, cut to the length of names here."""
    line = "".join(sign if sign.isprintable() else " " for sign in name).strip()
    return line[:_NAME_CHARS].strip() or "hud"


@dataclass(frozen=True)
class _Kind:
    """The handling of the capabilities of one protocol.

    `ask` asks the capability first. `read` gets its name, its binding and that answer, and returns
    the reason why it cannot be bridged, or None.
    """

    read: Callable[[str, Binding, Any], str | None]
    ask: Callable[[str, Binding], Awaitable[Any]] | None = None


class _Capabilities:
    def __init__(self, control: Control, notes: list[str]) -> None:
        self._control = control
        self._notes = notes
        self._tools: dict[str, Tool] = {}
        self._shells: list[str] = []
        self._screen: Uses | None = None
        self._kinds: Mapping[str, _Kind] = {
            "ssh": _Kind(self._read_shell, self._knock),
            "mcp": _Kind(self._read_server, self._ask_for_tools),
            "cdp": _Kind(self._read_browser, self._knock),
            # A VNC server may end with its first client, and a robot's has nothing to tell yet.
            "rfb": _Kind(self._read_desktop),
            "openpi": _Kind(self._read_robot),
        }

    async def read(self) -> tuple[Uses, list[Tool]]:
        """Ask all capabilities at the same time, and then decide in their order."""
        bindings = list(self._control.bindings.items())
        answers = await asyncio.gather(*(self._ask(name, each) for name, each in bindings))
        for (name, binding), answer in zip(bindings, answers, strict=True):
            protocol = str(binding.get("protocol"))
            kind = self._kinds.get(protocol.partition("/")[0])
            problem = _OF_NO_USE.get(protocol, "there is no bridge for its protocol")
            if kind is not None:
                problem = kind.read(name, binding, answer)
            if problem is not None:
                self._notes.append(
                    f"The capability {name!r} ({protocol}) cannot be bridged: {problem}"
                )
        uses = self._screen
        if uses is None and self._shells:
            uses = Uses(actions=frozenset({"wait", "custom"}), custom=SHELL_ACTIONS)
        return replace(uses or Uses(), shells=tuple(self._shells)), list(self._tools.values())

    async def _ask(self, name: str, binding: Binding) -> Any:
        kind = self._kinds.get(str(binding.get("protocol")).partition("/")[0])
        return None if kind is None or kind.ask is None else await kind.ask(name, binding)

    async def _knock(self, name: str, _binding: Binding) -> str | None:
        return await self._control.knock(name)

    async def _ask_for_tools(self, name: str, binding: Binding) -> Any:
        if server_problem(binding) is not None:
            return []
        try:
            async with self._control.forward(name) as address:
                return await list_tools(address, binding)
        except Exception as exc:  # noqa: BLE001  # whatever another's server does is named
            cause = sole_cause(exc)
            kind = "" if isinstance(cause, TimeoutError) else f"{type(cause).__name__}: "
            return f"it does not list its tools: {kind}{cause}"

    def _read_shell(self, name: str, binding: Binding, silence: str | None) -> str | None:
        problem = shell_problem(binding["params"])
        if problem is None:
            self._note_silence(name, binding, silence)
            prefix = "" if not self._shells else name
            self._shells.append(name)
            for tool in shell_tools(
                BridgeWorld, lambda world, use: world.in_shell(name, use), replayable=False
            ):
                self._add(tool, prefixed_name(prefix, tool.name, self._taken))
        return problem

    def _read_server(self, name: str, binding: Binding, declared: Any) -> str | None:
        problem = server_problem(binding)
        if problem is not None or isinstance(declared, str):
            return problem or declared
        for each in declared:
            called = prefixed_name(name, each.name, self._taken)
            try:
                tool = ServerTool(each, server=name, name=called, world=BridgeWorld)
            except InvalidEnvironment as exc:
                self._notes.append(f"The tool {each.name!r} cannot be bridged ({exc})")
                continue
            self._add(tool, called)
        return None

    def _read_browser(self, name: str, binding: Binding, silence: str | None) -> str | None:
        problem = browser_problem(binding) or self._use_screen(
            Uses(
                screen=name,
                open_screen=open_browser,
                actions=Browser.actions,
                custom=Browser.custom_actions,
                shows=True,
            )
        )
        if problem is None:
            self._note_silence(name, binding, silence)
        return problem

    def _read_desktop(self, name: str, _binding: Binding, _answer: None) -> str | None:
        return desktop_problem() or self._use_screen(
            Uses(screen=name, open_screen=open_desktop, actions=DESKTOP_ACTIONS, shows=True)
        )

    def _read_robot(self, name: str, binding: Binding, _answer: None) -> str | None:
        problem = robot_problem(binding)
        if problem is not None:
            return problem
        contract = read_contract(binding["params"].get("contract"))
        return self._use_screen(
            Uses(
                screen=name,
                open_screen=RobotScreen.open,
                actions=ROBOT_ACTIONS,
                custom=contract.schemas,
                shows=contract.has_cameras,
            )
        )

    def _note_silence(self, name: str, binding: Binding, silence: str | None) -> None:
        """Note that a capability does not answer yet: a task may start it."""
        if silence is not None:
            self._notes.append(
                f"The capability {name!r} ({binding.get('protocol')}) does not answer now "
                f"({silence}); each session that uses it tries again"
            )

    def _use_screen(self, uses: Uses) -> str | None:
        if self._screen is not None:
            return f"actions work on {self._screen.screen!r}, and on one screen only"
        self._screen = uses
        return None

    @property
    def _taken(self) -> set[str]:
        return {*self._tools, *CORE_TOOLS}

    def _add(self, tool: Tool, name: str) -> None:
        tool.rename(name)
        self._tools[name] = tool
