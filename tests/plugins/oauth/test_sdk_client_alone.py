"""The SDK's client and a server without a socket: renewal, and answers that are another's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from signing_in import BACK, PUBLIC, RESOURCE, Clock, Face, face, query_of
from tables import each_of
from test_sdk_client import Kept

from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.long]


class Person:
    """A person with a browser, whose answers may be changed on their way to the client."""

    def __init__(self, at: Face, **changed: str | None) -> None:
        self.at, self.changed = at, changed
        self.asked: list[dict[str, str]] = []
        self._answer: dict[str, Any] = {}

    async def open(self, url: str) -> None:
        """Allow what a client asks for."""
        self.asked.append(query_of(url))
        self._answer = query_of((await self.at.answer(url)).headers["location"])

    async def answer(self) -> AuthorizationCodeResult:
        """What comes to the client."""
        return AuthorizationCodeResult(**{**self._answer, **self.changed})


@asynccontextmanager
async def client(
    person: Person, kept: Kept, base: str = PUBLIC
) -> AsyncIterator[tuple[httpx2.AsyncClient, OAuthClientProvider]]:
    """The SDK's client of a person's server."""
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)])
    auth = OAuthClientProvider(f"{base}/mcp", metadata, kept, person.open, person.answer)
    transport = httpx2.ASGITransport(person.at.app)
    async with httpx2.AsyncClient(transport=transport, base_url=base, auth=auth) as http:
        yield http, auth


async def test_a_client_renews_its_token_without_the_person(at: Face, clock: Clock) -> None:
    """After an hour, and each time with the refresh token of the last time."""
    person, kept = Person(at), Kept()
    async with client(person, kept) as (http, auth):
        assert (await http.post("/mcp")).json()["principal"] == "ann"
        seen: set[str] = set()
        for _ in range(3):
            assert kept.tokens is not None
            seen.add(kept.tokens.access_token)
            clock.turn(minutes=61)
            auth.context.token_expiry_time = 1.0
            assert (await http.post("/mcp")).json()["principal"] == "ann"
        assert kept.tokens.access_token not in seen
        assert len(seen) == 3
    assert len(person.asked) == 1


@each_of("changed", [{"iss": "https://evil.example"}, {"iss": None}, {"state": "of-another"}])
async def test_an_answer_of_another_issuer_or_request_gets_no_code_redeemed(
    kept: Store, people: PasswordFile, changed: dict[str, str | None]
) -> None:
    """The metadata promises the issuer in each answer, so that a client can tell."""
    async with face(kept, people) as at:
        mine = Kept()
        async with client(Person(at, **changed), mine) as (http, _):
            with pytest.raises(OAuthFlowError):
                await http.post("/mcp")
        assert mine.tokens is None


async def test_a_client_of_one_resource_signs_in_anew_for_another(
    kept: Store, people: PasswordFile
) -> None:
    """Its token is worth nothing there, and it asks for one of that resource."""
    other_place = "https://other.example.com"
    mine = Kept()
    async with face(kept, people) as one, face(kept, people, public=other_place) as other:
        first, second = Person(one), Person(other)
        async with client(first, mine) as (http, _):
            assert (await http.post("/mcp")).status_code == 200
        assert mine.tokens is not None
        token = mine.tokens.access_token
        async with client(second, mine, other_place) as (http, _):
            assert (await http.post("/mcp")).json()["principal"] == "ann"
        assert await one.whoami(mine.tokens.access_token) is None
        assert await other.whoami(token) is None
    assert [each["resource"] for each in (*first.asked, *second.asked)] == [
        RESOURCE, f"{other_place}/mcp",
    ]  # fmt: skip


async def test_a_client_believes_no_metadata_of_another_resource(
    kept: Store, people: PasswordFile
) -> None:
    """A server that is asked under another name than its public one gets no consent."""
    async with face(kept, people, public=PUBLIC) as at:
        person = Person(at)
        async with client(person, Kept(), "http://127.0.0.1:8000") as (http, _):
            with pytest.raises(OAuthFlowError, match="does not match"):
                await http.post("/mcp")
        assert person.asked == []
