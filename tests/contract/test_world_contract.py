"""The worlds of the package keep the contract, and the contract catches worlds that do not."""

# ruff: noqa: D102  # what a broken world overrides is said by its class

import asyncio
import io
import os
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio
import pytest
from PIL import Image
from tables import each_of

from hud_mcp.environment.spec import NoWorld
from hud_mcp.environment.tool import actions
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.testing import ContractBroken, WorldContract, check_world
from hud_mcp.values.action import (
    Action,
    ActionEffect,
    ClickAction,
    CustomAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.observation import Look, Observation, Screenshot
from hud_mcp.world import Opening, Shared, WorldSpec
from hud_mcp.worlds.browser import Browser

SITE = """<title>Counter</title><h1>Counter</h1><button id=b onclick="n.textContent++;
r.textContent = Math.random() + crypto.randomUUID()">Add</button><p id=n>0</p><p id=r></p>
<input id=i placeholder=Name><label><input type=checkbox id=c>Gift</label>
<button id=s onclick="localStorage.n = 1 + +(localStorage.n || 0); show()">Store</button>
<select id=k><option>Red<option>Blue</select>
<p id=o></p><script>const show = () => o.textContent = localStorage.n || 'none'; show()</script>"""


@pytest.mark.anyio
class TestNoWorld(WorldContract):
    """The empty world."""

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """Nothing to declare."""
        return NoWorld()


@pytest.fixture(scope="session")
async def one_browser(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all checks."""
    shared = Shared()
    yield shared
    await shared.close()


@pytest.mark.anyio
@pytest.mark.browser
class TestBrowser(WorldContract):
    """A browser on a site with a button, a field and a random number."""

    opening: Opening

    @pytest.fixture(autouse=True)
    def site(self, one_browser: Shared, tmp_path: Path) -> None:
        """One Chromium, and a site of this test's own."""
        (tmp_path / "index.html").write_text(SITE)
        self.opening = Opening(shared=one_browser, folder=tmp_path, seed=5)

    @asynccontextmanager
    async def an_opening(self) -> AsyncGenerator[Opening]:
        """An opening on that site."""
        yield self.opening

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """A site in the environment's folder."""
        return Browser(".")

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Count, and fill in."""
        return [ClickAction(selector="#b"), TypeAction(selector="#i", text="Ann")]

    @classmethod
    def kept_actions(cls) -> Sequence[Action]:
        """What a field, a checkbox and the storage hold; the counter is a script's own."""
        typed = TypeAction(selector="#i", text="Ann")
        return [typed, ClickAction(selector="#c"), ClickAction(selector="#s"), TypeAction(text="a")]

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """A target that is not there, one of several, and a page off the list."""
        leave = CustomAction(action="goto", args={"url": "https://example.com"})
        return [ClickAction(selector="#none"), ClickAction(selector="p"), leave]

    @classmethod
    def other_actions(cls) -> Sequence[Action]:
        """Each of a browser's own actions."""
        choice = {"selector": "#k", "values": ["Blue"]}
        return [
            CustomAction(action="goto", args={"url": "/?other"}),
            CustomAction(action="back"),
            CustomAction(action="forward"),
            CustomAction(action="reload"),
            CustomAction(action="select_option", args=choice),
            CustomAction(action="answer_dialogs", args={"accept": False, "text": "no"}),
            CustomAction(action="switch_tab", args={"index": 1}),
            CustomAction(action="close_tab"),
        ]

    @classmethod
    def css_size(cls) -> tuple[int, int]:
        """The default viewport."""
        return (1280, 800)


# A small world that keeps the contract, and what breaks it.


class ToyWorld:
    """A number that can be added to, drawn as a grey field."""

    announced: ClassVar[Sequence[str]] = ()

    def __init__(self, opening: Opening) -> None:
        """Start at what the seed draws."""
        self.number = random.Random(opening.seed or 0).randrange(1000)
        self.closed = False

    async def act(self, action: Action) -> ActionEffect:
        """Wait, or add one."""
        self.check_open()
        match action:
            case WaitAction():
                await anyio.sleep(action.time / 1000)
            case CustomAction(action="add"):
                return await self.custom.perform(self, action)
            case _:
                self.refuse(action)
        return ActionEffect()

    async def add(self, times: int = 1) -> None:
        """Add one."""
        await anyio.lowlevel.checkpoint()
        self.number += times

    custom = actions(add)

    async def observe(self, look: Look) -> Observation:
        """The number in words and in a picture."""
        self.check_open()
        await anyio.lowlevel.checkpoint()
        return Observation(
            text=self.words()[: look.max_text_chars] if look.text else None,
            image=self.draw(look.image) if look.image else None,
        )

    async def snapshot(self) -> bytes:
        """The number."""
        self.check_open()
        return f"number {self.number}.".encode()

    async def restore(self, data: bytes) -> None:
        """Take the number up."""
        self.check_open()
        word, _, number = data.decode().partition(" ")
        if word != "number" or not number.endswith("."):
            self.closed = True
            raise EnvironmentFailed("This is not a snapshot of a toy.")
        self.number = int(number[:-1])

    async def close(self) -> None:
        """End it."""
        self.closed = True

    def check_open(self) -> None:
        """Raise where it was closed."""
        if self.closed:
            raise EnvironmentFailed("This world is closed.")

    def refuse(self, action: Action) -> None:
        """Raise for what cannot be done."""
        raise ActionFailed(f"There is no {action.type} here.")

    def words(self) -> str:
        """What it looks like."""
        return f"The number is {self.number}."

    def draw(self, kind: Literal["png", "jpeg"]) -> Screenshot:
        """A grey field."""
        return drawn(kind, (40, 20))


def drawn(kind: str, size: tuple[int, int], scale: float = 1.0) -> Screenshot:
    """A grey picture."""
    out = io.BytesIO()
    Image.new("RGB", size, "gray").save(out, kind.upper())
    return Screenshot.from_bytes(out.getvalue(), scale=scale)


class Toy(WorldSpec):
    """Declares toy worlds of one class."""

    name = "toy"
    actions = frozenset({"wait", "custom"})
    custom_actions = ToyWorld.custom
    has_screen = True
    replayable = True
    context_space = ContextSpace()

    def __init__(self, world_type: type[ToyWorld] = ToyWorld) -> None:
        """Remember the class."""
        self.world_type = world_type
        self.actions = frozenset({"wait", "custom", *world_type.announced})

    async def open(self, opening: Opening) -> ToyWorld:
        """Open one."""
        await anyio.lowlevel.checkpoint()
        return self.world_type(opening)


class ToyContract(WorldContract):
    """The contract of toys; not collected by itself, because its name does not start with Test."""

    spec: ClassVar[Any] = Toy()

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """Whichever toy is tried."""
        return cls.spec

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Add one."""
        return [CustomAction(action="add")]

    @classmethod
    def css_size(cls) -> tuple[int, int]:
        """As it is drawn."""
        return (40, 20)


@pytest.mark.anyio
class TestToy(ToyContract):
    """The toy as it should be."""


class SharesItsState(ToyWorld):
    """Every world adds to the same number."""

    total: ClassVar[list[int]] = [0]

    def words(self) -> str:
        return f"The number is {self.total[0]}."

    async def act(self, action: Action) -> ActionEffect:
        effect = await super().act(action)
        self.total[0] += isinstance(action, CustomAction)
        return effect


class TakesAnything(ToyWorld):
    """Unknown actions are ignored without a word."""

    def refuse(self, action: Action) -> None:
        return


class AnnouncesMoreThanItDoes(ToyWorld):
    """A drag is announced, and refused as any other action is."""

    announced = ("drag",)


class ChecksNoArguments(ToyWorld):
    """Its action takes whatever is sent."""

    async def act(self, action: Action) -> ActionEffect:
        if isinstance(action, CustomAction) and action.action == "add":
            action = CustomAction(action="add")
        return await super().act(action)


class NamesNoArgument(ToyWorld):
    """A wrong argument is refused without its name."""

    async def act(self, action: Action) -> ActionEffect:
        try:
            return await super().act(action)
        except ActionFailed:
            raise ActionFailed("This cannot be done.") from None


class RefusesByValueError(ToyWorld):
    """Refusals are no errors of the tree."""

    def refuse(self, action: Action) -> None:
        raise ValueError(action.type)


class ChangesWhatItRefuses(ToyWorld):
    """A refused action leaves a trace."""

    def refuse(self, action: Action) -> None:
        self.number += 1
        super().refuse(action)


class CountsItsObservers(ToyWorld):
    """Looking changes what is seen."""

    def words(self) -> str:
        self.number += 1
        return super().words()


class ClosesOnce(ToyWorld):
    """The second `close` fails."""

    async def close(self) -> None:
        self.check_open()
        await super().close()


class LivesAfterItsEnd(ToyWorld):
    """`close` has no consequences."""

    def check_open(self) -> None:
        return


class StaysLocked(ToyWorld):
    """A cancelled action leaves the world busy for good."""

    busy = False

    async def act(self, action: Action) -> ActionEffect:
        if self.busy:
            raise EnvironmentFailed("busy")
        self.busy = True
        effect = await super().act(action)
        self.busy = False
        return effect


class DrawsLots(ToyWorld):
    """Says that it can be replayed, and draws from a seed of its own."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self.number = random.SystemRandom().randrange(10**9)


class DrawsLotsUnasked(ToyWorld):
    """Where no seed was chosen, it draws one that nobody can repeat."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        if opening.seed is None:
            self.number = random.SystemRandom().randrange(10**9)


class RemembersOtherWorlds(ToyWorld):
    """What changed is told from what any world showed last."""

    looks: ClassVar[list[str]] = []

    async def observe(self, look: Look) -> Observation:
        seen = await super().observe(look)
        if look.text:
            self.looks.append(self.words())
        if not look.changes or len(self.looks) % 2:
            return seen
        return seen.model_copy(update={"text": f"{self.looks[0]} {len(self.looks)}"[:100]})


class AddsAsItWritesDown(ToyWorld):
    """Taking a snapshot is an action."""

    async def snapshot(self) -> bytes:
        self.number += 1
        return await super().snapshot()


class StartsAnew(ToyWorld):
    """It takes nothing up."""

    async def restore(self, data: bytes) -> None:
        number = self.number
        await super().restore(data)
        self.number = number


class AddsTwiceAfterwards(ToyWorld):
    """It looks as it did, and acts otherwise."""

    step = 1

    async def restore(self, data: bytes) -> None:
        await super().restore(data)
        self.step = 2

    async def act(self, action: Action) -> ActionEffect:
        effect = await super().act(action)
        if isinstance(action, CustomAction):
            self.number += self.step - 1
        return effect


class BelievesAnything(ToyWorld):
    """Whatever the bytes are, it takes them up."""

    async def restore(self, data: bytes) -> None:
        if data.endswith(b".") and data.startswith(b"number "):
            await super().restore(data)


class MisstatesItsSize(ToyWorld):
    """The picture is larger than it says."""

    def draw(self, kind: Literal["png", "jpeg"]) -> Screenshot:
        return super().draw(kind).model_copy(update={"width_px": 20})


class ForgetsItsScale(ToyWorld):
    """The picture has two pixels per CSS pixel, and a scale of 1."""

    def draw(self, kind: Literal["png", "jpeg"]) -> Screenshot:
        return drawn(kind, (80, 40))


class DrawsPngOnly(ToyWorld):
    """Whatever is asked for, a PNG comes."""

    def draw(self, kind: Literal["png", "jpeg"]) -> Screenshot:
        return super().draw("png")


class TalksTooLong(ToyWorld):
    """The limit of the text is not kept."""

    async def observe(self, look: Look) -> Observation:
        seen = await super().observe(look)
        return seen.model_copy(update={"text": "word " * 100}) if look.text else seen


class ShowsUnasked(ToyWorld):
    """A picture comes with every observation."""

    async def observe(self, look: Look) -> Observation:
        seen = await super().observe(look)
        return seen.model_copy(update={"image": self.draw("png")})


class KnowsOneTask(ToyWorld):
    """Only the task that opened it may act on it."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self.task = asyncio.current_task()

    async def act(self, action: Action) -> ActionEffect:
        if asyncio.current_task() is not self.task:
            raise RuntimeError("another task")
        return await super().act(action)


class ClosesItsSiblings(ToyWorld):
    """Closing one world closes all of them."""

    alive: ClassVar[list[ToyWorld]] = []

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self.alive.append(self)

    async def close(self) -> None:
        for world in self.alive:
            world.closed = True


BROKEN: dict[type[ToyWorld], str] = {
    SharesItsState: "test_two_worlds_are_independent",
    TakesAnything: "test_types_that_are_not_declared_are_refused_and_change_nothing",
    AnnouncesMoreThanItDoes: "test_what_is_announced_is_performed",
    ChecksNoArguments: "test_wrong_arguments_are_refused_and_named",
    NamesNoArgument: "test_wrong_arguments_are_refused_and_named",
    RefusesByValueError: "test_a_refused_action_changes_nothing",
    ChangesWhatItRefuses: "test_a_refused_action_changes_nothing",
    CountsItsObservers: "test_looking_changes_nothing",
    ClosesOnce: "test_closing_twice_is_no_error",
    LivesAfterItsEnd: "test_a_closed_world_refuses_clearly",
    StaysLocked: "test_a_cancelled_call_leaves_the_world_usable",
    DrawsLots: "test_a_replayable_world_comes_back_by_its_actions",
    RemembersOtherWorlds: "test_a_replayable_world_comes_back_by_its_actions",
    DrawsLotsUnasked: "test_a_replay_needs_no_seed",
    AddsAsItWritesDown: "test_a_snapshot_changes_nothing",
    StartsAnew: "test_a_restored_world_goes_on_as_it_was",
    AddsTwiceAfterwards: "test_a_restored_world_goes_on_as_it_was",
    BelievesAnything: "test_what_is_no_snapshot_is_refused",
    MisstatesItsSize: "test_pictures_decode_and_map_to_the_screen",
    ForgetsItsScale: "test_pictures_decode_and_map_to_the_screen",
    DrawsPngOnly: "test_pictures_decode_and_map_to_the_screen",
    TalksTooLong: "test_the_text_keeps_to_its_limit",
    ShowsUnasked: "test_only_what_was_asked_for_is_observed",
    KnowsOneTask: "test_calls_may_come_from_different_tasks",
    ClosesItsSiblings: "test_two_worlds_are_independent",
}


def checks() -> Iterable[str]:
    """The names of the contract's checks."""
    return [name for name in dir(WorldContract) if name.startswith("test_")]


@pytest.mark.anyio
@each_of("broken", BROKEN, ids=lambda world: world.__name__)
async def test_the_contract_catches(broken: type[ToyWorld]) -> None:
    """A world broken on purpose fails the check that is about it; the sound one passes all."""
    contract = type("Contract", (ToyContract,), {"spec": Toy(broken)})()
    failing: set[str] = set()
    for name in checks():
        try:
            await getattr(contract, name)()
        except Exception:  # noqa: BLE001  # how it fails is not the point
            failing.add(name)
    assert BROKEN[broken] in failing


def test_every_check_has_a_world_that_it_catches() -> None:
    """Checks that nothing was seen to fail are few, and each has its reason."""
    unproven = set(checks()) - set(BROKEN.values())
    assert unproven == {
        "test_the_spec_declares_what_a_session_asks_it",  # proven by the type checker first
        "test_an_action_that_works_returns_an_effect",  # the samples' own sanity
        "test_without_a_screen_there_is_no_picture",  # one half of ShowsUnasked
        "test_worlds_may_act_at_the_same_time",  # SharesItsState fails it too
        "test_a_cancelled_opening_does_not_spoil_the_next",  # needs a world with a resource
    }


@pytest.mark.anyio
async def test_one_call_makes_every_check_and_names_what_is_broken() -> None:
    """Without a class of tests; the text has the check, its claim and what was found."""
    add = [CustomAction(action="add")]
    await check_world(Toy(), changing_actions=add, css_size=(40, 20))
    with pytest.raises(ContractBroken) as broken:
        await check_world(Toy(AddsAsItWritesDown), changing_actions=add, css_size=(40, 20))
    assert str(broken.value).startswith("toy breaks the contract:\ntest_")
    assert (
        "test_a_snapshot_changes_nothing: A world of which a snapshot was taken looks and goes on "
        "as one of which none was.\n  ContractBroken: the snapshot shows" in str(broken.value)
    )
    with pytest.raises(ContractBroken, match="changed nothing"):
        await check_world(Toy(), changing_actions=[WaitAction(time=1)])


def test_the_contract_needs_no_pytest(tmp_path: Path) -> None:
    """It comes with the package, of which pytest is no dependency."""
    (tmp_path / "pytest.py").write_text("raise ImportError('not installed')")
    program = (
        "import anyio; from hud_mcp.testing import check_world; from hud_mcp import NoWorld; "
        "anyio.run(check_world, NoWorld())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
