"""The world of a bridged session: a HUD session, and what its capabilities let an agent do."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import anyio

from hud_mcp.action import Action, ActionEffect, CustomAction, WaitAction
from hud_mcp.channel.bridge.control import Control
from hud_mcp.channel.bridge.origin import Origin
from hud_mcp.channel.bridge.proxy import ToolServer
from hud_mcp.channel.bridge.shell import RemoteShell
from hud_mcp.clipping import clip_text
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.observation import Look, Observation
from hud_mcp.world import Opening, Shared, WorldSpec
from hud_mcp.worlds.shell.commands import run_action

__all__ = ["Binding", "BridgeSpec", "BridgeWorld", "Screen", "Uses"]

_FORM = 1
_CLOSE_S = 1.0
_SHOWN_ENTRIES = 60
_ROLES = ("user", "assistant", "system")

Binding = Mapping[str, Any]
"""A capability as the wire has it: name, protocol, url, params."""

T = TypeVar("T")


class Service(Protocol):
    """A connection to a capability."""

    @property
    def is_open(self) -> bool: ...

    async def close(self) -> None: ...


class Screen(Service, Protocol):
    """What `step`, `act` and `screenshot` work on."""

    async def act(self, action: Action) -> ActionEffect: ...  # noqa: D102

    async def observe(self, look: Look) -> Observation: ...  # noqa: D102

    def remembered(self) -> dict[str, Any]: ...  # noqa: D102

    def remember(self, told: Mapping[str, Any]) -> None: ...  # noqa: D102


ServiceT = TypeVar("ServiceT", bound=Service)
OpenScreen = Callable[[Control, str, Binding, Shared], Awaitable[Screen]]


@dataclass(frozen=True)
class Uses:
    """What of a HUD environment's capabilities is used, and for what.

    Attributes:
        screen: The name of the one that actions work on, or None.
        open_screen: What connects to it.
        actions: The action types that it takes.
        custom: What `custom` takes: from a name to the JSON schema of its arguments.
        shows: Whether there is a picture to see.
        shells: The names of those that are shells.
    """

    screen: str | None = None
    open_screen: OpenScreen | None = None
    actions: frozenset[str] = frozenset({"wait"})
    custom: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shows: bool = False
    shells: tuple[str, ...] = ()


class BridgeSpec(WorldSpec):
    """Declares that an environment's worlds are sessions of a HUD server.

    A session that outlives our server goes on with the same HUD session, which waits there;
    where the HUD server has dropped it, it is lost.

    Args:
        origin: Where the HUD server is.
        uses: What its capabilities are used for.
    """

    name = "hud"

    def __init__(self, origin: Origin, uses: Uses) -> None:
        self._origin = origin
        self._uses = uses
        self.world_type = BridgeWorld
        self.actions = uses.actions
        self.custom_actions = uses.custom
        self.has_screen = uses.shows

    async def open(self, opening: Opening) -> "BridgeWorld":
        """Begin a HUD session, or take up the one that the session had before.

        Raises:
            EnvironmentFailed: The HUD server cannot be reached, or has dropped the session.
        """
        held = None if opening.handle is None else _Held.read(opening.handle)
        control = await Control.open(
            self._origin, session_id=held.session if held else None, log=opening.log
        )
        return BridgeWorld(control, self._uses, opening, held)


@dataclass
class _Held:
    """What a HUD session is found by again, and what it asked.

    Attributes:
        session: The HUD server's id of it.
        prompt: What its task asks, as it was yielded.
        overrides: What its task says of capabilities.
        screen: What the screen needs to know.
    """

    session: str
    prompt: Any
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    screen: dict[str, Any] = field(default_factory=dict[str, Any])

    def written(self) -> bytes:
        return json.dumps({"form": _FORM, **vars(self)}).encode()

    @classmethod
    def read(cls, data: bytes) -> "_Held":
        try:
            fields: dict[str, Any] = json.loads(data)
            form = fields.pop("form")
            held = cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            form = held = None
        if form != _FORM or held is None:
            raise EnvironmentFailed("What the HUD session is found by is damaged.")
        return held


class BridgeWorld:
    """One session's HUD session. Made by `BridgeSpec.open`."""

    def __init__(self, control: Control, uses: Uses, opening: Opening, held: _Held | None) -> None:
        self._control = control
        self._uses = uses
        self._shared = opening.shared
        self._log = opening.log
        self._held = held
        self._taken_up = held is not None
        self._services: dict[str, Service] = {}
        self._last = ""
        self._keeps = False
        self._graded = False
        self._closed = False

    async def begin(self, task_id: str, args: Mapping[str, Any]) -> Any:
        """Start the task on the HUD side, and return its prompt.

        In a session that was taken up it runs already: what it asked is returned.

        Raises:
            EnvironmentFailed: It was not started.
        """
        if self._held is None:
            frame = await self._control.start(task_id, args)
            bindings = frame.get("bindings")
            overrides = cast("dict[str, Any]", bindings) if isinstance(bindings, dict) else {}
            prompt = _readable(frame.get("prompt"))
            self._held = _Held(self._control.session_id, prompt, overrides)
        return {"prompt": self._held.prompt}

    async def grade(self, answer: str) -> dict[str, Any]:
        """Submit the answer, and return the grade as the wire has it.

        Raises:
            EnvironmentFailed, GradingFailed: There is none.
        """
        try:
            frame = await self._control.grade(answer)
        except asyncio.CancelledError:
            self.keep()  # a server that goes on with it must not be told to drop it
            raise
        self._graded = True
        return frame

    def keep(self) -> None:
        """Leave the HUD session as it is when this world closes."""
        self._keeps = True

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, on the screen where there is one, else in the shell.

        Raises:
            ActionFailed: It was refused; the text says why.
            EnvironmentFailed: The HUD server is gone, or has dropped the session.
        """
        self._check_open()
        if self._uses.screen is not None:
            return await self._on_screen(lambda screen: screen.act(action))
        if isinstance(action, WaitAction):
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, CustomAction) and self._uses.shells:
            name, args = action.action, action.args or {}
            return await self.in_shell(
                self._uses.shells[0], lambda shell: run_action(shell, name, args)
            )
        raise ActionFailed(
            f"There is nothing to {action.type!r} here: this HUD environment has no screen. Use "
            "its tools, and finish with `response`."
        )

    async def observe(self, look: Look) -> Observation:
        """Return the screen; of a shell, what its folder has in it; else nothing.

        Where the capability does not answer, and the HUD server does, the text says so.

        Raises:
            EnvironmentFailed: The HUD server is gone, or has dropped the session.
        """
        self._check_open()
        await self._control.ready()
        try:
            if self._uses.screen is not None:
                return await self._on_screen(lambda screen: screen.observe(look))
            if not self._uses.shells or not look.text:
                return Observation()
            text = await self.in_shell(self._uses.shells[0], _folder)
        except ActionFailed as exc:  # an answer can be given even so
            text = f"There is nothing to see: {exc}"
        return Observation(text=clip_text(text, look.max_text_chars))

    async def in_shell(self, name: str, do: Callable[[RemoteShell], Awaitable[T]]) -> T:
        """Do something in a shell.

        Raises:
            ActionFailed: It was refused, or the shell does not answer.
            EnvironmentFailed: The HUD server is gone, or has dropped the session.
        """
        return await self._with(name, RemoteShell.open, do)

    async def call_tool(self, server: str, tool: str, args: Mapping[str, Any]) -> Observation:
        """Call a tool of an MCP server among the capabilities.

        Raises:
            ActionFailed: The tool says so, or the server does not answer.
            EnvironmentFailed: The HUD server is gone, or has dropped the session.
        """

        async def open_it(control: Control, name: str, binding: Binding) -> ToolServer:
            return await ToolServer.open(control.forward, name, binding)

        return await self._with(server, open_it, lambda found: found.call(tool, args))

    async def handle(self) -> bytes:
        """What another process finds the HUD session by."""
        return await self.snapshot()

    async def snapshot(self) -> bytes:
        """The same, with what the screen needs to know; the state itself stays on the HUD side.

        Raises:
            EnvironmentFailed: No task runs in it.
        """
        if self._held is None:
            raise EnvironmentFailed("No task was started in this HUD session.")
        screen = self._services.get(self._uses.screen or "")
        if screen is not None:
            self._held.screen = cast("Screen", screen).remembered()
        return self._held.written()

    async def restore(self, data: bytes) -> None:
        """See to it that this is the session that `snapshot` was taken of.

        Raises:
            EnvironmentFailed: It is another one.
        """
        held = _Held.read(data)
        if not self._taken_up or held.session != self._control.session_id:
            raise EnvironmentFailed("This is another HUD session than the one that was left.")
        self._held = held

    async def close(self) -> None:
        """Disconnect, and end the HUD session unless it is to be kept. Twice is no error."""
        if self._closed:
            return
        self._closed = True
        services, self._services = list(self._services.values()), {}
        if services:
            await asyncio.wait(
                [asyncio.ensure_future(service.close()) for service in services], timeout=_CLOSE_S
            )
        if not self._keeps:
            await self._control.bye()
        await self._control.leave()

    async def _on_screen(self, do: Callable[[Screen], Awaitable[T]]) -> T:
        name, opens = self._uses.screen, self._uses.open_screen
        if name is None or opens is None:
            raise ActionFailed("This HUD environment has no screen.")

        async def open_it(control: Control, name: str, binding: Binding) -> Screen:
            screen = await opens(control, name, binding, self._shared)
            if self._held is not None and self._held.screen:
                screen.remember(self._held.screen)
            return screen

        return await self._with(name, open_it, do)

    async def _with(
        self,
        name: str,
        opens: Callable[[Control, str, Binding], Awaitable[ServiceT]],
        do: Callable[[ServiceT], Awaitable[T]],
    ) -> T:
        """Do something with a capability; it is connected to where it is not."""
        self._check_open()
        await self._control.ready()
        async with self._learning_of_end(name):
            service = cast("ServiceT | None", self._services.get(name))
            if service is not None and not service.is_open:
                del self._services[name]
                await service.close()
                service = None
            if service is None:
                service = await opens(self._control, name, self._binding(name))
                self._services[name] = service
            return await do(service)

    def _binding(self, name: str) -> Binding:
        binding = self._control.bindings.get(name)
        if binding is None:
            raise ActionFailed(f"The HUD environment publishes no {name!r} in this session.")
        override = (self._held.overrides if self._held else {}).get(name)
        if not isinstance(override, dict):
            return binding
        return {**binding, "params": {**binding["params"], **override}}

    @asynccontextmanager
    async def _learning_of_end(self, name: str) -> AsyncGenerator[None]:
        """Tell a capability that fails from a HUD server that has gone.

        Raises:
            ActionFailed: The capability failed, and the server is there.
            EnvironmentFailed: The server is gone, or has dropped the session.
        """
        try:
            yield
        except EnvironmentFailed as exc:
            # Of the capability: the session may go on without it.
            await self._control.check()
            raise ActionFailed(f"{name}: {exc}") from exc
        except HudMcpError:
            raise
        except Exception as exc:
            cause = sole_cause(exc)
            self._log(f"{name}: {type(cause).__name__}: {cause}")
            await self._control.check()
            reason = f"{cause}".partition("\n")[0][:200].rstrip(". ") or type(cause).__name__
            raise ActionFailed(
                f"{name!r} of the HUD environment failed: {reason}. Try again."
            ) from exc

    def _check_open(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This HUD session is closed. Start a new task.")


async def _folder(shell: RemoteShell) -> str:
    entries = await shell.list()
    lines = [f"Folder .: {f'{len(entries)} entries' if entries else 'empty'}"]
    lines += [
        f"  {each.name}{'/' if each.info.is_folder else ''}" for each in entries[:_SHOWN_ENTRIES]
    ]
    if len(entries) > _SHOWN_ENTRIES:
        lines.append(f"… {len(entries) - _SHOWN_ENTRIES} more; list them with a command.")
    return "\n".join(lines)


def _readable(prompt: Any) -> Any:
    """A prompt whose every part is text: what else it has is described or written as JSON."""
    if prompt is None:
        return ""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list):
        return json.dumps(prompt, ensure_ascii=False)
    messages: list[Any] = []
    for item in cast("list[Any]", prompt):
        if isinstance(item, dict) and "content" in item:
            message = cast("dict[str, Any]", item)
            role = message.get("role") if message.get("role") in _ROLES else "user"
            messages.append({"role": role, "content": _content_text(message["content"])})
        else:
            messages.append(item if isinstance(item, str) else json.dumps(item))
    return messages or ""


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_content_text(part) for part in cast("list[Any]", content))
    if isinstance(content, dict):
        part = cast("dict[str, Any]", content)
        if isinstance(part.get("text"), str):
            return part["text"]
        if "data" in part:
            return f"[{part.get('type', 'data')}: {part.get('mimeType', 'of an unknown kind')}]"
    return json.dumps(content, ensure_ascii=False)
