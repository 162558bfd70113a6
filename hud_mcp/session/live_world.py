"""A session's world: opened once, acted on and observed in turn, and resumed elsewhere."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from hud_mcp.base import telemetry
from hud_mcp.base.text import clip_text
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import CallTemplate
from hud_mcp.environment.moves import Moves
from hud_mcp.environment.spec import Opening
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.environment.tool import Tool
from hud_mcp.environment.world import SharedService, World, as_world, current_world
from hud_mcp.errors import EnvironmentFailed, HudMcpError, SessionEnded
from hud_mcp.session.draft import Pointer, in_picture_pixels
from hud_mcp.session.history import SnapshotNotes
from hud_mcp.session.replay import Repeat, can_resume, rebuild
from hud_mcp.session.spec import GroupSetup
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation, Screenshot, fit_screenshot, fitted_size

logger = logging.getLogger(__name__)

_CLOSE_S = 2.0
"""The longest closing of the tools' services, all together."""
_ASK_S = 5.0
"""The longest wait for a world's word that it lives."""
_RECORD_QUALITY = 60
"""JPEG quality of pictures that only the record keeps."""

Play: TypeAlias = AsyncGenerator[Any, Any]
"""A template that runs on a world."""


class _ClosedWorld(World):
    """The world while none is open."""

    async def act(self, action: Action) -> ActionEffect:  # noqa: ARG002
        raise self._ended()

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002
        raise self._ended()

    async def snapshot(self) -> bytes | None:
        raise self._ended()

    async def is_dead(self) -> bool:
        return True

    async def close(self) -> None:
        pass

    @property
    def unwrapped(self) -> Any:
        raise self._ended()

    def _ended(self) -> SessionEnded:
        return SessionEnded("The world of this session is closed.")


_CLOSED = _ClosedWorld()


