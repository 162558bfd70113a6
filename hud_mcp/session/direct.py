"""What is done in a session's world by other ways than its calls, as over ssh.

A replay cannot do it again, so it is durable that the record is behind the world before
anything is done, and a snapshot that is taken once nothing goes on makes that good. A server
that finds a record still behind does not grade: the agent's work would be missing.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Protocol

import anyio

from hud_mcp.errors import EnvironmentFailed, HudMcpError, StoreFailed
from hud_mcp.observation import Observation
from hud_mcp.record.trajectory import utc_now
from hud_mcp.session.journal import Draft, Recorder
from hud_mcp.session.live_world import HeldWorld
from hud_mcp.world import World

__all__ = ["Visit", "Visits"]

logger = logging.getLogger(__name__)

_QUICK_S = 0.5
"""A visit's end waits for its snapshot where the last one took no longer than this."""
_QUIET = 2.0
"""Else it is taken when nothing was done for so many times as long as the last one took."""
_WORDS_CHARS = 200


class Enqueue(Protocol):
    """How work waits for its turn among a session's calls."""

    async def __call__(
        self, run: Callable[[], Awaitable[None]], limit_s: float, *, detached: bool = False
    ) -> None: ...


class Visit:
    """One use of a world, such as a command over ssh.

    Args:
        protocol: What it is used over.
        what: What is done, for the record.
        find_world: Returns the world, while it may be used.
    """

    def __init__(
        self, protocol: str, what: Mapping[str, Any], find_world: Callable[[], World]
    ) -> None:
        self.protocol = protocol
        self.draft = Draft("direct", [{"tool": protocol, "args": dict(what)}])
        self._find_world = find_world

    @property
    def world(self) -> World:
        """The world.

        Raises:
            SessionEnded, AlreadyAnswered: It may not be used any more.
        """
        return self._find_world()

    def tell(self, text: str, **info: Any) -> None:
        """Say what came of it, for the record."""
        self.draft.observation = Observation(text=text)
        self.draft.info = info


class Visits:
    """The visits to one session's world.

    Args:
        recorder: Writes them down.
        world: The world.
        check: Refuses visits where there are none to be now.
        enqueue: Has something done in the order of the session's calls.
        log: Takes a line for the session's log.
        limit_s: How long a snapshot may take.
    """

    def __init__(
        self,
        recorder: Recorder,
        world: HeldWorld,
        *,
        check: Callable[[], None],
        enqueue: Enqueue,
        log: Callable[[str], None],
        limit_s: float,
    ) -> None:
        self._recorder = recorder
        self._world = world
        self._check = check
        self._enqueue = enqueue
        self._log = log
        self._limit_s = limit_s
        self._open: set[Visit] = set()
        self._begun = 0
        self._snapshot_s = 0.0
        self._later: asyncio.Task[None] | None = None
        self._counts: Counter[str] = Counter()
        self._last: datetime | None = None
        self._closed = False

    @property
    def under_way(self) -> int:
        """How many go on now."""
        return len(self._open)

    @asynccontextmanager
    async def enter(self, protocol: str, what: Mapping[str, Any]) -> AsyncGenerator[Visit]:
        """Use the world while the body runs; its end is durable when this returns.

        Args:
            protocol: What it is used over.
            what: What is done, for the record.

        Raises:
            SessionEnded, AlreadyAnswered: The world may not be used. Nothing was done.
            StoreFailed: It cannot be recorded; the text says whether anything was done.

        If the body is cancelled, what it had done is recorded.
        """
        visit = Visit(protocol, what, self._find_world)
        self._find_world()
        self._open.add(visit)
        self._begun += 1
        try:
            await self._begin(visit)
            yield visit
        except HudMcpError as exc:
            visit.draft.error = str(exc)
            raise
        except BaseException:
            visit.draft.interrupted = True
            raise
        finally:
            self._open.discard(visit)
            if visit.draft.performed:
                with anyio.CancelScope(shield=True):
                    await self._end(visit)

    async def catch_up(self) -> None:
        """Take the snapshot that the record is behind by, if nothing goes on."""
        if self._recorder.is_behind and not self._open:
            with suppress(HudMcpError):
                await self._enqueue(self._keep_up, 2 * self._limit_s)

    def _find_world(self) -> World:
        self._check()
        return self._world.live

    def close(self) -> None:
        """Say in the log what was done, and take no snapshot any more."""
        if self._later is not None:
            self._later.cancel()
        for visit in self._open:
            self._log(f"{_words(visit)} was under way when the session ended")
        self._closed = True
        for protocol, count in self._counts.items():
            times = "once" if count == 1 else f"{count} times"
            last = f", the last time until {self._last:%H:%M:%S} UTC" if self._last else ""
            self._log(f"its agent used its world directly over {protocol}, {times}{last}")

    async def _begin(self, visit: Visit) -> None:
        self._world.note_visit()
        if self._later is not None:
            self._later.cancel()
        if not self._recorder.is_behind:
            await self._enqueue(lambda: self._fall_behind(visit), self._limit_s, detached=True)
        visit.draft.performed = 1

    async def _fall_behind(self, visit: Visit) -> None:
        self._find_world()
        if self._recorder.is_behind:  # another one that began at the same time has seen to it
            return
        if not self._counts:
            self._log(f"its agent begins to use its world directly, over {visit.protocol}")
        await self._recorder.fall_behind()

    async def _end(self, visit: Visit) -> None:
        """Record a visit, with a snapshot where one can be had at once."""
        if self._closed:
            return
        self._counts[visit.protocol] += 1
        self._last = utc_now()
        try:
            self._find_world()
            await self._enqueue(lambda: self._record(visit), 2 * self._limit_s, detached=True)
        except (StoreFailed, EnvironmentFailed):
            raise
        except HudMcpError:  # the session was answered or has ended meanwhile
            self._log(f"{_words(visit)} ended after the answer")
            return
        if self._recorder.is_behind and not self._open and self._snapshot_s > _QUICK_S:
            self._later = asyncio.get_running_loop().create_task(self._keep_up_later())

    async def _record(self, visit: Visit) -> None:
        self._find_world()
        try:
            if self._snapshot_s <= _QUICK_S:
                visit.draft.snapshot = await self.take()
        except BaseException:
            await self._recorder.keep(visit.draft)
            raise
        await self._recorder.add(visit.draft)

    async def take(self) -> bytes | None:
        """A snapshot of the world that no visit disturbs; None where there is none such."""
        if self._open:
            return None
        begun, began_s = self._begun, time.monotonic()
        data: bytes | None = None
        with anyio.move_on_after(self._limit_s):
            data = await self._world.snapshot(self._recorder.count)
        self._snapshot_s = time.monotonic() - began_s
        return data if begun == self._begun else None

    async def _keep_up_later(self) -> None:
        await anyio.sleep(_QUIET * self._snapshot_s)
        await self.catch_up()

    async def _keep_up(self) -> None:
        self._find_world()
        data = await self.take()
        if data is not None:
            await self._recorder.catch_up(data)


def _words(visit: Visit) -> str:
    args = visit.draft.actions[0]["args"]
    said = str(args.get("command") or ", ".join(args))
    short = said if len(said) <= _WORDS_CHARS else f"{said[: _WORDS_CHARS - 1]}…"
    return f"over {visit.protocol}: {short}"
