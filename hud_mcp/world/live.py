"""The live world of one session: what every one can do, and what some can do beside it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from hud_mcp.action import Action, ActionEffect
from hud_mcp.errors import ActionFailed
from hud_mcp.observation import Look, Observation

__all__ = [
    "ActsAtOnce",
    "ActsNow",
    "Addressed",
    "Elsewhere",
    "Explained",
    "Measured",
    "Mortal",
    "Place",
    "Placed",
    "Restorable",
    "RestorableInPart",
    "Screened",
    "SetupShared",
    "Stoppable",
    "World",
    "current_world",
]


@runtime_checkable
class World(Protocol):
    """The live state of one session.

    A session never calls a world from two tasks at once, but may call it from different tasks in
    turn.
    """

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when it has settled.

        Args:
            action: One of the types that the spec lists. Places are CSS pixels.

        Raises:
            ActionFailed: The world refused it, and is as it was before.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.

        If this call is cancelled, the action may or may not have happened, and the
        world can be used further.
        """
        ...

    async def observe(self, look: Look) -> Observation:
        """Return the present observation; change nothing.

        Args:
            look: Which parts to observe. `look.image` is only set where the spec has a
                screen. The picture may exceed the budget; the session fits it.

        Raises:
            EnvironmentFailed: The world is broken; only `close` may be called from now on.
        """
        ...

    async def close(self) -> None:
        """Release everything that belongs only to this world. It may be called twice."""
        ...


@runtime_checkable
class ActsAtOnce(World, Protocol):
    """A world that performs a list of actions in one go, as one on another thread should."""

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Perform actions in order, until one is refused or ends the episode.

        Args:
            actions: As for `act`.
            keep: Called with what each one did, as soon as it is done, on any thread.

        Returns:
            Why the next action was refused; None where none was.

        Raises:
            EnvironmentFailed: As for `act`; what was kept before, was done.

        If this call is cancelled, what was kept was done, the action under way may or may not
        have happened, and the world can be used further.
        """
        ...


@runtime_checkable
class ActsNow(World, Protocol):
    """A world whose calls can be so short that they wait for nothing, as a step of arithmetic.

    Its spec says `is_quick`.
    """

    def acts_now(self, actions: Sequence[Action], look: Look) -> bool:
        """Whether actions and a look after them wait for nothing now, and take some ms at most.

        Where this is so, the next `act` or `act_all` with these actions, and `observe` with this
        look, end without having waited. Every other session waits meanwhile.
        """
        ...


@runtime_checkable
class Restorable(World, Protocol):
    """A world whose state can be written down, and taken up again in another process.

    What of the state is kept, the spec's docs say.
    """

    async def snapshot(self) -> bytes:
        """Return the state as it is now; change nothing.

        Raises:
            LimitReached: Something is too large to be kept; the text names it. The world goes
                on, and cannot come back to this moment.
            InvalidEnvironment: The author keeps something in it that cannot be written down.
                The same holds.
            SnapshotFailed: It could not be taken now. The same holds.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.

        If this call is cancelled, nothing has changed.
        """
        ...

    async def restore(self, data: bytes) -> None:
        """Take up what `snapshot` returned, here or in a process that has ended.

        Called on a world that was opened with the same context and seed and in which the
        template's setup ran as the first time. Objects that the template got from the world
        stay the world's: what they hold changes in place.

        Args:
            data: The whole of what `snapshot` returned.

        Raises:
            EnvironmentFailed: It cannot be taken up; the text says why. Only `close` may be
                called from now on.

        If this call is cancelled, only `close` may be called from now on.
        """
        ...


@runtime_checkable
class RestorableInPart(Restorable, Protocol):
    """A world that names what its snapshots do not have, and what it was restored without."""

    @property
    def left_out(self) -> Sequence[str]:
        """What the last `snapshot` or `restore` was without, each thing with a reason.

        Only what may be missing: where it may not, there is no snapshot.
        """
        ...


@runtime_checkable
class SetupShared(Restorable, Protocol):
    """A world that another one's setup can be restored into, freshly opened, by `restore`.

    Its spec says by `shares_setup` for which setup that is the same as running it.
    """

    async def snapshot_setup(self) -> bytes:
        """Return the state after setup, whole; change nothing.

        Raises:
            SnapshotFailed: Setup has left what cannot be kept; the text names it.
            LimitReached: It is too large.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.

        If this call is cancelled, nothing has changed.
        """
        ...


@runtime_checkable
class Mortal(World, Protocol):
    """A world that can die while nobody calls it, as one in another process can.

    A session then knows that a call found it dead, and did not kill it.
    """

    @property
    def died(self) -> str | None:
        """Why only `close` may be called from now on; None while the world can be used."""
        ...


@runtime_checkable
class Elsewhere(World, Protocol):
    """A world that lives outside of this process, and goes on there when the process ends.

    Its setup is not run again when its session is resumed: `Opening.handle` is what it
    is found by.
    """

    async def handle(self) -> bytes:
        """Return what another process finds it by. Asked for once, at the prompt."""
        ...


@runtime_checkable
class Stoppable(World, Protocol):
    """A world in which what an agent started goes on by itself, and can be stopped for grading."""

    async def stop_agent(self) -> None:
        """Stop what goes on, when the answer is there. Files and the like stay as they are.

        Raises:
            ActionFailed: It cannot be stopped.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.
        """
        ...


@runtime_checkable
class Addressed(World, Protocol):
    """A world that a person can open in a browser of their own, or that shows an address."""

    async def urls(self) -> Mapping[str, Any]:
        """Where it is: `url`, the address that it shows, and `live_url`, where it is watched."""
        ...


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
    """

    root: Path
    places: tuple[Path, ...]
    namespaces: Callable[[], Sequence[int]] | None = None
    owner: int | None = None
    follow_links: bool | None = None
    stand_in: str
    calls: Mapping[str, Callable[..., Awaitable[Any]]] = field(repr=False)


@runtime_checkable
class Placed(World, Protocol):
    """A world that was opened for a template with a process of its own."""

    @property
    def place(self) -> Place | None:
        """Where that process is; None where the template runs in the server's."""
        ...


@runtime_checkable
class Screened(World, Protocol):
    """A world that knows how large its screen is before a picture of it is taken."""

    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of its next picture, in pixels; None where that is not known."""
        ...


@runtime_checkable
class Explained(World, Protocol):
    """A world that can tell its rules before the agent looks at it."""

    def explain(self, prompt: str = "") -> str:
        """The rules and what actions mean; looks need not tell them after this.

        Args:
            prompt: What the agent was told already, and needs no second time.
        """
        ...


@runtime_checkable
class Measured(Screened, Protocol):
    """A world that can find out how large its screen is before the agent looks at it."""

    async def measure_screen(self) -> None:
        """Find out what `screen_size` says then; what an agent can see and do stays the same.

        Raises:
            HudMcpError: It cannot be found out now. The world is as it was.
        """
        ...


current_world: ContextVar[World | None] = ContextVar("current_world", default=None)
"""The world of the session whose template or function runs; None outside of sessions.

For graders that are called without one, as HUD's are."""
