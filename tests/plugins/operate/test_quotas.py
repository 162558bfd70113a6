"""What each principal may use of a store is counted in it, whichever server it asks."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from records import AT, picture, receipt, step, trajectory
from waiting import PATIENCE_S

from hud_mcp.errors import LimitReached
from hud_mcp.plugins.operate import quotas
from hud_mcp.plugins.operate.quotas import Quota, Quotas
from hud_mcp.record.values import ScreenshotRecord, utc_now
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

Open = Callable[..., Store]


async def begin(store: Store, name: str, *, principal: str | None = "ann", **more: Any) -> int:
    """Start a session of a principal, now."""
    began = trajectory(name, **{"started_at": utc_now(), **more})
    with anyio.fail_after(PATIENCE_S):
        return await store.add_session(began, secret_digest=f"of {name}", principal=principal)


async def end(store: Store, name: str) -> None:
    """End it."""
    await store.end_session(name, receipt(trajectory=name, ended_at=utc_now()))


def refusals(results: list[Any]) -> list[LimitReached]:
    """Those of some starts that were refused; whatever else went wrong is raised."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, LimitReached):
            raise result
    return [result for result in results if isinstance(result, LimitReached)]


async def count(store: Store) -> int:
    """How many sessions are recorded."""
    return len(await store.list_trajectories())


async def test_of_many_starts_at_once_on_two_servers_as_many_are_let_through_as_may_be(
    open_store: Open,
) -> None:
    """Those that are refused leave nothing, and one that ends makes room for one."""
    quotas = Quotas(Quota(sessions=7))
    stores = [open_store(start_rule=quotas), open_store(start_rule=quotas)]
    await asyncio.gather(*(each.list_jobs() for each in stores))
    starts = (begin(stores[i % 2], f"traj-{i}") for i in range(20))
    results = await asyncio.gather(*starts, return_exceptions=True)
    refused = refusals(results)
    assert len(refused) == 13
    assert await count(stores[0]) == 7
    assert "7 of your sessions go on (the quota is 7" in str(refused[0])
    first = next(i for i, result in enumerate(results) if isinstance(result, int))
    await end(stores[first % 2], f"traj-{first}")
    await begin(stores[1 - first % 2], "traj-more")
    with pytest.raises(LimitReached):
        await begin(stores[0], "traj-one-too-many")


async def test_starts_are_counted_by_the_minute_and_a_refusal_says_how_long_to_wait(
    open_store: Open,
) -> None:
    """Also once they have ended; what was refused does not count, and makes nobody wait longer."""
    store = open_store(start_rule=Quotas(Quota(starts_per_minute=3)))
    now = utc_now()  # of each start, however long it takes
    ago = [timedelta(seconds=each) for each in (70, 50, 40, 1)]
    for number, each in enumerate(ago):
        await begin(store, f"traj-{number}", started_at=now - each)
        await end(store, f"traj-{number}")
    with pytest.raises(LimitReached, match=r"3 sessions within a minute.*again in \d+ s") as told:
        await begin(store, "traj-refused", started_at=now)
    assert told.value.retry_after_s == 10
    later = now + timedelta(seconds=told.value.retry_after_s)
    await begin(store, "traj-later", started_at=later)
    assert await count(store) == 5


async def test_no_principal_uses_what_is_another_ones(open_store: Open) -> None:
    """Each has its own; whoever has none is one caller, and the operator is not bounded."""
    named = {"bob": Quota(sessions=2)}
    store = open_store(start_rule=Quotas(Quota(sessions=1), named, exempt=frozenset({"#operator"})))
    for principal, most in (("ann", 1), ("bob", 2), (None, 1)):
        for number in range(most):
            await begin(store, f"traj-{principal}-{number}", principal=principal)
        with pytest.raises(LimitReached):
            await begin(store, f"traj-{principal}-more", principal=principal)
    for number in range(4):
        await begin(store, f"traj-operator-{number}", principal="#operator")
    assert await count(store) == 8


async def test_a_session_that_expired_unseen_takes_nobodys_place(open_store: Open) -> None:
    """Its server may have gone for good, so that nobody records its end."""
    store = open_store(start_rule=Quotas(Quota(sessions=1), living_s=3600))
    await begin(store, "traj-old", started_at=utc_now() - timedelta(hours=2))
    await begin(store, "traj-new")
    with pytest.raises(LimitReached):
        await begin(store, "traj-more")


async def test_what_is_stored_is_added_up_over_servers(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps, pictures and states count, of sessions that end, that are let go of and that grow."""
    monkeypatch.setattr(quotas, "_QUICK_S", PATIENCE_S)  # a slow machine adds up anew, too
    shot = picture()
    before, after = open_store(), open_store(start_rule=Quotas(Quota(stored_bytes=4_000_000)))
    for name in ("traj-ends", "traj-waits"):
        await begin(before, name)
        row = step(0, screenshot=ScreenshotRecord.of(shot))
        await before.add_step(name, row, shot, snapshot=b"s" * 500_000)
    await end(before, "traj-ends")
    await before.release_session("traj-waits")
    await begin(after, "traj-grows")  # 1 MB is not yet too much
    for index in range(9):  # each takes the place of the one before
        await after.add_step("traj-grows", step(index), snapshot=b"s" * 400_000)
    await begin(after, "traj-of-ann")
    for index in range(9, 13):
        await after.add_step("traj-grows", step(index, observation_text="x" * 900_000))
    with pytest.raises(LimitReached, match=r"Your records have \d+ bytes \(the quota is 4000000\)"):
        await begin(after, "traj-more")
    await begin(after, "traj-of-bob", principal="bob")
    assert await count(after) == 5


async def test_a_refused_start_fails_none_that_shares_its_commit(open_store: Open) -> None:
    """Sessions of others that begin in the same turn are recorded."""
    store = open_store(start_rule=Quotas(Quota(sessions=1)))
    await begin(store, "traj-0")
    starts = [
        begin(store, "traj-1"),
        begin(store, "traj-2", principal="bob"),
        begin(store, "traj-3", principal=None, started_at=AT),
    ]
    results = await asyncio.gather(*starts, return_exceptions=True)
    assert [isinstance(result, LimitReached) for result in results] == [True, False, False]
    assert await count(store) == 3
