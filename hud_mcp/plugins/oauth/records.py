"""The kept state of sign-in: clients, grants and guesses, over restarts and all replicas."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from hud_mcp.plugins.oauth import statements
from hud_mcp.plugins.oauth.values import (
    KINDS,
    Bounds,
    Client,
    Found,
    Grant,
    Kind,
    Secret,
    digest,
    make_secret,
)
from hud_mcp.record.values import utc_now
from hud_mcp.store.archive import Database

CODE_S, ACCESS_S, REFRESH_S = 60, 3600, 30 * 86_400
"""The lives of a code, of a token, and of the secret that renews it, each from its own issue."""

_WINDOW = timedelta(minutes=15)
_GUESSES, _ALL_GUESSES = 10, 1000
"""The most guesses in a window: for one name, and for all names together."""

_SECRET_CHARS = 48
"""A secret has 47: a prefix, and 43 of 256 bits. A longer text is none."""


class Records:
    """The tables of this plugin in a store's database; `now` is the clock."""

    def __init__(
        self,
        database: Database,
        *,
        now: Callable[[], datetime] = utc_now,
        bounds: Bounds | None = None,
    ) -> None:
        self._database = database
        self._now = now
        self._bounds = bounds or Bounds()

    async def prepare(self) -> None:
        """Make the tables, if they are missing."""
        await self._database.write(statements.make_tables)

    async def find_client(self, client_id: str) -> Client | None:
        """Return a registered client."""
        row = await self._database.read(lambda c: statements.find_client(c, digest(client_id)))
        return None if row is None else Client.model_validate(row)

    async def add_client(self, client: Client) -> bool:
        """Register a client; return whether there was room for it."""
        key, row, now = digest(client.id), client.model_dump(mode="json"), self._now()
        return await self._database.write(
            lambda c: statements.add_client(c, key, row, now, self._bounds)
        )

    async def grant(self, grant: Grant, facts: dict[str, Any]) -> str:
        """Record a person's consent; return the code for it, which knows these facts."""
        code = make_secret("code")
        until, row = self._now() + timedelta(seconds=CODE_S), grant.model_dump(mode="json")
        secret = (digest(code), "code", facts, until)
        await self._database.write(lambda c: statements.add_grant(c, row, secret, until))
        return code

    async def find(self, kind: Kind, secret: str) -> Found | None:
        """Return what is known of a secret that has not expired; None if nothing is."""
        if not secret.startswith(f"{KINDS[kind]}-") or len(secret) > _SECRET_CHARS:
            return None
        row = await self._database.read(lambda c: statements.find_secret(c, digest(secret), kind))
        if row is None or row.expires_at <= self._now():
            return None
        return Found(
            grant=Grant.model_validate(row.grant), facts=row.row, expires_at=row.expires_at,
            is_used=row.used_at is not None, has_ended=row.ended_at is not None,
        )  # fmt: skip

    async def exchange(
        self, secret: str, found: Found, scopes: Sequence[str]
    ) -> tuple[str, str] | None:
        """Use a code or a refresh token up; return an access and a refresh token.

        None if somebody else was quicker. The grant has then ended.
        """
        now, row = self._now(), found.grant.model_dump(mode="json")
        access, refresh = make_secret("access"), make_secret("refresh")
        new: list[Secret] = [
            (digest(access), "access", {"scopes": list(scopes)}, now + timedelta(seconds=ACCESS_S)),
            (digest(refresh), "refresh", {}, now + timedelta(seconds=REFRESH_S)),
        ]
        is_first = await self._database.write(
            lambda c: statements.exchange(c, digest(secret), row, new, now)
        )
        return (access, refresh) if is_first else None

    async def end(self, grant: Grant) -> None:
        """End a grant with all of its tokens."""
        now = self._now()
        await self._database.write(lambda c: statements.end_grant(c, grant.id, now))

    async def count_guess(self, name: str) -> int:
        """Count a guess before it is made; return the seconds to wait in its place, or 0."""
        bounds = {digest(f"guess {name}"): _GUESSES, digest("guesses"): _ALL_GUESSES}
        now = self._now()
        count = await self._database.write(
            lambda c: statements.count_guess(c, bounds, now, _WINDOW)
        )
        return math.ceil(count)

    async def forget_guesses(self, name: str) -> None:
        """Forget the guesses of a name, once one of them was right."""
        key = digest(f"guess {name}")
        await self._database.write(lambda c: statements.forget_guesses(c, key))
