"""The live world of one session, and the endpoints by which a control channel reaches it.

An endpoint is one server for all sessions of a channel, on a port behind the channel's own. A key,
or an address that nobody can guess, lets one session in.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.capability import Capability
from hud_mcp.values.observation import Look, Observation

if TYPE_CHECKING:
    from pathlib import Path

    from hud_mcp.environment.template import Template

__all__ = [
    "DirectAccess",
    "DirectSession",
    "Endpoint",
    "EndpointAccess",
    "FindSession",
    "Publish",
    "SharedService",
    "World",
    "as_world",
    "current_world",
]


class World(ABC):
    """The live state of one session.

    Derive from it, and write `act`, `observe` and `close`. Every other member has a default, which
    says that the world has no such thing. A member may be set on the class, in the constructor, or
    be a property.

    A session never calls a world from two tasks at once, but may call it from different tasks in
    turn. Calls come on the event loop, where every other session waits meanwhile. Work that can
    block for longer than some milliseconds goes to a thread inside the call.

    After `EnvironmentFailed`, only `close` is called.

    Attributes:
        died: The reason why only `close` may be called from now on; None while the world can be
            used. A world in another process can die while nobody calls it: a session then knows
            that a call found it dead, and did not kill it.
        left_out: The parts that the last `snapshot` or `restore` was without, each with a reason.
            Only parts that may be missing: without any other one, there is no snapshot.
    """

    died: str | None = None
    left_out: Sequence[str] = ()

    @abstractmethod
    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when it has settled.

        Args:
            action: One of the types that the spec lists. Places are CSS pixels.

        Raises:
            ActionFailed: The world refused it, and is as it was before.
            EnvironmentFailed: The world is broken.

        If this call is cancelled, the action may or may not have happened, and the world can be
        used further.
        """

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Perform actions in order, until one is refused or ends the episode.

        Override it if a list is performed in one go, such as on another thread. For other worlds,
        sessions call `act` for each action, and keep its effect as soon as it is done.

        Args:
            actions: The actions; see `act`.
            keep: A function for the effect of each action, called as soon as it is done, on any
                thread.

        Returns:
            The refusal of the next action; None if no action was refused.

        Raises:
            EnvironmentFailed: The world is broken. Actions with a kept effect were done.

        If this call is cancelled, actions with a kept effect were done. `act` tells what is true of
        the action under way.
        """
        for action in actions:
            try:
                effect = await self.act(action)
            except ActionFailed as exc:
                return exc
            keep(effect)
            if effect.terminated or effect.truncated:
                break
        return None

    @property
    def acts_in_one_go(self) -> bool:
        """Whether `act_all` is more than an `act` for each action."""
        return getattr(self.act_all, "__func__", None) is not World.act_all

    @abstractmethod
    async def observe(self, look: Look) -> Observation:
        """Return the present observation; change nothing.

        Args:
            look: The parts to observe. `look.image` is only set if the spec has a screen. The
                picture may exceed the budget; the session fits it.

        Raises:
            EnvironmentFailed: The world is broken.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release everything that belongs only to this world. It may be called twice."""

    async def ready(self) -> None:  # noqa: B027  # most are, once they are open
        """Start what comes after the setup, before the prompt; `EnvironmentFailed` if it fails."""

    async def ask(self, method: str, params: Mapping[str, Any], look: Look) -> Any:  # noqa: ARG002
        """Answer `prompts/get` or `resources/read` in MCP's form; `ActionFailed` refuses it."""
        raise ActionFailed(f"This world has nothing to ask for by {method}.")

    # Durability.

    async def resumed(self, steps: Sequence[Any]) -> None:  # noqa: B027  # most know
        """Take note of the recorded steps that stand, after `restore` or a replay."""

    async def snapshot(self) -> bytes | None:
        """Return the present state; None in a world that cannot be restored. Change nothing.

        A session asks after each step of a world that is not replayable. The spec's docs say which
        part of the state is kept. After an error but `EnvironmentFailed`, the world goes on, and
        cannot come back to this moment.

        Raises:
            LimitReached: Something is too large to be kept; the text names it.
            InvalidEnvironment: The author keeps something in it that cannot be written down.
            SnapshotFailed: It could not be taken now.
            EnvironmentFailed: The world is broken.

        If this call is cancelled, nothing has changed.
        """
        return None

    async def restore(self, data: bytes) -> None:
        """Take up a snapshot, made here or in a process that has ended.

        The world was opened with the same context and seed, and the template's setup ran in it
        again. Objects that the template got from the world stay the world's, and their content
        changes in place.

        Args:
            data: The complete bytes that `snapshot` returned.

        Raises:
            EnvironmentFailed: The snapshot cannot be taken up; the text gives the reason.
            NotImplementedError: The world has no snapshots.

        If this call is cancelled, only `close` may be called from now on.
        """
        raise NotImplementedError

    async def snapshot_setup(self) -> bytes | None:
        """Return the whole state after setup; None if setups are not shared. Change nothing.

        `restore` takes it up in another world, freshly opened. The spec's `shares_setup` names the
        setups for which this equals a run of the setup.

        Raises:
            SnapshotFailed: Setup has left something that cannot be kept; the text names it.
            LimitReached: It is too large.
            EnvironmentFailed: The world is broken.

        If this call is cancelled, nothing has changed.
        """
        return None

    async def handle(self) -> bytes | None:
        """Return the world's address for other processes; None if it ends with this process.

        A session asks once, at the prompt. When it is resumed, setup is not run again, and
        `Opening.handle` has these bytes.
        """
        return None

    async def is_dead(self) -> bool:
        """Find out whether only `close` may be called from now on. By default, look at it.

        A session asks after a failure of a grader or a snapshot. Override it if `died` knows.
        """
        if self.died is not None:
            return True
        try:
            await self.observe(Look())
        except EnvironmentFailed:
            return True
        return False

    # Grading.

    async def stop_agent(self) -> None:  # noqa: B027  # most have nothing to stop
        """Stop the processes that the agent left, after its answer. Files and the like stay.

        Raises:
            ActionFailed: It cannot be stopped. The answer is taken in any case.
            EnvironmentFailed: The world is broken.
        """

    def begin_template(
        self,
        template: "Template",
        *,
        source: "Path",
        args: Mapping[str, Any],
        context: Mapping[str, Any],
    ) -> AsyncGenerator[Any, Any]:
        """Begin the session's template, but run nothing of it yet.

        Override it if a template needs more than this process, such as a process of its own.
        `source` is the environment's file, and `context` has every feature of the session.
        """
        del source
        return template.run(args, self.unwrapped, context)

    # What people and agents are told of it.

    def explain(self, prompt: str = "") -> str:
        """Return the rules and the meaning of actions; looks need not repeat them after this.

        The agent has the text of `prompt` already, which needs no repetition.
        """
        del prompt
        return ""

    def screen_size(self) -> tuple[int, int] | None:
        """Return the width and height of its next picture, in pixels; None while unknown."""
        return None

    async def measure_screen(self) -> None:  # noqa: B027  # most have no screen
        """Find out `screen_size` after a start, if it is None, without a change to an agent's view.

        After a `HudMcpError`, it is still unknown, and the world is unchanged.
        """

    async def urls(self) -> Mapping[str, Any]:
        """Return the addresses for a person: `url` is shown, and `live_url` is watched."""
        return {}

    @property
    def unwrapped(self) -> Any:
        """The object that templates, tools and functions are given: by default this one."""
        return self