class LiveWorld:
    """The world of one session; places go in pixels of the picture that the agent saw last."""

    __slots__ = (
        "_environment", "_has_screen", "_in_one_go", "_log", "_replayable", "_snapshots",
        "_tools_replay", "_world", "group_setup", "latest", "moves", "pointer", "scale", "services",
    )  # fmt: skip

    def __init__(
        self,
        environment: Environment,
        *,
        replayable: bool,
        log: Callable[[str], None],
        snapshots: SnapshotNotes | None = None,
    ) -> None:
        self._snapshots = snapshots or SnapshotNotes()
        self._environment = environment
        self._replayable = replayable
        self._log = log
        self._world: World = _CLOSED
        self._has_screen = self._in_one_go = False
        self._tools_replay = True
        self.services: dict[str, SharedService] = {}
        self.scale = 1.0
        self.latest: Screenshot | None = None
        self.pointer = Pointer()
        self.group_setup: GroupSetup | None = None
        self.moves: Moves | None = None  # most templates have none

    async def play(self, template: Template, task: Task, opening: Opening) -> Play:
        """Open the world, once, and return the generator of the template on it, or fail."""
        world = await self._open(opening)
        if self.group_setup is not None and isinstance(template, CallTemplate):
            again = partial(self._reopen, opening)
            world = await self.group_setup.apply(world, template, reopen=again, log=self._log)
            return template.ask(world.unwrapped)
        return world.begin_template(
            template,
            source=self._environment.source or self._environment.file,
            args=task.args,
            context=self._environment.context_space.fill(task.context),
        )

    async def _open(self, opening: Opening) -> World:
        with telemetry.span("open", environment=self._environment.name):
            world = self._world = as_world(await self._environment.world.open(opening))
        self._has_screen = self._environment.world.has_screen
        self._in_one_go = world.acts_in_one_go
        current_world.set(world.unwrapped)
        return world

    async def _reopen(self, opening: Opening) -> World:
        await self.close()
        return await self._open(opening)

    @property
    def opens_nothing(self) -> bool:
        """Whether opening it waits for nothing."""
        return self._environment.world.opens_nothing

    @property
    def is_open(self) -> bool:
        """Whether a world is open."""
        return self._world is not _CLOSED

    def drop(self) -> bool:
        """Forget a world that holds nothing open; return whether that is so."""
        if self._environment.world.opens_nothing and not self.services:
            self._world = _CLOSED
        return not self.is_open

    async def close(self) -> None:
        """Close the world if it is open. Closing again is not an error."""
        # First, so that no call finds a world that is being closed.
        world, self._world = self._world, _CLOSED
        services, self.services = list(self.services.values()), {}
        if services:
            closing = [asyncio.ensure_future(service.close()) for service in services]
            await asyncio.wait(closing, timeout=_CLOSE_S)
        await world.close()

    async def handle(self) -> bytes | None:
        """Return the address of a remote world; None for a local one."""
        return await self._world.handle()

    async def ready(self) -> None:
        """Have the world start what comes after its setup."""
        await self._world.ready()
        if self.moves is not None:
            self.moves.start()

    @property
    def live(self) -> Any:
        """The author's own world, for templates, tools and functions; SessionEnded if closed."""
        return self._world.unwrapped

    @property
    def died(self) -> str | None:
        """The reason why the world is broken, if it says so unasked."""
        return self._world.died

    @property
    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of the agent's next picture, in its pixels; None if not known yet."""
        if self.latest is not None:
            return self.latest.width_px, self.latest.height_px
        size = self._world.screen_size()
        return None if size is None else fitted_size(*size, Look())

    async def measure_screen(self) -> None:
        """Have the world measure its screen if it can; else the size stays unknown."""
        try:
            await self._world.measure_screen()
        except HudMcpError as exc:  # An error from here would end the session.
            logger.info("a screen is not measured: %s", exc)

    def explain(self, prompt: str) -> str:
        """The world's rules, for the time before a look; empty if the world tells none."""
        return self._world.explain(prompt)

    async def is_dead(self) -> bool:
        """Whether the world is dead. A world that does not say in time counts as alive."""
        asked = asyncio.ensure_future(self._world.is_dead())
        try:
            done, _ = await asyncio.wait({asked}, timeout=_ASK_S)
        finally:
            # A world that hangs must not hang the session with it.
            asked.cancel()
        if not done:
            asked.add_done_callback(lambda late: late.cancelled() or late.exception())
            return False
        return not asked.cancelled() and asked.exception() is None and asked.result()

    async def stop_agent(self) -> None:
        """Stop the agent's programs before grading. The answer is taken in any case."""
        try:
            await self._world.stop_agent()
        except HudMcpError as exc:
            self._log(f"what the agent left running was not stopped: {exc}")

    async def act(self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]) -> None:
        """Perform actions until the episode ends, and give each effect to `keep`.

        Raises:
            ActionFailed: The next one was refused.
            EnvironmentFailed: The world broke. Every effect that was kept before was done.
        """
        world, scale = self._world, self.scale
        # Most pictures have the page's own size, and their actions need no copy.
        given = actions if scale == 1 else [action.scaled(scale) for action in actions]
        if self._in_one_go and len(given) > 1:
            done: list[ActionEffect] = []
            try:
                refusal = await world.act_all(given, done.append)
            finally:  # The effects before a failure or a cancellation are recorded too.
                for effect in tuple(done):
                    keep(in_picture_pixels(effect, scale))
            if refusal is not None:
                raise refusal
            return
        for action in given:
            with telemetry.span("action", type=action.type):
                if action.is_aimless or action.moves_pointer:
                    effect = await self.pointer.act(action, world)
                else:
                    effect = await world.act(action)
            keep(effect if scale == 1 else in_picture_pixels(effect, scale))
            if effect.terminated or effect.truncated:
                return

    async def observe(self, look: Look, *, deliver_image: bool) -> Observation:
        """Observe, with a picture for the record too; EnvironmentFailed if the world broke."""
        seen = await self._world.observe(self._recorded(look))
        text, image = seen.text, seen.image
        if text is not None and len(text) > look.max_text_chars:
            text = clip_text(text, look.max_text_chars)
        if image is not None:
            if not look.takes(image):
                # Off the event loop, because Pillow decodes and encodes the whole picture.
                image = await anyio.to_thread.run_sync(fit_screenshot, image, look)
            if deliver_image:
                # The agent's places refer to the picture that it saw, and not to one of the record
                # alone.
                self.scale = image.scale
            self.latest = image
        if text is seen.text and image is seen.image:
            return seen
        return Observation(text=text, image=image, values=seen.values)

    def _recorded(self, look: Look) -> Look:
        if self._has_screen == (look.image is not None):
            return look
        if not self._has_screen:
            return look.model_copy(update={"image": None})
        return look.model_copy(update={"image": "jpeg", "quality": _RECORD_QUALITY})

    async def snapshot(self, after: int) -> bytes | None:
        """Return the state if no replay can give it again; None if one can, or on failure.

        After a failure the session goes on, and its record says what a restart would cost.

        Raises:
            EnvironmentFailed: The world broke.
        """
        if self.replays:
            return None
        try:
            data = await self._world.snapshot()
        except SessionEnded:  # it is closed
            raise
        except Exception as exc:  # whatever an author's world raises: only durability is lost
            # Only a dead world ends the call; a living one loses no more than this snapshot.
            if isinstance(exc, EnvironmentFailed) and await self.is_dead():
                raise
            why = str(exc)
            if not isinstance(exc, HudMcpError):
                logger.exception("a world's snapshot failed")
                why = f"{type(exc).__name__}: {exc}."
            self._snapshots.fail(after, why)
            self._log(f"no snapshot after step {after}: {why}")
            return None
        if data is not None:
            self._snapshots.leave_out(after, self._world.left_out)
        return data

    @property
    def replays(self) -> bool:
        """Whether a replay of its record gives its state again."""
        return self._replayable and self._tools_replay

    def note_tool(self, tool: Tool) -> None:
        """Note that a tool is called. A replay must not call some tools again."""
        # A tool that must not run twice rules a replay out for the rest of the session.
        self._tools_replay &= tool.replayable

    def note_direct(self) -> None:
        """Note that the world is used directly, which no replay repeats."""
        self._tools_replay = False

    def can_resume(self, steps: int, snapshot_step: int | None) -> bool:
        """Whether another server could bring the world to its state after the last change."""
        return can_resume(
            steps, snapshot_step, replayable=self._replayable, tools_replay=self._tools_replay
        )

    async def resume(self, stored: StoredSession, repeat: Repeat) -> None:
        """Bring a fresh world, after the template's setup, to its last recorded step.

        It is a `WorldLost` if it cannot be brought there, and `EnvironmentFailed` if it broke.
        """
        steps = await rebuild(
            self._world,
            stored,
            self._environment,
            self.pointer,
            repeat=repeat,
            moves=self.moves,
        )
        if self.moves is not None and steps:
            told = [note for step in steps for note in step.notes]
            self.moves.restore([event for step in steps for event in step.events], told)
            open_s = (steps[-1].ended_at - stored.trajectory.started_at).total_seconds()
            self.moves.start(max(0.0, open_s))
        await self._world.resumed(steps)
        if self._world.left_out:
            self._log(f"brought back without {', '.join(self._world.left_out)}")
        # The next actions refer to the last picture that the agent saw before.
        for step in steps:
            if step.delivered_image and step.screenshot is not None:
                self.scale = step.screenshot.scale
            if step.kind == "direct":
                self.note_direct()
            if step.kind == "tool" and step.actions:
                tool = self._environment.tools.get(str(step.actions[0].get("tool")))
                if tool is not None:
                    self.note_tool(tool)
