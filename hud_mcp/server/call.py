"""One tool call: what came with it, the session that it means, and what is observed for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hud_mcp.errors import InvalidTask, SessionEnded
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.receipts import ended_text, next_step
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.observation import ImageFormat, Look

__all__ = ["PLAIN", "VALUES", "Call", "Progress", "one_of"]

logger = logging.getLogger(__name__)

VALUES = "hud-mcp/values"
"""In the `_meta` of a step: the reply has numbers beside it, and no text and picture of them."""
PLAIN = "hud-mcp/plain"
"""In the `_meta` of a step: the reply's text is the observation's alone. What else is told, such as
why an action was refused, stands in `_meta`."""
_HEARTBEAT_S = 5.0
"""Hosts give up on a silent call after a minute or so, and wait on after a sign of life."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes how far a call is, of how much, and what it does."""
ChoiceT = TypeVar("ChoiceT", bound=str)


@dataclass
class Call:
    """One tool call.

    Attributes:
        sessions: The registry.
        caller: Who calls.
        arguments: Those that were given; once they are read, without `null` and `""` where
            the argument is optional.
        progress: Reports a sign of life; None where nobody waits for one.
        image: The format of pictures, unless the call names one.
        meta: What came beside the arguments, for programs.
    """

    sessions: Sessions
    caller: Caller
    arguments: Mapping[str, Any]
    progress: Progress | None
    image: ImageFormat
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def then(self) -> str:
        """What the caller can do after the end of a session."""
        return next_step(self.caller)

    async def session(self) -> Session:
        """The session that the call means."""
        found = await self.find()
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    async def find(self) -> Session | Receipt:
        """The session that the call means, or its receipt where it ended in another process.

        Bringing one back that another process began can take long: that is reported.

        Raises:
            SessionResuming: It takes longer than a reply may wait.
            SessionNotFound, SessionBusy, SessionEnded: As for `Sessions.find`.
        """
        session_id = self.arguments.get("session")
        here = self.sessions.here(session_id, self.caller)
        if here is not None:
            return here
        wait_s = self.sessions.limits.reply_s
        with self.heartbeat("bringing the session back"):
            return await self.sessions.find(session_id, self.caller, wait_s=wait_s)

    def look(self, *, text: bool = False, image: ImageFormat | None = None, **more: bool) -> Look:
        """What to observe for this call, within the limits."""
        most_chars = self.sessions.limits.observation_chars
        return Look(text=text, image=image, max_text_chars=most_chars, **more)

    def heartbeat(self, message: str) -> AbstractContextManager[None]:
        """Report progress every few seconds while the body of a `with` runs."""
        return nullcontext() if self.progress is None else self._heard(message, self.progress)

    @contextmanager
    def _heard(self, message: str, progress: Progress) -> Generator[None]:
        """Report it by a task that begins with the first sign of life: most calls end before it."""
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        timer = loop.call_later(
            _HEARTBEAT_S, lambda: tasks.append(loop.create_task(_beat(message, progress)))
        )
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:
                task.cancel()


async def _beat(message: str, progress: Progress) -> None:
    seconds = 0.0
    while True:
        seconds += _HEARTBEAT_S
        try:
            await progress(seconds, None, f"{message} ({seconds:g} s)")
        except Exception as exc:  # noqa: BLE001  # the call goes on; its reply will say more
            logger.warning("no sign of life could be sent: %s", exc)
            return
        await asyncio.sleep(_HEARTBEAT_S)


def one_of(
    given: Mapping[str, Any], name: str, allowed: tuple[ChoiceT, ...], default: ChoiceT
) -> ChoiceT:
    """Return an argument that has a few values.

    Raises:
        InvalidTask: It is another one; the text names them.
    """
    value = given.get(name, default)
    if value not in allowed:
        raise InvalidTask(f"{name}: {value!r} is not one of {', '.join(allowed)}.")
    return value