class _CompletedWorld(World):
    """An author's world of another class: the members that it lacks have the defaults."""

    def __init__(self, own: Any) -> None:
        self._own = own
        for name in _OPTIONAL:
            member = getattr(own, name, None)
            if callable(member):
                setattr(self, name, member)

    async def act(self, action: Action) -> ActionEffect:
        return await self._own.act(action)

    async def observe(self, look: Look) -> Observation:
        return await self._own.observe(look)

    async def close(self) -> None:
        await self._own.close()

    @property
    def died(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        return getattr(self._own, "died", None)

    @property
    def left_out(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        return getattr(self._own, "left_out", ())

    async def is_dead(self) -> bool:
        return self.died is not None if hasattr(self._own, "died") else await super().is_dead()

    @property
    def unwrapped(self) -> Any:
        return self._own


_OPTIONAL = (
    "act_all", "snapshot", "restore", "snapshot_setup", "handle", "stop_agent", "explain",
    "screen_size", "measure_screen", "urls", "ready", "resumed",
)  # fmt: skip
"""The members that an author's own class may have beside the three that it must have."""


def as_world(opened: Any) -> World:
    """Return an opened object, which has `act`, `observe` and `close`, as a `World`."""
    return opened if isinstance(opened, World) else _CompletedWorld(opened)


current_world: ContextVar[Any] = ContextVar("current_world", default=None)
"""The world of the session whose template or function runs; None outside of sessions.

It serves graders that are called without a world, such as HUD's."""


class SharedService(Protocol):
    """Something that the worlds of one process share, such as a browser."""

    async def close(self) -> None:
        """Release it. It may be called twice."""
        ...


class DirectAccess(Protocol):
    """One use of a session's world beside its calls, such as an ssh command."""

    @property
    def world(self) -> World:
        """The world; `SessionEnded` or `AlreadyAnswered` if it may not be used any more."""
        ...

    def tell(self, text: str, **info: Any) -> None:
        """Record the result."""
        ...


class DirectSession(Protocol):
    """The session that an endpoint leads to."""

    def direct_access(
        self, protocol: str, what: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[DirectAccess]:
        """Use the world while the block runs. The use, `what`, is a step of the record.

        It raises `SessionBusy`, `SessionEnded`, `AlreadyAnswered` or `StoreFailed`.
        """
        ...

    def direct_world(self) -> World:
        """Return the world for looking at it, or raise like `direct_access`, which acting needs."""
        ...


FindSession = Callable[[], Awaitable[DirectSession]]
"""A function that returns the session of the task in progress; a `HudMcpError` if none is."""


class EndpointAccess(Protocol):
    """One session's access to an endpoint."""

    @property
    def capability(self) -> Capability:
        """The capability that the agent gets."""
        ...

    async def close(self) -> None:
        """Refuse the session from now on, and drop its connections."""
        ...


class Endpoint(Protocol):
    """A server through which clients reach the worlds of a channel's sessions."""

    @property
    def name(self) -> str:
        """The capability's name."""
        ...

    def check(self) -> None:
        """Raise a `HudMcpError` with a remedy if it cannot open here, before anything does."""
        ...

    async def open(self) -> None:
        """Listen. It is called once, when the first peer says hello."""
        ...

    @property
    def address(self) -> Capability:
        """The address of an open endpoint."""
        ...

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Admit a session. Agents read the text of errors of `find_session`."""
        ...

    async def close(self) -> None:
        """Stop listening. It may be called twice."""
        ...


class Publish(Protocol):
    """The maker of the endpoint of a kind of world, for one channel."""

    def __call__(self, world: Any, environment: str, /) -> Endpoint | None:
        """Make the endpoint of a spec; return None if such a spec, or this machine, has none."""
        ...
