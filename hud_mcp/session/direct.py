"""Uses of a session's world beside its calls, such as ssh, which no replay can repeat.

Before each, the record says durably that it is behind; a snapshot at rest makes that good. A server
that finds a record still behind does not grade: the agent's work would be missing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import anyio

from hud_mcp.environment.world import World
from hud_mcp.errors import EnvironmentFailed, HudMcpError, StoreFailed
from hud_mcp.record.values import utc_now
from hud_mcp.session.draft import Draft
from hud_mcp.session.events import Post, Rested
from hud_mcp.session.journal import Journal
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.values.observation import Observation

_QUICK_S = 0.5
"""The longest snapshot that the end of an access waits for, by the duration of the one before."""
_QUIET = 2.0
"""A longer snapshot waits until nothing was done for this many times its duration."""
_WORDS_CHARS = 200


class DirectlyUsed(Protocol):
    """A session with direct access to its world."""

    def direct_world(self) -> World:
        """Return the world while it may be used; else raise."""
        ...

    async def in_turn(
        self,
        run: Callable[[], Coroutine[Any, Any, None]],
        limit_s: float,
        *,
        detached: bool = False,
        refuses: bool = True,
    ) -> None:
        """Run something in the order of the session's calls."""
        ...


class Access:
    """One use of a world, such as a command over ssh."""

    def __init__(self, session: DirectlyUsed, protocol: str, what: Mapping[str, Any]) -> None:
        self.protocol = protocol
        self.draft = Draft("direct", [{"tool": protocol, "args": dict(what)}])
        self._session = session

    @property
    def world(self) -> World:
        """The world; SessionEnded or AlreadyAnswered if it may not be used any more."""
        return self._session.direct_world()

    def tell(self, text: str, **info: Any) -> None:
        """Note the outcome, for the record."""
        self.draft.observation = Observation(text=text)
        self.draft.info |= info

    @property
    def words(self) -> str:
        """Describe the access in a few words."""
        args = self.draft.actions[0]["args"]
        said = str(args.get("command") or ", ".join(args))
        short = said if len(said) <= _WORDS_CHARS else f"{said[: _WORDS_CHARS - 1]}…"
        return f"over {self.protocol}: {short}"


