"""The way to a provider that does not speak an agent's dialect."""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from hud_mcp.plugins.models.gateway.choice import Route
from hud_mcp.plugins.models.gateway.dialects import Asked
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.retrying import LEAST_TOKENS
from hud_mcp.plugins.models.gateway.upstream import Answer
from hud_mcp.registry import service

__all__ = ["Sent", "Translation", "Ways", "translation"]

_NO_PATH, _FIRST_ERROR = (404, 405), 400
_UNKNOWN = re.compile(rb"(?i)(unknown|no such|invalid) (path|url|route|endpoint)")
_LOWER = 4
_TOO_LARGE = re.compile(r"(?i)max_(?:completion_)?tokens|requested token count")


@dataclass(frozen=True)
class Sent:
    """A request of a run, for another provider than its dialect's.

    Attributes:
        run: The run, whose replies are remembered.
        query: The query of its address.
        model: The model that is asked.
        cap: The most tokens of its reply.
    """

    run: object
    route: Route
    dialect: Dialect
    asked: Asked
    query: str
    body: bytes
    model: str
    cap: int | None

    @property
    def is_events(self) -> bool:
        """Whether its reply is a stream of events; Gemini's may be one list."""
        is_list = self.dialect.name == "gemini" and "alt=sse" not in self.query
        return self.asked.is_stream and not is_list


class Ways:
    """The ways to a job's model: the dialects that its engine has shown to speak, and its room."""

    def __init__(self) -> None:
        self._spoken: dict[str, bool] = {}
        self._caps: dict[str, int] = {}

    def is_translated(self, route: Route, dialect: str) -> bool:
        """Whether a provider does not speak a dialect, as far as it has shown."""
        if dialect in route.speaks:
            return False
        return dialect not in route.may_speak or self._spoken.get(dialect) is False

    def learns(self, route: Route, dialect: str, status: int, body: bytes = b"") -> bool:
        """Note how a provider answers a dialect; return whether it turns out to have no such path.

        The first answer decides: an engine that spoke it once is not taken for one that does not.
        """
        if dialect not in route.may_speak or self._spoken.get(dialect):
            return False
        is_error = status >= _FIRST_ERROR
        is_unknown = status in _NO_PATH or (is_error and bool(_UNKNOWN.search(body)))
        if is_unknown:
            self._spoken[dialect] = False
        elif not is_error:
            self._spoken.setdefault(dialect, True)
        return is_unknown

    def cap(self, model: str, asked: int | None) -> int | None:
        """Return the cap that a model takes in place of one that is asked for."""
        return asked if asked is None else min(asked, self._caps.get(model, asked))

    def lowers(self, model: str, refused: int | None, said: str) -> bool:
        """Whether a model gets a lower cap from now on, as it has refused a large one.

        Programs ask for the cap of their own models, which has no room in an engine's context.
        """
        lower = (refused or 0) // _LOWER
        is_lower = lower >= LEAST_TOKENS and _TOO_LARGE.search(said) is not None
        if is_lower:
            self._caps[model] = lower
        return is_lower


class Translation(Protocol):
    """Asks models through their library, and writes their replies in the agent's dialect."""

    def answered(self, sent: Sent) -> AbstractAsyncContextManager[Answer]:
        """Send a request, and give the reply while the block runs.

        Raises:
            Refused: It has what the provider cannot do. Nothing was sent.
            Lost: There was no connection, or it broke before a reply came.
            Redirected: The provider names another address.
            JobHalted: The models' libraries are missing.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


def translation() -> Translation:
    """Return the translation of a job."""
    return service("model translation")()
