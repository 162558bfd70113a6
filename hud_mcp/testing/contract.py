"""The contract: one test for each sentence of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError
from hud_mcp.testing.checks import (
    CALL_BOUND_S,
    FEW_CHARS,
    ONE_OF_EACH,
    ContractBroken,
    Subject,
    called,
    css_size_of,
    expect,
    expect_kind,
    fails,
    in_its_own_task,
    look_at,
    refused,
    snapshot,
    within,
    wrong_arguments,
)
from hud_mcp.values.action import ACTION_TYPES, Action, ActionEffect, CustomAction
from hud_mcp.values.observation import Look, Observation

Check = Callable[[Any, Opening], Awaitable[None]]


def _in_an_opening(check: Check) -> Callable[[Any], Awaitable[None]]:
    """Make a test of a check: a method without arguments, with an opening of its own."""

    async def test(self: "WorldContract") -> None:
        async with self.an_opening() as opening:
            await check(self, opening)

    # Not `functools.wraps`: pytest would follow it, and look for a fixture of the check's argument.
    test.__name__, test.__qualname__ = check.__name__, check.__qualname__
    test.__doc__ = check.__doc__
    return test


class WorldContract(Subject):
    """The contract of every world. Override `make_spec`, and the samples that apply.

    Its tests are asynchronous functions without arguments. Their names are stable.
    """

    # The declaration.

    @_in_an_opening
    async def test_the_spec_declares_what_a_session_asks_it(self, opening: Opening) -> None:
        """Its name, its actions, its screen and its context space are there and consistent."""
        spec = self.make_spec()
        expect(spec.name, "the spec has no name")
        expect(
            spec.actions <= frozenset(ACTION_TYPES) - {"response"},
            "actions are of ACTION_TYPES, and `response` is the session's",
        )
        expect(
            "custom" in spec.actions or not spec.custom_actions,
            "custom_actions are announced, and 'custom' is not among the actions",
        )
        expect_kind(spec, WorldSpec, "make_spec()")
        expect(spec.has_screen in (True, False), "has_screen is neither True nor False")
        expect(spec.replayable in (True, False), "replayable is neither True nor False")
        problems = spec.context_space.problems(spec.context_space.default)
        expect(not problems, f"its default context is not allowed: {problems}")
        async with self.a_world(opening) as world:
            expect_kind(world.unwrapped, spec.world_type, "open()")

    # Acting.

    @_in_an_opening
    async def test_an_action_that_works_returns_an_effect(self, opening: Opening) -> None:
        """`act` returns an `ActionEffect`, and the samples change what is seen."""
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in self.samples():
                expect_kind(await within(world.act(action)), ActionEffect, "act()")
            if self.changing_actions():
                expect(await look_at(world) != before, "changing_actions() changed nothing")

    @_in_an_opening
    async def test_what_is_announced_is_performed(self, opening: Opening) -> None:
        """Each action type and each custom action that the spec announces works with a sample."""
        spec = self.make_spec()
        performed: set[str] = set()
        for samples in (self.samples(), self.samples_kept(), self.other_actions()):
            async with self.a_world(opening) as world:
                for action in samples:
                    await world.act(action)
                    name = action.action if isinstance(action, CustomAction) else ""
                    performed |= {action.type, f"custom {name}"}
        for action in ONE_OF_EACH:
            if action.type in spec.actions - performed - {"custom"}:
                async with self.a_world(opening) as world:
                    await self._performs(world, action)
        lacking = [name for name in spec.custom_actions if f"custom {name}" not in performed]
        expect(not lacking, f"no sample performs {lacking}; add them to other_actions()")

    async def _performs(self, world: World, action: Action) -> None:
        try:
            await within(world.act(action))
        except ActionFailed as exc:
            text = f"{action.type!r} is announced, and {action!r} was refused: {exc} "
            raise ContractBroken(f"{text}Add one that works to other_actions().") from exc

    @_in_an_opening
    async def test_wrong_arguments_are_refused_and_named(self, opening: Opening) -> None:
        """A custom action refuses arguments that its schema forbids, and names the wrong one."""
        schemas = self.make_spec().custom_actions
        for samples in (self.samples(), self.samples_kept(), self.other_actions()):
            async with self.a_world(opening) as world:
                for action in samples:
                    # Each is tried where the right arguments work: then the wrong one is refused.
                    if isinstance(action, CustomAction) and action.action in schemas:
                        await _refuses_wrong(world, action, schemas[action.action])
                    await world.act(action)

    @_in_an_opening
    async def test_types_that_are_not_declared_are_refused_and_change_nothing(
        self, opening: Opening
    ) -> None:
        """An action type that the spec does not list is refused, and the world is as before."""
        actions = self.make_spec().actions
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in ONE_OF_EACH:
                if action.type not in actions:
                    await refused(world, action)
            expect(await look_at(world) == before, "a refused action changed the world")

    @_in_an_opening
    async def test_a_refused_action_changes_nothing(self, opening: Opening) -> None:
        """What raises `ActionFailed` leaves the world as it was, and usable."""
        async with self.a_world(opening) as world:
            before = await look_at(world)
            for action in self.refusals():
                await refused(world, action)
                expect(await look_at(world) == before, f"{action} was refused, but changed it")
            for action in self.samples():
                await world.act(action)

    # Observing.

    @_in_an_opening
    async def test_looking_changes_nothing(self, opening: Opening) -> None:
        """Two observations without an action between them are equal."""
        async with self.a_world(opening) as world:
            for actions in ((), self.samples()):
                for action in actions:
                    await world.act(action)
                first = await look_at(world)
                expect(await look_at(world) == first, "observing changed what is observed")

    @_in_an_opening
    async def test_only_what_was_asked_for_is_observed(self, opening: Opening) -> None:
        """No picture and no text come without being asked for."""
        async with self.a_world(opening) as world:
            seen = await within(world.observe(Look()))
            expect_kind(seen, Observation, "observe()")
            expect(seen.image is None, "a picture that nobody asked for")
            expect(
                (await within(world.observe(Look(text=False)))).text is None, "text, unasked for"
            )

    @_in_an_opening
    async def test_the_text_keeps_to_its_limit(self, opening: Opening) -> None:
        """A text is no longer than `max_text_chars`."""
        async with self.a_world(opening) as world:
            text = (await within(world.observe(Look(max_text_chars=FEW_CHARS)))).text
            expect(text is None or len(text) <= FEW_CHARS, "the text is longer than its limit")

    @_in_an_opening
    async def test_pictures_decode_and_map_to_the_screen(self, opening: Opening) -> None:
        """PNG and JPEG are what they say, and their scale leads back to the same screen."""
        if not self.make_spec().has_screen:
            return
        async with self.a_world(opening) as world:
            sizes: list[tuple[int, int]] = []
            for kind in ("png", "jpeg"):
                image = (await within(world.observe(Look(text=False, image=kind)))).image
                if image is None:
                    raise ContractBroken("the spec has a screen, and there is no picture")
                sizes.append(css_size_of(image, kind))
            expect(sizes[0] == sizes[1], "PNG and JPEG map to screens of different sizes")
            expect(self.css_size() in (None, sizes[0]), "the scale leads off the screen")

    @_in_an_opening
    async def test_without_a_screen_there_is_no_picture(self, opening: Opening) -> None:
        """A spec without a screen has worlds without pictures."""
        if self.make_spec().has_screen:
            return
        async with self.a_world(opening) as world:
            expect(
                (await within(world.observe(Look()))).image is None, "a picture without a screen"
            )

    # Several worlds.

    @_in_an_opening
    async def test_two_worlds_are_independent(self, opening: Opening) -> None:
        """What is done in one world is not seen in another; closing one leaves the other."""
        async with self.a_world(opening) as other:
            before = await look_at(other)
            async with self.a_world(opening) as world:
                for action in self.samples():
                    await world.act(action)
                expect(await look_at(other) == before, "one world saw what happened in another")
            expect(await look_at(other) == before, "closing one world changed another")
            for action in self.samples():
                await other.act(action)

    @_in_an_opening
    async def test_worlds_may_act_at_the_same_time(self, opening: Opening) -> None:
        """Two worlds in use at once come to what one alone comes to."""
        ends: list[str] = []

        async def live() -> None:
            async with self.a_world(opening) as world:
                for action in self.samples():
                    await world.act(action)
                ends.append(await look_at(world))

        with anyio.fail_after(2 * CALL_BOUND_S):
            await live()
            async with anyio.create_task_group() as group:
                group.start_soon(live)
                group.start_soon(live)
        if self.make_spec().replayable:
            expect(len(set(ends)) == 1, "worlds at the same time disturbed each other")

    # Coming back.

    @_in_an_opening
    async def test_a_replayable_world_comes_back_by_its_actions(self, opening: Opening) -> None:
        """Same seed, same context, same actions, same looks: the same observations."""
        if self.make_spec().replayable:
            expect(await self.live(opening) == await self.live(opening), "the replay differs")

    @_in_an_opening
    async def test_a_replay_needs_no_seed(self, opening: Opening) -> None:
        """Where nobody chose a seed, a replayable world comes back as well."""
        unseeded = replace(opening, seed=None)
        if self.make_spec().replayable:
            expect(await self.live(unseeded) == await self.live(unseeded), "the replay differs")

    @_in_an_opening
    async def test_a_snapshot_changes_nothing(self, opening: Opening) -> None:
        """A world of which a snapshot was taken looks and goes on as one of which none was."""
        async with self.a_world(opening) as world, self.a_world(opening) as other:
            if await within(world.snapshot()) is None:
                return
            for action in (None, *self.samples_kept()):
                for acting in (world, other):
                    if action is not None:
                        await acting.act(action)
                await snapshot(world)
                expect(await look_at(world) == await look_at(other), "the snapshot shows")

    @_in_an_opening
    async def test_a_restored_world_goes_on_as_it_was(self, opening: Opening) -> None:
        """After any action, a new world that takes the snapshot up shows and does the same."""
        kept = self.samples_kept()
        texts: list[str] = []
        snapshots: list[bytes] = []
        async with self.a_world(opening) as world:
            if await within(world.snapshot()) is None:
                return
            texts.append(await look_at(world))
            for action in (*kept, *kept):
                await world.act(action)
                texts.append(await look_at(world))
                snapshots.append(await snapshot(world))
        for done in (1, len(kept)):
            async with self.a_world(opening) as other:
                await within(other.restore(snapshots[done - 1]))
                expect(await look_at(other) == texts[done], "the restored world looks different")
                again = await snapshot(other)
                for action, text in zip((*kept, *kept)[done:], texts[done + 1 :], strict=True):
                    await other.act(action)
                    expect(await look_at(other) == text, f"{action} does something else now")
            async with self.a_world(opening) as third:
                await within(third.restore(again))
                expect(await look_at(third) == texts[done], "a snapshot of it is not the same")

    @_in_an_opening
    async def test_what_is_no_snapshot_is_refused(self, opening: Opening) -> None:
        """Damaged bytes are an `EnvironmentFailed`, and the world is of no use after it."""
        async with self.a_world(opening) as world:
            if await within(world.snapshot()) is None:
                return
            data = await snapshot(world)
        for damaged in (b"", b"no snapshot", data[: len(data) // 2]):
            async with self.a_world(opening) as other:
                await fails(partial(other.restore, damaged), EnvironmentFailed)
                await fails(partial(other.observe, Look()), EnvironmentFailed)

    # Tasks, cancellation, the end.

    @_in_an_opening
    async def test_calls_may_come_from_different_tasks(self, opening: Opening) -> None:
        """Opened in one task, acted on in a second, observed in a third, closed in a fourth."""
        worlds: list[World] = []

        async def open_it() -> None:
            worlds.append(await self.make_spec().open(opening))

        async def act_on_it() -> None:
            for action in self.samples():
                await worlds[0].act(action)

        async def observe_it() -> None:
            await worlds[0].observe(Look())

        async def close_it() -> None:
            await worlds[0].close()

        for step in (open_it, act_on_it, observe_it, close_it):
            await in_its_own_task(step)

    @_in_an_opening
    async def test_a_cancelled_call_leaves_the_world_usable(self, opening: Opening) -> None:
        """Cut off at any moment, the next call works and comes back in time."""
        async with self.a_world(opening) as world:
            for delay_s in (0, 0.001, 0.005, 0.02):
                with anyio.move_on_after(delay_s):
                    for action in self.samples():
                        await world.act(action)
                    await world.observe(Look())
                    await anyio.sleep_forever()
            with anyio.fail_after(CALL_BOUND_S):
                for action in self.samples():
                    await world.act(action)
                await world.observe(Look())

    @_in_an_opening
    async def test_a_cancelled_opening_does_not_spoil_the_next(self, opening: Opening) -> None:
        """After an opening was cut off, another one works."""
        for delay_s in (0, 0.001, 0.02):
            with anyio.move_on_after(delay_s):
                world = await self.make_spec().open(opening)
                await world.close()
        async with self.a_world(opening) as world:
            await look_at(world)

    @_in_an_opening
    async def test_closing_twice_is_no_error(self, opening: Opening) -> None:
        """`close` may be called again, and returns in time."""
        with anyio.fail_after(CALL_BOUND_S):
            world = await self.make_spec().open(opening)
            await world.close()
            await world.close()

    @_in_an_opening
    async def test_a_closed_world_refuses_clearly(self, opening: Opening) -> None:
        """Acting and observing after `close` raise an error of this package's tree."""
        world = await self.make_spec().open(opening)
        await world.close()
        calls: list[Callable[[], Awaitable[Any]]] = [lambda: world.observe(Look())]
        calls += [lambda action=action: world.act(action) for action in self.samples()]
        for call in calls:
            await fails(call, HudMcpError)


async def _refuses_wrong(world: World, action: CustomAction, schema: Mapping[str, Any]) -> None:
    before = await look_at(world)
    for name, args in wrong_arguments(schema, action.args or {}):
        wrong = action.model_copy(update={"args": args})
        text = await refused(world, wrong)
        expect(name in text, f"{called(wrong)} was refused without the name {name!r}: {text}")
    expect(await look_at(world) == before, f"{called(action)} was refused, but changed the world")


class _Given(WorldContract):
    """The contract of one spec, with given samples."""

    def __init__(
        self,
        spec: WorldSpec,
        samples: tuple[Sequence[Action], ...],
        size: tuple[int, int] | None,
    ) -> None:
        changing, kept, refused, other = samples
        self.make_spec = lambda: spec
        self.changing_actions = lambda: changing
        self.kept_actions = lambda: kept
        self.refused_actions = lambda: refused
        self.other_actions = lambda: other
        self.css_size = lambda: size


async def check_world(
    spec: WorldSpec,
    *,
    changing_actions: Sequence[Action] = (),
    refused_actions: Sequence[Action] = (),
    kept_actions: Sequence[Action] | None = None,
    other_actions: Sequence[Action] = (),
    css_size: tuple[int, int] | None = None,
) -> None:
    """Make every check of the contract on one kind of world.

    The arguments are the results of the methods of `WorldContract` with their names. `kept_actions`
    are the changing ones by default.

    Raises:
        ContractBroken: A check failed. The text names each such check, with its claim and error.
    """
    kept = changing_actions if kept_actions is None else kept_actions

    given = _Given(spec, (changing_actions, kept, refused_actions, other_actions), css_size)
    broken: list[str] = []
    for name in sorted(dir(WorldContract)):
        if name.startswith("test_"):
            check = getattr(given, name)
            try:
                await check()
            except Exception as exc:  # noqa: BLE001  # whatever a wrong world raises is the finding
                claim = str(check.__doc__).partition("\n")[0]
                broken.append(f"{name}: {claim}\n  {type(exc).__name__}: {exc}")
    if broken:
        raise ContractBroken(f"{spec.name} breaks the contract:\n" + "\n".join(broken))