class DirectAccess:
    """Direct access to one life of a session's world: what goes on, and what the record lacks."""

    __slots__ = (
        "_begun", "_closed", "_counts", "_journal", "_last", "_life", "_log", "_open", "_post",
        "_snapshot_s", "_timer", "_world", "limit_s",
    )  # fmt: skip

    def __init__(
        self,
        journal: Journal,
        world: LiveWorld,
        *,
        post: Post,
        life: int,
        log: Callable[[str], None],
        limit_s: float,
    ) -> None:
        self._journal = journal
        self._world = world
        self._post = post
        self._life = life
        self._log = log
        self.limit_s = limit_s
        self._open: list[Access] = []
        self._begun = 0
        self._snapshot_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._counts: dict[str, int] | None = None
        self._last: datetime | None = None
        self._closed = False

    @property
    def under_way(self) -> int:
        """The number of accesses that go on now."""
        return len(self._open)

    @property
    def is_behind(self) -> bool:
        """Whether the record is behind the world, and no access goes on that keeps it so."""
        return self._journal.is_behind and not self._open

    def close(self) -> None:
        """Log the accesses, and take no more snapshots. Closing again is not an error."""
        if self._closed:
            return
        self._closed = True
        self._stop_timer()
        for each in self._open:
            self._log(f"{each.words} was under way when the session ended")
        for protocol, count in (self._counts or {}).items():
            times = "once" if count == 1 else f"{count} times"
            last = f", the last time until {self._last:%H:%M:%S} UTC" if self._last else ""
            self._log(f"its agent used its world directly over {protocol}, {times}{last}")

    def add(self, one: Access) -> None:
        """Count an access as under way."""
        self._open.append(one)
        self._begun += 1

    def remove(self, one: Access) -> None:
        """Count an access as over."""
        self._open.remove(one)

    async def begin(self, one: Access, session: DirectlyUsed) -> None:
        """Make durable, before anything is done, that the record falls behind."""
        self._world.note_direct()
        self._stop_timer()
        if not self._journal.is_behind:
            fall_behind = partial(self._fall_behind, one, session)
            await session.in_turn(fall_behind, self.limit_s, detached=True, refuses=False)
        one.draft.performed = 1

    async def end(self, one: Access, session: DirectlyUsed) -> None:
        """Record what was done, with a snapshot where one can be had at once."""
        if self._closed:
            return
        self._counts = counts = self._counts or {}
        counts[one.protocol] = counts.get(one.protocol, 0) + 1
        self._last = utc_now()
        try:
            session.direct_world()
            record = partial(self._record, one, session)
            await session.in_turn(record, 2 * self.limit_s, detached=True, refuses=False)
        except (StoreFailed, EnvironmentFailed):
            raise
        except HudMcpError:  # the session was answered or has ended meanwhile
            self._log(f"{one.words} ended after the answer")
            return
        if self.is_behind and self._snapshot_s > _QUICK_S:
            self._timer = asyncio.get_running_loop().call_later(
                _QUIET * self._snapshot_s, self._post, Rested(self._life)
            )

    async def take_snapshot(self) -> bytes | None:
        """Return a snapshot of the undisturbed world; None if it gives none."""
        if self._open or self._world.replays:
            return None
        begun, began_s = self._begun, time.monotonic()
        try:
            async with asyncio.timeout(self.limit_s):
                data = await self._world.snapshot(self._journal.count)
        except TimeoutError:
            data = None
        self._snapshot_s = time.monotonic() - began_s
        return data if begun == self._begun else None

    async def catch_up(self) -> None:
        """Take the snapshot that the record is behind by."""
        data = await self.take_snapshot()
        if data is not None:
            await self._journal.catch_up(data)

    async def try_to_catch_up(self) -> None:
        """Catch up in the background. If it fails, the next direct access takes the snapshot."""
        try:
            await self.catch_up()
        except EnvironmentFailed:
            raise
        except HudMcpError as exc:
            self._log(f"no snapshot: {exc}")

    async def _fall_behind(self, one: Access, session: DirectlyUsed) -> None:
        session.direct_world()
        if self._journal.is_behind:  # Another access that began at the same time has recorded it.
            return
        if not self._counts:
            self._log(f"its agent begins to use its world directly, over {one.protocol}")
        await self._journal.fall_behind()

    async def _record(self, one: Access, session: DirectlyUsed) -> None:
        session.direct_world()
        try:
            if (moves := self._world.moves) is not None:
                await moves.before(one.draft.events)
                await moves.after(one.draft.events, self._journal.count - self._journal.users + 1)
            if self._snapshot_s <= _QUICK_S:
                one.draft.snapshot = await self.take_snapshot()
        except BaseException:
            await self._journal.keep(one.draft)
            raise
        await self._journal.add(one.draft)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@asynccontextmanager
async def access(
    direct: DirectAccess, session: DirectlyUsed, protocol: str, what: Mapping[str, Any]
) -> AsyncGenerator[Access]:
    """Use a session's world while the body runs; its end is durable when this returns.

    If the body is cancelled, what it had done is recorded.

    Raises:
        SessionEnded, AlreadyAnswered: The world may not be used. Nothing was done.
        StoreFailed: It cannot be recorded; the text says whether anything was done.
    """
    one = Access(session, protocol, what)
    session.direct_world()
    direct.add(one)
    try:
        await direct.begin(one, session)
        yield one
    except HudMcpError as exc:
        one.draft.fail(str(exc), interrupted=False)
        raise
    except BaseException:
        one.draft.interrupted = True
        raise
    finally:
        direct.remove(one)
        if one.draft.performed:
            with anyio.CancelScope(shield=True):
                await direct.end(one, session)
