"""Two servers on one store of each kind act as one: no secret and no guess counts twice."""

import re
from collections.abc import Callable

import anyio
import pytest
from signing_in import Clock, Face, face, pkce

from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.plugins.oauth.values import Bounds
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_two_servers_of_one_store_act_as_one(
    open_store: Callable[..., Store], people: PasswordFile, clock: Clock
) -> None:
    """Whichever is asked, and when both are asked at once."""
    bounds = Bounds(most=5)
    async with (
        face(open_store(), people, clock=clock, bounds=bounds) as one,
        face(open_store(), people, clock=clock, bounds=bounds) as two,
    ):
        given = await one.signed_in()
        client_id = given["client_id"]
        assert await two.whoami(given["access_token"]) is not None
        await race_for_one_refresh_token(one, two, client_id, given["refresh_token"])
        assert await one.whoami(given["access_token"]) is None
        registered = [(await at.register()).status_code for at in (one, two) * 4]
        assert registered == [201] * 5 + [429] * 3
        await guess_at_both(one, two, client_id)
        again = await two.answer(two.asked(client_id, pkce()[1]))
        assert again.status_code == 429
        clock.turn(minutes=16)
        back = await two.signed_in(client_id)
        assert await one.whoami(back["access_token"]) is not None


async def race_for_one_refresh_token(one: Face, two: Face, client_id: str, token: str) -> None:
    """Ask both servers at once: one at most gives tokens, and they have ended."""
    found: list[int] = []

    async def refresh(at: Face) -> None:
        found.append((await at.refresh(client_id, token)).status_code)

    async with anyio.create_task_group() as group:
        for at in (one, two, one, two):
            group.start_soon(refresh, at)
    assert sorted(found)[1:] == [400] * 3


async def guess_at_both(one: Face, two: Face, client_id: str) -> None:
    """Ten guesses are made, however they come."""
    found: list[int] = []

    async def guess(at: Face) -> None:
        url = at.asked(client_id, pkce()[1])
        page = await at.open(url)
        (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', page.text)
        form = {"csrf": csrf, "name": "ann", "password": "wrong", "decision": "allow"}
        found.append((await at.http.post(url, data=form)).status_code)

    async with anyio.create_task_group() as group:
        for at in (one, two) * 7:
            group.start_soon(guess, at)
    assert sorted(found) == [403] * 10 + [429] * 4
