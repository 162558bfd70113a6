"""The contexts in reserve: as many as sessions use up, so that opening one costs little.

A new context with its page takes 64 to 146 ms. This module prepares the next ones, preferably
while nobody waits. It owns them until a session takes them or they are closed.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.slot import Slot, SlotOptions

__all__ = ["Owner", "Reserve"]

logger = logging.getLogger(__name__)

CLOSE_BOUND_S = 5.0

QUIET_S = 0.05
"""The quiet time of all sessions before the next context is prepared."""

PATIENCE_S = 0.5
"""The longest wait for that quiet time. A busy server needs contexts most."""

WINDOW_S = 10.0
"""The time for which taken contexts are counted. As many are kept ready."""

MOST_READY = 8
"""The most ready contexts at once, of all kinds. Each holds a process of about 30 MB."""

AT_ONCE = 2
"""The number of contexts that are prepared at once. More take turns in the browser's thread."""

GIVE_BACK_S = 30.0
"""The time without a session after which all ready contexts but one are closed."""

MOST_KEPT = 16
"""The most contexts of ended sessions that wait for their owners' next sessions."""

COMING_S = 1.0
"""The longest wait of a session for the context that its owner's last one is leaving."""

Owner = tuple[object, str | None]
"""The owner of an ended session's context: the browser's declaration, and the principal."""


@dataclass
class _Kind:
    """The ready contexts of one kind, and the times at which sessions took some."""

    ready: deque[Slot] = field(default_factory=deque[Slot])
    taken: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_READY))

    def wanted(self, now: float, *, is_last: bool) -> int:
        """Return the wanted number: as many as were taken lately, if that is a habit."""
        lately = sum(moment > now - WINDOW_S for moment in self.taken)
        return max(1, lately) if is_last or lately > 1 else 0


