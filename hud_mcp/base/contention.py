"""Seconds in which this process and its browsers waited for a processor or a lock.

On an overloaded machine an agent's time limit runs out while nothing of its own moves. So these
delays are added to the limits, and recorded. Linux counts them for each thread
(`/proc/PID/schedstat`, see Documentation/scheduler/sched-stats.rst). On every system, a late timer
shows waits for locks.
"""

import asyncio
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

MOST = 4.0
"""The most times that a limit is stretched: a load may be the agent's own."""

_TICK_S = 0.25
_LATE_S = 0.05
"""The least lateness of a timer that counts: a busy loop is always a little late."""
_RECENT_S = 3.0
"""The seconds behind `patience`."""
_SOON_S = 0.01
_LOOK_S = 2.0
"""The time between two looks for new browser processes."""
_BROWSERS = ("chrom", "headless_shell", "node")
"""The beginnings of the names of processes that work for this one, and not for an agent."""
_PROC = Path("/proc")
_NANO = 1e-9


class Pauses:
    """The time in which something could do nothing, because others let it wait."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ended_s, self._open = 0.0, 0
        self._since_s: float | None = None

    @property
    def seconds(self) -> float:
        """The pauses so far, with the running one."""
        going_s = 0.0 if self._since_s is None else self._now() - self._since_s
        return self._ended_s + going_s

    @contextmanager
    def pause(self) -> Generator[None]:
        """Count the body as a pause. Several at once, or in one another, are one until the last."""
        if not self._open:
            self._since_s = self._now()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._ended_s, self._since_s = self.seconds, None


class Contention:
    """A measure of the machine's delays, from `start` to `stop` or to the end of a rest.

    Attributes:
        waited_s: Seconds of waiting so far, never more than have passed.
    """

    def __init__(self) -> None:
        self.waited_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._last_s = 0.0
        self._looked_s = 0.0
        self._delays: dict[int, float] = {}
        self._share = 0.0
        self._is_resting = False

    def patience(self) -> float:
        """The factor of time for work now, by the share of recent waiting; `MOST` at most."""
        return min(MOST, 1 / (1 - min(self._share, 1 - 1 / MOST)))

    def start(self) -> None:
        """Begin to measure, on the running event loop. Starting again is not an error."""
        self._is_resting = False
        loop = asyncio.get_running_loop()
        if self._timer is not None and self._loop is loop:
            return
        self._loop = loop
        self._last_s = self._loop.time()
        self._looked_s = 0.0
        self._delays = {}
        self._read_delays(self._last_s)
        self._wait()

    def stop(self) -> None:
        """Stop measuring. Stopping again is not an error."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._share = None, 0.0

    def rest(self) -> None:
        """Stop with the next tick, unless it is started before.

        A stop and a start cost more than a tick, and sessions often follow each other.
        """
        self._is_resting = True

    def countdown(self, limit_s: float, pauses: Pauses | None = None) -> Callable[[], float]:
        """Return the seconds left of a limit, without waits and pauses; `MOST` times it at most."""
        began_s, waited_s = time.monotonic(), self.waited_s
        before_s = 0.0 if pauses is None else pauses.seconds

        def left() -> float:
            self._sample()
            paused_s = 0.0 if pauses is None else pauses.seconds - before_s
            passed_s = time.monotonic() - began_s - paused_s
            used_s = passed_s - (self.waited_s - waited_s)
            left_s = min(limit_s - used_s, MOST * limit_s - passed_s)
            return max(left_s, _SOON_S) if left_s > 0 else 0.0

        return left

    @contextmanager
    def bound(self, limit_s: float, pauses: Pauses | None = None) -> Generator[anyio.CancelScope]:
        """Cancel the body after its limit and the waits of this process; `MOST` times at most.

        Pauses do not count either, however long. The scope's `cancelled_caught` is true if the
        limit was reached.
        """
        loop = asyncio.get_running_loop()
        scope = anyio.CancelScope()
        left = self.countdown(limit_s, pauses)

        def look() -> None:
            nonlocal timer
            left_s = left()
            if left_s > 0:
                timer = loop.call_later(left_s, look)
            else:
                scope.cancel()

        timer = loop.call_later(limit_s, look)
        try:
            with scope:
                yield scope
        finally:
            timer.cancel()

    def _wait(self) -> None:
        if self._loop is not None:
            self._due_s = self._loop.time() + _TICK_S
            self._timer = self._loop.call_at(self._due_s, self._tick)

    def _tick(self) -> None:
        if self._is_resting:
            self.stop()
            return
        self._sample()
        self._wait()

    def _sample(self) -> None:
        """Add the waits since the last sample."""
        if self._timer is None or self._loop is None:
            return
        now_s = self._loop.time()
        late_s = now_s - max(self._due_s, self._last_s)
        lag_s = late_s if late_s > _LATE_S else 0.0
        waited_s = max(lag_s, self._read_delays(now_s))
        passed_s = max(0.0, now_s - self._last_s)
        self.waited_s += min(waited_s, passed_s)
        if passed_s:
            weight = min(1.0, passed_s / _RECENT_S)
            self._share += weight * (min(1.0, waited_s / passed_s) - self._share)
        self._last_s = now_s

    def _read_delays(self, now_s: float) -> float:
        """Return the longest wait of a process for a processor since the last time."""
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            known = self._delays
            self._delays = {pid: known.get(pid, -1.0) for pid in (os.getpid(), *_browsers())}
        most = 0.0
        for pid, before in list(self._delays.items()):
            delay = _delay(pid)
            if delay is None:
                del self._delays[pid]
                continue
            if before >= 0:
                most = max(most, delay - before)
            self._delays[pid] = delay
        return most


def _delay(pid: int) -> float | None:
    """Return the wait of a process's first thread for a processor; None if unknown."""
    try:
        fields = (_PROC / str(pid) / "schedstat").read_bytes().split()
        return int(fields[1]) * _NANO
    except (OSError, IndexError, ValueError):
        return None


def _browsers() -> list[int]:
    """The browser processes of this process, and their drivers."""
    found: list[int] = []
    unseen = _children(os.getpid())
    while unseen:
        pid = unseen.pop()
        try:
            name = (_PROC / str(pid) / "comm").read_text(errors="replace")
        except OSError:
            continue
        if name.startswith(_BROWSERS):
            found.append(pid)
            unseen += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in (_PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []
