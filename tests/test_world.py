"""The services that worlds share: opened once, closed together, whatever fails."""

from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import pytest
from waiting import PATIENCE_S

from hud_mcp.environment.spec import EmptyWorld, NoWorld
from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import Action, ActionEffect, WaitAction
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening, Shared, World, as_world

pytestmark = pytest.mark.anyio


class Service:
    """Counts its closings; may fail at it, or take a while."""

    def __init__(self, *, fails: bool = False, slow: bool = False) -> None:
        self.closed = 0
        self._fails = fails
        self._slow = slow

    async def close(self) -> None:
        """Close."""
        if self._slow:
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
        if self._fails:
            raise OSError("does not close")
        self.closed += 1


class Opener:
    """Opens services, after a gate, and counts how often it was asked."""

    def __init__(self, *services: Service | Exception) -> None:
        self.calls = 0
        self.gate = anyio.Event()
        self._services = list(services)

    async def __call__(self) -> Service:
        """Open the next one."""
        self.calls += 1
        await self.gate.wait()
        given = self._services.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


async def test_many_who_ask_at_once_share_one_service() -> None:
    """The first opens it while the others wait."""
    shared, service = Shared(), Service()
    opener, got = Opener(service), list[Service]()

    async def ask() -> None:
        got.append(await shared.get("key", opener))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            opener.gate.set()
    assert got == [service] * 10
    assert opener.calls == 1


async def test_two_keys_are_two_services_and_do_not_wait_for_each_other() -> None:
    """A browser that is slow to start does not hold up another kind."""
    shared, slow, quick = Shared(), Opener(Service()), Opener(Service())
    quick.gate.set()
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(shared.get, "slow", slow)
            await anyio.wait_all_tasks_blocked()
            await shared.get("quick", quick)
            slow.gate.set()


async def test_a_failed_opening_is_tried_again_by_the_next_caller() -> None:
    """One failure is its own caller's, and nothing is kept of it."""
    shared, service = Shared(), Service()
    opener = Opener(OSError("no"), service)
    opener.gate.set()
    with pytest.raises(OSError, match="no"):
        await shared.get("key", opener)
    assert await shared.get("key", opener) is service


async def test_a_cancelled_opening_leaves_the_key_free() -> None:
    """Whoever asks next opens it."""
    shared, service = Shared(), Service()
    opener = Opener(service)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(shared.get, "key", opener)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        opener.gate.set()
        assert await shared.get("key", opener) is service
    assert opener.calls == 2


async def test_a_forgotten_service_is_opened_anew_unless_it_was_replaced() -> None:
    """Two worlds that find the same service broken do not forget its successor."""
    shared, old, new = Shared(), Service(), Service()
    opener = Opener(old, new)
    opener.gate.set()
    assert await shared.get("key", opener) is old
    shared.forget("key", old)
    assert await shared.get("key", opener) is new
    shared.forget("key", old)
    assert await shared.get("key", opener) is new


async def test_one_service_that_fails_to_close_does_not_keep_the_others_open() -> None:
    """All are closed to the end, and what failed is raised then."""
    shared = Shared()
    services = [Service(slow=True), Service(fails=True), Service(slow=True)]
    for i, service in enumerate(services):
        opener = Opener(service)
        opener.gate.set()
        await shared.get(str(i), opener)
    with (
        anyio.fail_after(PATIENCE_S),
        pytest.raises(ExceptionGroup, match="failed to close") as caught,
    ):
        await shared.close()
    assert [s.closed for s in services] == [1, 0, 1]
    assert caught.group_contains(OSError, match="does not close")
    await shared.close()
    assert [s.closed for s in services] == [1, 0, 1]


async def test_a_service_that_opens_while_all_are_closed_is_closed_too() -> None:
    """Nothing is left running after the end."""
    shared, service = Shared(), Service()
    opener = Opener(service)

    async def ask() -> None:
        with pytest.raises(RuntimeError, match="shutting down"):
            await shared.get("key", opener)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await shared.close()
            opener.gate.set()
    assert service.closed == 1


class Counter:
    """An author's world that derives from nothing; it has some of the members that it may have."""

    def __init__(self) -> None:
        self.count = 0
        self.died: str | None = None

    async def act(self, action: Action) -> ActionEffect:
        """Count up to two, and refuse the rest."""
        del action
        if self.count == 2:
            raise ActionFailed("It counts to two.")
        self.count += 1
        return ActionEffect(reward=self.count)

    async def observe(self, look: Look) -> Observation:
        """The count."""
        del look
        return Observation(text=str(self.count))

    async def close(self) -> None:
        """Nothing is open."""

    async def snapshot(self) -> bytes:
        """The count."""
        return bytes([self.count])

    async def restore(self, data: bytes) -> None:
        """Take a count up."""
        self.count = data[0]


async def test_a_world_has_a_default_for_whatever_it_lacks() -> None:
    """A session asks every world the same, and never what it can."""
    world = EmptyWorld()
    assert as_world(world) is world.unwrapped is world
    assert await world.snapshot() is await world.snapshot_setup() is await world.handle() is None
    assert world.died is world.screen_size() is None
    assert world.explain() == ""
    assert (await world.urls(), world.left_out) == ({}, ())
    await world.stop_agent()
    await world.measure_screen()
    assert not await world.is_dead()
    await world.close()
    assert await world.is_dead(), "by a look"
    with pytest.raises(NotImplementedError):
        await world.restore(b"")


async def test_an_authors_world_that_derives_from_nothing_is_completed() -> None:
    """Its own members are used, the others have the defaults; templates get the author's object."""
    own = Counter()
    world = as_world(own)
    assert isinstance(world, World)
    assert world.unwrapped is own
    assert not world.acts_in_one_go
    done: list[ActionEffect] = []
    refusal = await world.act_all([WaitAction(time=1)] * 3, done.append)
    assert ([each.reward for each in done], str(refusal)) == ([1, 2], "It counts to two.")
    assert (await world.observe(Look())).text == "2"
    await world.restore(b"\1")
    assert await world.snapshot() == b"\1"
    assert await world.handle() is None
    assert (world.died, await world.is_dead()) == (None, False)
    own.died = "gone"
    assert (world.died, await world.is_dead()) == ("gone", True)


class Counters(Counter):
    """One that performs a list in one go."""

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Count all of them at once."""
        self.count += len(actions)
        keep(ActionEffect(reward=self.count))
        return None


async def test_a_world_of_any_class_may_perform_a_list_in_one_go() -> None:
    """Its own way is taken, and a session knows that there is one."""
    done: list[ActionEffect] = []
    world = as_world(Counters())
    assert world.acts_in_one_go
    assert await world.act_all([WaitAction(time=1)] * 3, done.append) is None
    assert [each.reward for each in done] == [3]


def test_a_class_that_lacks_what_every_world_has_cannot_be_made() -> None:
    """The error names what is missing."""

    class Half(World):
        async def act(self, action: Action) -> ActionEffect:
            return ActionEffect(info={"action": action.type})

    with pytest.raises(TypeError, match=r"close.*observe"):
        Half()  # pyright: ignore[reportAbstractUsage]


async def test_an_opening_needs_no_options() -> None:
    """Its defaults open a world in a test, or in a script."""
    opening = Opening()
    opening.log("nothing happens")
    world = await NoWorld().open(opening)
    await world.close()