@dataclass(frozen=True, eq=False)
class _Coming:
    """A context that an ended session leaves. It is being cleared, and may be kept then."""

    owner: Owner
    options: SlotOptions
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Reserve:
    """The slots that are ready, and the one task that prepares more of them.

    Args:
        prepare: The function that opens a slot.
    """

    def __init__(self, prepare: Callable[[SlotOptions], Awaitable[Slot]]) -> None:
        self._prepare = prepare
        self._kinds: dict[SlotOptions, _Kind] = {}  # the one that was taken last is the last
        self._kept: deque[tuple[Owner, Slot]] = deque()
        self._coming: list[_Coming] = []
        self._busy = 0
        self._idle_since = 0.0
        self._task: asyncio.Task[None] | None = None
        self._give_back: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def ready(self) -> list[Slot]:
        """The slots that sessions can take at once."""
        return [slot for kind in self._kinds.values() for slot in kind.ready]

    @contextmanager
    def busy(self) -> Generator[None]:
        """Make preparing wait a while: a session is waiting for the browser in this block."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._idle_since = anyio.current_time()

    async def take(self, options: SlotOptions, owner: Owner | None = None) -> Slot:
        """Return a slot, at once if one is ready, and begin to prepare the next ones.

        Args:
            options: The options of its context.
            owner: The owner of the session, who may get the context of an ended one of theirs.
        """
        if owner is not None and (kept := await self._take_kept(options, owner)) is not None:
            return kept
        kind = self._kinds.pop(options, None) or _Kind()
        self._kinds[options] = kind
        if owner is None:  # else its context comes back
            kind.taken.append(anyio.current_time())
        with self.busy():
            slot: Slot | None = None
            while slot is None and kind.ready:
                slot = kind.ready.popleft()
                if not slot.usable:
                    await slot.close()
                    slot = None
            slot = slot or await self._prepare(options)
        self._begin()
        return slot

    @contextmanager
    def clearing(self, options: SlotOptions, owner: Owner) -> Generator[None]:
        """Announce a context that is being cleared in this block.

        To wait for it is quicker than to open a new one.

        Args:
            options: The options of the context.
            owner: The owner who may get it.
        """
        coming = _Coming(owner, options)
        self._coming.append(coming)
        try:
            yield
        finally:
            if coming in self._coming:
                self._coming.remove(coming)
            coming.done.set()

    async def keep(self, slot: Slot, owner: Owner) -> None:
        """Keep a cleared slot of an ended session for the next session of its owner."""
        if self._closed or not slot.usable:
            await slot.close()
            return
        self._kept.append((owner, slot))
        self._wait_idle()
        while len(self._kept) > MOST_KEPT:
            await self._kept.popleft()[1].close()

    async def _take_kept(self, options: SlotOptions, owner: Owner) -> Slot | None:
        wanted = (owner, options)
        if not any((whose, slot.options) == wanted for whose, slot in self._kept):
            await self._wait_for_one(options, owner)
        for entry in reversed(self._kept):
            if entry[0] == owner and entry[1].options == options:
                self._kept.remove(entry)
                if entry[1].usable:
                    return entry[1]
                await entry[1].close()
                return None
        return None

    async def _wait_for_one(self, options: SlotOptions, owner: Owner) -> None:
        """Wait for a context that is being cleared, if nobody else waits for it."""
        found = [each for each in self._coming if (each.owner, each.options) == (owner, options)]
        for coming in found[:1]:
            self._coming.remove(coming)
            with anyio.move_on_after(COMING_S):
                await coming.done.wait()

    async def until_filled(self) -> None:
        """Wait until nothing is being prepared."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop preparing, and close the ready slots. It may be called twice."""
        self._closed = True
        if self._give_back is not None:
            self._give_back.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CLOSE_BOUND_S)
        ready = [*self.ready, *(slot for _owner, slot in self._kept)]
        self._kinds.clear()
        self._kept.clear()
        for slot in ready:
            await slot.close()

    def _begin(self) -> None:
        if not self._closed:
            self._wait_idle()
            self._work(self._refill)

    def _wait_idle(self) -> None:
        if self._give_back is not None:
            self._give_back.cancel()
        loop = asyncio.get_running_loop()
        self._give_back = loop.call_later(GIVE_BACK_S, self._when_idle)

    def _when_idle(self) -> None:
        """Close the ready slots, or wait again while contexts are being prepared."""
        if self._task is not None and not self._task.done():
            self._wait_idle()
        else:
            self._work(self._release_idle)

    def _work(self, on: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin a task, unless one is running already."""
        if self._task is None or self._task.done():
            # A clean context: the caller's cancel scopes and variables are not this task's.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(on(), context=contextvars.Context())

    async def _refill(self) -> None:
        while lacking := self._lacking():
            await self._until_quiet()
            if not all(await asyncio.gather(*(self._add(each) for each in lacking[:AT_ONCE]))):
                return  # the next session opens its own
            await self._release(MOST_READY)

    def _lacking(self) -> list[SlotOptions]:
        """Return a kind for each slot to prepare. The kind that was taken last comes first."""
        now, room, found = anyio.current_time(), MOST_READY, list[SlotOptions]()
        for options, kind in reversed(list(self._kinds.items())):
            wanted = min(room, kind.wanted(now, is_last=next(reversed(self._kinds)) == options))
            room -= wanted
            found += [options] * (wanted - len(kind.ready))
            if not wanted and not kind.ready:
                del self._kinds[options]
        return found

    async def _add(self, options: SlotOptions) -> bool:
        try:
            slot = await self._prepare(options)
        except (libraries.PlaywrightError, OSError, TimeoutError) as exc:
            logger.info("No context in reserve: %s", exc)
            return False
        self._kinds.setdefault(options, _Kind()).ready.append(slot)
        return True

    async def _release_idle(self) -> None:
        await self._release(1)
        while self._kept:
            await self._kept.popleft()[1].close()

    async def _release(self, most: int) -> None:
        """Close the ready slots beyond a number, first those of the kind taken longest ago."""
        while len(self.ready) > most:
            kind = next(kind for kind in self._kinds.values() if kind.ready)
            await kind.ready.popleft().close()

    async def _until_quiet(self) -> None:
        with anyio.move_on_after(PATIENCE_S):
            while True:
                idle_s = 0.0 if self._busy else anyio.current_time() - self._idle_since
                if idle_s >= QUIET_S:
                    return
                await anyio.sleep(max(0.02, QUIET_S - idle_s))
