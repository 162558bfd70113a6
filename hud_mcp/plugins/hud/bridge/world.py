"""The world of a bridged session: a HUD session, and the use of its capabilities."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import anyio

from hud_mcp.base.text import clip_text
from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.origin import Origin
from hud_mcp.plugins.hud.bridge.proxy import ToolServer
from hud_mcp.plugins.hud.bridge.screens import (
    Address,
    Binding,
    Remembering,
    Screen,
    Service,
    ServiceT,
    Uses,
)
from hud_mcp.plugins.hud.bridge.shell import RemoteShell
from hud_mcp.values.action import Action, ActionEffect, CustomAction, WaitAction
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.shell.actions import SHELL_ACTIONS

_FORM = 1


@dataclass
class Handle:
    """The stored facts by which another process finds a HUD session again.

    Attributes:
        session: The HUD server's id of the session.
        prompt: The prompt of its task, as yielded.
        overrides: The parameters that its task gives to capabilities.
        screen: The facts that the screen needs.
    """

    session: str
    prompt: Any
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    screen: dict[str, Any] = field(default_factory=dict[str, Any])

    def written(self) -> bytes:
        """Return the handle as stored."""
        return json.dumps({"form": _FORM, **vars(self)}).encode()

    @classmethod
    def read(cls, data: bytes) -> "Handle":
        """Read the result of `written`; EnvironmentFailed says that it is damaged."""
        try:
            fields: dict[str, Any] = json.loads(data)
            form = fields.pop("form")
            handle = cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            form = handle = None
        if form != _FORM or handle is None:
            raise EnvironmentFailed("The key of the HUD session is damaged.")
        return handle


_ROLES = ("user", "assistant", "system")


def readable_prompt(prompt: Any) -> Any:
    """Return a prompt whose parts are all text; other parts are described, or become JSON."""
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


_CLOSE_S = 1.0
_SHOWN_ENTRIES = 60
T = TypeVar("T")


class BridgeSpec(WorldSpec):
    """Declares that an environment's worlds are sessions of a HUD server.

    A session that outlives our server goes on with the same HUD session, which waits there. If the
    HUD server has dropped it, the session is lost.
    """

    name = "hud"

    def __init__(self, origin: Origin, uses: Uses) -> None:
        self._origin = origin
        self._uses = uses
        self.world_type = BridgeWorld
        self.actions = uses.actions
        self.custom_actions = uses.custom
        self.has_screen = uses.shows
        self.tools_suffice = uses.screen is None and bool(uses.shells)

    async def open(self, opening: Opening) -> "BridgeWorld":
        """Begin a HUD session, or resume the one of an earlier process.

        EnvironmentFailed says that the server cannot be reached, or has dropped the session.
        """
        handle = None if opening.handle is None else Handle.read(opening.handle)
        control = await Control.open(
            self._origin, session_id=handle.session if handle else None, log=opening.log
        )
        return BridgeWorld(control, self._uses, opening, handle)


class BridgeWorld(World):
    """One session's HUD session. Made by `BridgeSpec.open`.

    If the HUD server is gone, or has dropped the session, a method raises EnvironmentFailed. If
    only the capability refuses or does not answer, it raises ActionFailed, and the session goes on.
    """

    def __init__(
        self, control: Control, uses: Uses, opening: Opening, handle: Handle | None
    ) -> None:
        self._control = control
        self._uses = uses
        self._shared = opening.shared
        self._log = opening.log
        self._handle = handle
        self._taken_up = handle is not None
        self._services: dict[str, tuple[Service, AsyncExitStack]] = {}
        self._last = ""
        self._keeps = False
        self._graded = False
        self._closed = False

    async def begin(self, task_id: str, args: Mapping[str, Any]) -> Any:
        """Start the task on the HUD side, and return its prompt; a resumed session stores it."""
        if self._handle is None:
            frame = await self._control.start(task_id, args)
            bindings = frame.get("bindings")
            overrides = cast("dict[str, Any]", bindings) if isinstance(bindings, dict) else {}
            prompt = readable_prompt(frame.get("prompt"))
            # Kept from the start on: another process cannot ask for the prompt again.
            self._handle = Handle(self._control.session_id, prompt, overrides)
        return {"prompt": self._handle.prompt}

    async def grade(self, answer: str) -> dict[str, Any]:
        """Submit the answer, and return the grade as the wire has it; see `Control.grade`."""
        try:
            frame = await self._control.grade(answer)
        except asyncio.CancelledError:
            self.keep()  # a server that resumes it must not be told to drop it
            raise
        self._graded = True
        return frame

    def keep(self) -> None:
        """Keep the HUD session when this world closes."""
        self._keeps = True

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action on the screen; without one, in the shell."""
        self._check_open()
        if self._uses.screen is not None:
            return await self._on_screen(lambda screen: screen.act(action))
        if isinstance(action, WaitAction):
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        if isinstance(action, CustomAction) and self._uses.shells:
            return await self.in_shell(
                self._uses.shells[0], lambda shell: SHELL_ACTIONS.perform(shell, action)
            )
        raise ActionFailed(
            f"There is nothing to {action.type!r} here: this HUD environment has no screen. Use "
            "its tools, and finish with `response`."
        )

    async def observe(self, look: Look) -> Observation:
        """Return the screen; without one, the shell's folder.

        The text tells a silent capability.
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

    def screen_size(self) -> tuple[int, int] | None:
        """Return the width and height of the screen in pixels; None until it is connected."""
        screen, _ = self._services.get(self._uses.screen or "", (None, None))
        return None if screen is None else cast("Screen", screen).screen_size()

    async def measure_screen(self) -> None:
        """Connect to the screen, as the first look does."""
        if self._uses.screen is not None and self._uses.shows:
            await self._on_screen(_nothing)

    async def in_shell(self, name: str, do: Callable[[RemoteShell], Awaitable[T]]) -> T:
        """Do work in a shell."""
        return await self._with(name, RemoteShell.open, do)

    async def call_tool(self, server: str, tool: str, args: Mapping[str, Any]) -> Observation:
        """Call a tool of an MCP server among the capabilities."""
        return await self._with(
            server,
            lambda address, binding, _stack: ToolServer.open(address, binding),
            lambda found: found.call(tool, args),
        )

    async def handle(self) -> bytes:
        """Return the facts by which another process finds the HUD session."""
        return await self.snapshot()

    async def snapshot(self) -> bytes:
        """Return the same with the facts of the screen; the state itself stays on the HUD side.

        EnvironmentFailed says that no task runs in the session.
        """
        if self._handle is None:
            raise EnvironmentFailed("No task was started in this HUD session.")
        screen, _ = self._services.get(self._uses.screen or "", (None, None))
        if isinstance(screen, Remembering):
            self._handle.screen = screen.remembered()
        return self._handle.written()

    async def restore(self, data: bytes) -> None:
        """Check that this is the session of a snapshot; another one is EnvironmentFailed."""
        handle = Handle.read(data)
        if not self._taken_up or handle.session != self._control.session_id:
            raise EnvironmentFailed("The server returned a different HUD session.")
        self._handle = handle

    async def close(self) -> None:
        """Disconnect, and end the HUD session unless it is kept. It may be called twice."""
        if self._closed:
            return
        self._closed = True
        services, self._services = list(self._services.values()), {}
        if services:
            await asyncio.wait(
                [asyncio.ensure_future(stack.aclose()) for _, stack in services], timeout=_CLOSE_S
            )
        if not self._keeps:
            await self._control.bye()
        await self._control.leave()

    async def _on_screen(self, do: Callable[[Screen], Awaitable[T]]) -> T:
        name, opens = self._uses.screen, self._uses.open_screen
        if name is None or opens is None:
            raise ActionFailed("This HUD environment has no screen.")

        async def open_it(address: Address, binding: Binding, _stack: AsyncExitStack) -> Screen:
            screen = await opens(address, binding, self._shared)
            if isinstance(screen, Remembering) and self._handle and self._handle.screen:
                screen.remember(self._handle.screen)
            return screen

        return await self._with(name, open_it, do)

    async def _with(
        self,
        name: str,
        opens: Callable[[Address, Binding, AsyncExitStack], Awaitable[ServiceT]],
        do: Callable[[ServiceT], Awaitable[T]],
    ) -> T:
        self._check_open()
        await self._control.ready()
        async with self._learning_of_end(name):
            service, held = self._services.get(name, (None, None))
            if held is not None and service is not None and not service.is_open:
                del self._services[name]
                await held.aclose()
                service = None
            if service is None:
                binding = self._binding(name)
                async with AsyncExitStack() as stack:
                    # The stream closes after the service that uses it.
                    address = await stack.enter_async_context(self._control.forward(name))
                    service = await opens(address, binding, stack)
                    stack.push_async_callback(service.close)
                    self._services[name] = service, stack.pop_all()
            return await do(cast("ServiceT", service))

    def _binding(self, name: str) -> Binding:
        binding = self._control.bindings.get(name)
        if binding is None:
            raise ActionFailed(f"The HUD environment publishes no {name!r} in this session.")
        override = (self._handle.overrides if self._handle else {}).get(name)
        if not isinstance(override, dict):
            return binding
        return {**binding, "params": {**binding["params"], **override}}

    @asynccontextmanager
    async def _learning_of_end(self, name: str) -> AsyncGenerator[None]:
        """Tell a capability that failed (ActionFailed) from a lost server (EnvironmentFailed)."""
        try:
            yield
        except EnvironmentFailed as exc:
            # An error of the capability: the session may go on without it.
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


async def _nothing(screen: Screen) -> None:
    """Do nothing: connecting to the screen is all."""


async def _folder(shell: RemoteShell) -> str:
    entries = await shell.list()
    lines = [f"Folder .: {f'{len(entries)} entries' if entries else 'empty'}"]
    lines += [
        f"  {each.name}{'/' if each.info.is_folder else ''}" for each in entries[:_SHOWN_ENTRIES]
    ]
    if len(entries) > _SHOWN_ENTRIES:
        lines.append(f"… {len(entries) - _SHOWN_ENTRIES} more; list them with a command.")
    return "\n".join(lines)
