"""One tool call: its arguments and metadata, its session, and its observation."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from hud_mcp.environment.tool import Exchange
from hud_mcp.errors import HudMcpError, InvalidTask, SessionEnded
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.receipts import ended_text, next_step
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat, Look

__all__ = ["PLAIN", "VALUES", "Call", "Progress", "ask_session", "one_of"]

logger = logging.getLogger(__name__)

VALUES = "hud-mcp/values"
"""In the `_meta` of a step: the reply has numbers beside its text and picture, and not in them."""
PLAIN = "hud-mcp/plain"
"""In the `_meta` of a step: the reply's text is the observation alone. Everything else, such as the
reason of a refusal, stands in `_meta`.
"""
_HEARTBEAT_S = 5.0
"""The time between signs of life. Hosts give up a silent call after about a minute."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports the progress of a call, its whole, and its present action."""
ChoiceT = TypeVar("ChoiceT", bound=str)


@dataclass
class Call:
    """One tool call.

    Attributes:
        sessions: The registry.
        caller: The caller.
        arguments: The arguments; after reading, without `null` and `""` of optional ones.
        progress: Reports a sign of life; None if nobody waits for one.
        image: The format of pictures, unless the call names one.
        meta: The metadata beside the arguments, for programs.
        exchange: The channel to the caller, for tools of other servers and a person as user.
    """

    sessions: Sessions
    caller: Caller
    arguments: Mapping[str, Any]
    progress: Progress | None
    image: ImageFormat
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    exchange: Exchange = field(default_factory=Exchange)

    @property
    def then(self) -> str:
        """The caller's next step after the end of a session."""
        return next_step(self.caller)

    async def session(self) -> Session:
        """Return the session of the call."""
        found = await self.find()
        if isinstance(found, Receipt):
            raise SessionEnded(ended_text(found))
        return found

    async def find(self) -> Session | Receipt:
        """Return the session of the call, or its receipt if it ended in another process.

        The resumption of another process's session can take long, so progress is reported.

        Raises:
            SessionResuming: The resumption takes longer than a reply may wait.
            SessionNotFound, SessionBusy, SessionEnded: As for `Sessions.find`.
        """
        session_id = self.arguments.get("session")
        here = self.sessions.here(session_id, self.caller)
        if here is not None:
            return here
        wait_s = self.sessions.limits.reply_s
        with self.heartbeat("bringing the session back"):
            return await self.sessions.find(session_id, self.caller, wait_s=wait_s)

    def look(self, *, text: bool = False, image: ImageFormat | None = None, **more: Any) -> Look:
        """Return the wanted observation of this call, within the limits."""
        most_chars = self.sessions.limits.observation_chars
        return Look(text=text, image=image, max_text_chars=most_chars, **more)

    def heartbeat(self, message: str) -> AbstractContextManager[None]:
        """Report progress every few seconds while the body of a `with` runs."""
        return nullcontext() if self.progress is None else self._heard(message, self.progress)

    @contextmanager
    def _heard(self, message: str, progress: Progress) -> Generator[None]:
        """Report progress in a task, begun only for the first sign of life."""
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


async def ask_session(
    sessions: Sessions, named: str | None, caller: Caller, method: str, **params: Any
) -> Any:
    """Ask a caller's session for something of its world's own; a refusal is an MCPError."""
    call = Call(sessions, caller, {"session": named}, None, DEFAULT_FORMAT)
    try:
        return await (await call.session()).ask(method, params)
    except HudMcpError as exc:
        raise MCPError(code=INVALID_PARAMS, message=str(exc)) from None


def one_of(
    given: Mapping[str, Any], name: str, allowed: tuple[ChoiceT, ...], default: ChoiceT
) -> ChoiceT:
    """Return an argument that has a few values.

    Raises:
        InvalidTask: The argument has another value; the text names the possible ones.
    """
    value = given.get(name, default)
    if value not in allowed:
        raise InvalidTask(f"{name}: {value!r} is not one of {', '.join(allowed)}.")
    return value
