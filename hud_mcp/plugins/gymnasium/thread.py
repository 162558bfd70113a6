"""The thread of one session, its episode and its pictures; quick steps need no thread."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import gymnasium


@dataclass
class Episode:
    """The events since the last reset; `seen` is the last observation, unchanged."""

    seen: Any
    info: dict[str, Any]
    rewards: list[float] = field(default_factory=list[float])
    terminated: bool = False
    truncated: bool = False
    over: bool = False

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return: the sum of the rewards."""
        return sum(self.rewards)


logger = logging.getLogger(__name__)

drawing = threading.RLock()
"""The lock of an environment that draws or closes. Pygame has one state for the whole process,
and Gymnasium's environments end it when one of them closes."""


class Frames:
    """The frames of one environment; `fault` says why nothing can be drawn any more."""

    def __init__(self, env: "gymnasium.Env[Any, Any]") -> None:
        self._env = env
        self.size: tuple[int, int] | None = None
        self.fault: str | None = None

    def draw(self) -> Any:
        """Draw a frame, or return None; once drawing fails, it is not tried again."""
        if self.fault is not None:
            return None
        try:
            with drawing:
                frame: Any = self._env.render()
        except Exception as exc:  # noqa: BLE001  # steps need no display and no library that draws
            self.fault = f"Drawing raised {type(exc).__name__}: {exc}"
            logger.warning("There are no pictures of this environment: %s", self.fault)
            return None
        if frame is not None:
            height_px, width_px, *_ = frame.shape
            self.size = (width_px, height_px)
        return frame


def close_env(env: "gymnasium.Env[Any, Any]") -> None:
    """Close an environment, while no other one draws."""
    with drawing:
        env.close()


T = TypeVar("T")


_AT_ONCE_S = 0.002
"""The longest expected time of one call's steps on the event loop, where others wait."""
_ASSUMED_S = 2e-5
"""The seconds of a step before any was measured: those of classic control."""
_WEIGHT = 1 / 8
"""The weight of the newest measurement."""
_LONG_S = 0.005
"""The seconds above which a call, or the machine, has held others up."""
_MOST_S = 0.05
"""The seconds, in all, for which a world may hold others up beyond that."""


class OwnThread:
    """A thread that does one piece of work after the other.

    It does not keep the process alive: work that never ends cannot be ended.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._asked = self._finished = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether all requested work is done, including work that nobody waits for any more."""
        return self._asked == self._finished

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do work after what waits. Cancelling the future leaves work that has begun."""
        return asyncio.wrap_future(self._put(work))

    def leave(self, work: Callable[[], Any]) -> "Future[Any]":
        """Do a last piece of work after those that wait, then end; do not wait for it."""
        last = self._put(work)
        self._queue.put(None)
        return last

    def _put(self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._asked += 1
        # In the caller's context: what the environment prints belongs to the session's log.
        context = contextvars.copy_context()
        self._queue.put((partial(context.run, work), future))
        return future

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            if not future.set_running_or_notify_cancel():
                self._finished += 1
                continue
            try:
                result = work()
            except BaseException as exc:  # noqa: BLE001  # raised where the work was asked for
                self._finished += 1
                future.set_exception(exc)
            else:
                self._finished += 1  # before the waiting caller goes on
                future.set_result(result)
            del item, work, future  # what they hold goes now, and not with the next piece


class Pace:
    """A measure of steps: those that held others up for too long go to the thread for good."""

    def __init__(self, thread: OwnThread, *, is_quick: bool) -> None:
        self._thread = thread
        self._is_quick = is_quick
        self._each_s = _ASSUMED_S
        self._late_s = 0.0

    def allows(self, count: int) -> bool:
        """Whether so many steps may be taken on the event loop now."""
        is_short = self._is_quick and count * self._each_s <= _AT_ONCE_S
        return is_short and self._thread.is_idle

    def note(self, count: int, took_s: float, *, on_loop: bool) -> None:
        """Note steps that were taken; on the loop, others waited for them."""
        self._each_s += _WEIGHT * (took_s / count - self._each_s)
        if on_loop and took_s > _LONG_S:
            self._late_s += took_s - _LONG_S
            self._is_quick = self._is_quick and self._late_s <= _MOST_S


_SMALL = (
    "gymnasium.envs.classic_control.",
    "gymnasium.envs.toy_text.",
    "hud_mcp.plugins.gymnasium.carl.classic",
)
"""The modules of environments whose step is a few lines of arithmetic."""


def is_small(env: Any) -> bool:
    """Whether a step is some arithmetic of Gymnasium's, in wrappers that are its own or ours."""
    while (inner := getattr(env, "env", None)) is not None:
        if not type(env).__module__.startswith(
            ("gymnasium.wrappers.", "hud_mcp.plugins.gymnasium.carl.")
        ):
            return False
        env = inner
    return type(env).__module__.startswith(_SMALL)
