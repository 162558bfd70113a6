"""A person as a user: the caller's client asks them for each reply, by an elicitation of MCP."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from hud_mcp.base.text import clip
from hud_mcp.environment.conversation import UserTurn, current
from hud_mcp.environment.tool import Exchange
from hud_mcp.environment.user import User
from hud_mcp.errors import InvalidTask
from hud_mcp.values.reply import InputNeeded

__all__ = ["Person"]

T = TypeVar("T")
_log = logging.getLogger(__name__)

_SHOWN_CHARS = 4_000
"""Of an agent's message, in the form."""
_KEY = "reply"
_ACTIONS = ("accept", "decline", "cancel")
_FORM = {
    "type": "object",
    "properties": {
        "reply": {"type": "string", "title": "Your reply"},
        "ends": {"type": "boolean", "title": "End the conversation", "default": False},
    },
    "required": ["reply"],
}


class Person:
    """The person behind each user of one conversation.

    A form has the agent's message and nothing of the user's goal: an agent's host reads it too.
    A declined form ends the conversation by the user. A form without an answer ends it by a limit.

    Args:
        within_s: The longest wait for the answers to one message.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._until_s = 0.0
        self._text = ""  # the message that waits for its reply
        self._saying: asyncio.Future[Any] | None = None
        self._request: Mapping[str, Any] | None = None
        self._answer: asyncio.Future[Mapping[str, Any]] | None = None
        self._state = ""
        self._asked = asyncio.Event()

    async def __call__(self, user: User, text: str) -> UserTurn | None:
        """Return a user's next turn, by the person; None for first words, which the user has."""
        if not current().messages:
            return None
        if self._saying is None or self._saying.done():  # nobody is there to be asked
            return UserTurn(text="", ends=True, by="limit", name=user.name, is_person=True)
        loop = asyncio.get_running_loop()
        answer = self._answer = loop.create_future()
        # A token of each question: an answer that is sent again answers no later one.
        self._request, self._state = self._request_of(user, text), secrets.token_urlsafe(16)
        self._asked.set()
        try:
            await asyncio.wait({answer}, timeout=max(0.0, self._until_s - loop.time()))
        finally:
            self._request = self._answer = None
            self._asked.clear()
        return _turn(user, answer.result() if answer.done() else {})

    async def hear(
        self,
        text: str,
        say: Callable[[], Awaitable[T]],
        exchange: Exchange,
        live: str | None = None,  # noqa: ARG002  # for a person on that page
    ) -> T | InputNeeded:
        """Say something, and have the person asked for the reply.

        The same message again, while it waits for its reply, asks the person again.

        Returns:
            The result of `say`; or the questions to a client that answers by calling again.

        Raises:
            InvalidTask: The client cannot ask, or another message waits. Nothing was said.
        """
        if "form" not in exchange.declared:
            raise InvalidTask(
                "A person answers as the user of this task, and this client cannot ask one: it has "
                "no elicitation. Nothing was said. Use a client that has it, or end with response."
            )
        is_answer = exchange.state is not None
        saying = self._answered(text, exchange) if is_answer else self._begin(text, say)
        while await self._waits(saying):
            request, answer = self._request, self._answer
            if request is None or answer is None:
                continue
            if exchange.ask is None:
                return InputNeeded({_KEY: request}, self._state)
            found = await _unless(saying, exchange.ask(request))
            if found is not None and answer is self._answer and not answer.done():
                answer.set_result(found)
                self._asked.clear()
        return await asyncio.shield(saying)

    def _begin(self, text: str, say: Callable[[], Awaitable[T]]) -> "asyncio.Future[Any]":
        """Say something, unless it is being said; return the message's own call."""
        saying = self._saying
        if saying is None or saying.done():
            self._text, self._state = text, ""
            self._until_s = asyncio.get_running_loop().time() + self._within_s
            saying = self._saying = asyncio.ensure_future(say())
            saying.add_done_callback(_see)
        elif text != self._text:
            raise InvalidTask(
                "A message waits for the user's reply, and nothing was said. Send that message "
                "again, with inputResponses and its requestState where the client has them."
            )
        return saying

    def _request_of(self, user: User, text: str) -> Mapping[str, Any]:  # noqa: ARG002  # for others
        message = f"The agent says:\n\n{clip(text, _SHOWN_CHARS)}"
        params = {"mode": "form", "message": message, "requestedSchema": _FORM}
        return {"method": "elicitation/create", "params": params}

    def _answered(self, text: str, exchange: Exchange) -> "asyncio.Future[Any]":
        """Hand over the answer of a message that waits; return the message's own call."""
        state = (exchange.state or "").encode("utf-8", "replace")
        is_its = self._state and secrets.compare_digest(self._state.encode(), state)
        if self._saying is None or not is_its or text != self._text:
            raise InvalidTask(
                "No message waits under this requestState with this text. Nothing was said. Call "
                "message_user again without requestState."
            )
        found = (exchange.responses or {}).get(_KEY)
        given = _mapping(found)
        if given.get("action") not in _ACTIONS:
            raise InvalidTask(
                f"message_user waits for inputResponses[{_KEY!r}] with an action: "
                f"{', '.join(_ACTIONS)}."
            )
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(given)
            self._asked.clear()
        return self._saying

    async def _waits(self, saying: "asyncio.Future[Any]") -> bool:
        """Wait for the next question, or for the end of a message; tell whether one waits."""
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({saying, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        return not saying.done()


async def _unless(over: "asyncio.Future[Any]", asking: Awaitable[T]) -> T | None:
    """Wait for an answer, unless its message is over before."""
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait({over, task}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()


def _turn(user: User, answer: Mapping[str, Any]) -> UserTurn:
    action, content = answer.get("action"), answer.get("content")
    given = _mapping(content)
    if action != "accept":
        by = "user" if action == "decline" else "limit"
        return UserTurn(text="", ends=True, by=by, name=user.name, is_person=True)
    words, ends = str(given.get("reply", "")).strip()[: user.chars], given.get("ends") is True
    return UserTurn(text=words, ends=ends, name=user.name, is_person=True)


def _mapping(found: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _see(saying: "asyncio.Future[Any]") -> None:
    """Retrieve the error of a message whose caller has left."""
    if not saying.cancelled() and (exc := saying.exception()) is not None:
        _log.debug("a message failed: %s", exc)
