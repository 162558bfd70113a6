"""A person on the live page as a user, and the operator's choice of a person."""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from hud_mcp.base.text import clip
from hud_mcp.environment.conversation import UserTurn
from hud_mcp.environment.tool import Exchange
from hud_mcp.environment.user import User
from hud_mcp.errors import InvalidTask, InvalidTemplate
from hud_mcp.plugins.users.person import Person

__all__ = ["Replies", "chosen_person"]

T = TypeVar("T")
_log = logging.getLogger(__name__)

_OF_REPLY = 0.9
_SHOWN_CHARS = 20_000
_KEPT_S = 5.0


class PagePerson(Person):
    """The person behind each user of one conversation, on the session's live page."""

    _live = ""

    async def __call__(self, user: User, text: str) -> UserTurn | None:
        """Return a user's next turn, by the person, with the mark of the page."""
        made = await super().__call__(user, text)
        return None if made is None else made.model_copy(update={"on_page": True})

    async def hear(
        self,
        text: str,
        say: Callable[[], Awaitable[T]],
        exchange: Exchange,  # noqa: ARG002  # a caller never answers here
        live: str | None = None,
    ) -> T:
        """Say something, and wait for the reply; raises as `Person.hear` does."""
        if live is None:
            raise InvalidTask(
                "A person on the live page answers as the user, and this server has no live pages: "
                "serve over HTTP, or with --live. Nothing was said. End with response."
            )
        self._live = live
        return await asyncio.shield(self._begin(text, say))

    def _request_of(self, user: User, text: str) -> Mapping[str, Any]:
        _log.info("a message waits for the person who answers as the user: %s", self._live)
        return {"message": clip(text, _SHOWN_CHARS), "chars": user.chars}

    @property
    def waits(self) -> Mapping[str, Any] | None:
        """The message that waits, the token of its reply, and the seconds that are left."""
        if self._request is None or self._answer is None or self._answer.done():
            return None
        left_s = round(max(0.0, self._until_s - asyncio.get_running_loop().time()))
        return {**self._request, "state": self._state, "left_s": left_s}

    async def take(self, state: str, reply: str, *, ends: bool) -> bool:
        """Take the reply to the message that waits; False if `state` names none that does."""
        answer, saying = self._answer, self._saying
        is_its = secrets.compare_digest(self._state.encode(), state.encode())
        if not is_its or answer is None or answer.done() or saying is None:
            return False
        answer.set_result({"action": "accept", "content": {"reply": reply, "ends": ends}})
        # The page forgets a sent reply: a kill before it is on record would lose it.
        await asyncio.wait({saying}, timeout=_KEPT_S)
        return True


class Replies:
    """The people of a server's sessions who answer on live pages; `token` admits them."""

    def __init__(self, sessions: Any, token: str) -> None:
        self._sessions = sessions
        self.token = token

    def has_user(self, environment: str, template: str) -> bool:
        """Whether a template talks with a user."""
        served = self._sessions.environments.get(environment)
        found = None if served is None else served.templates.get(template)
        return found is not None and found.user

    def find(self, live_token: str) -> PagePerson | None:
        """Return the person of the session with this live page, if it runs here and talks."""
        for session in self._sessions.roster.living():
            talk = session.life.driver.talk
            if session.spec.live_token == live_token and talk is not None:
                return talk.conversation.speaker
        return None


def chosen_person(reply_s: float) -> Person | None:
    """Return the operator's choice of a person, for replies within `reply_s`; None without one.

    Raises:
        InvalidTemplate: HUD_MCP_USER has another value than `person` and `page`.
    """
    chosen = os.environ.get("HUD_MCP_USER", "").strip()
    if chosen not in ("", "person", "page"):
        raise InvalidTemplate(f"HUD_MCP_USER is {chosen!r}, and may be 'person', 'page' or unset.")
    kind = PagePerson if chosen == "page" else Person
    return kind(reply_s * _OF_REPLY) if chosen else None
