"""Slates that die, hang and come back as a test tells them, and the sessions on them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from open_sessions import opened

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    EnvironmentFailed,
)
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import Action, ActionEffect, CustomAction
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening, WorldSpec

LOOK = Look()
TASK = Task(env="slates", template="sum")


@dataclass
class Faults:
    """What goes wrong with slates: shared by all that a spec opens, as a machine's are.

    Attributes:
        act: Called with each action and its slate, before it is done.
        look: Called with the slate at each look.
        snapshot: Called at each snapshot.
        opened: How many slates there were.
    """

    act: Callable[[str, "Slate"], None] = lambda _name, _slate: None
    look: Callable[["Slate"], None] = lambda _slate: None
    snapshot: Callable[["Slate"], None] = lambda _slate: None
    hangs: bool = False
    opened: int = 0
    names: list[str] = field(default_factory=list[str])


class Slate:
    """A list of numbers that an agent adds to."""

    def __init__(self, faults: Faults) -> None:
        self.numbers: list[int] = []
        self.broken: str | None = None
        self._faults = faults

    @property
    def died(self) -> str | None:
        """Why it is broken."""
        return self.broken

    def check(self) -> None:
        """Refuse to be used once it is broken."""
        if self.broken:
            raise EnvironmentFailed(self.broken)

    async def act(self, action: Action) -> ActionEffect:
        """Add a number."""
        self.check()
        assert isinstance(action, CustomAction)
        self._faults.names.append(action.action)
        self._faults.act(action.action, self)
        self.numbers.append(int((action.args or {}).get("number", 0)))
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:
        """Every number."""
        self.check()
        self._faults.look(self)
        if self._faults.hangs:
            await anyio.sleep_forever()
        return Observation(text=f"{self.numbers}" if look.text else None)

    async def snapshot(self) -> bytes:
        """The numbers, as text."""
        self.check()
        self._faults.snapshot(self)
        return ",".join(map(str, self.numbers)).encode()

    async def restore(self, data: bytes) -> None:
        """Take the numbers up."""
        self.numbers = [int(each) for each in data.decode().split(",") if each]

    async def close(self) -> None:
        """Nothing is open."""


class SlateSpec(WorldSpec):
    """Declares a slate."""

    name = "slate"
    world_type = Slate
    actions = frozenset({"custom"})
    has_screen = False
    context_space = ContextSpace()

    def __init__(self, faults: Faults, *, replayable: bool) -> None:
        self.faults = faults
        self.replayable = replayable

    async def open(self, _opening: Opening) -> Slate:
        """Take one."""
        self.faults.opened += 1
        return Slate(self.faults)


def slates(world: SlateSpec) -> Environment:
    """An environment of slates; `sum` grades 1.0 where the slate has what it says."""
    env = Environment("slates", world=world)

    @env.template(id="sum")
    async def total(slate: Slate):  # noqa: ANN202
        answer = yield "Fill the slate; answer with the sum."
        slate.check()
        seen = (await slate.observe(LOOK)).text
        yield float(answer == str(sum(slate.numbers)) and seen == str(slate.numbers))

    return env


@asynccontextmanager
async def registry(
    folder: Path,
    faults: Faults,
    *,
    replayable: bool = True,
    policy: str | None = None,
    **limits: float,
) -> AsyncGenerator[Sessions]:
    """Sessions on slates, closed at the end."""
    env = slates(SlateSpec(faults, replayable=replayable))
    sessions = Sessions(
        [env],
        store=Store(folder / "s.sqlite3"),
        limits=Limits.model_validate(limits),
        reward_policy=policy,
    )
    async with opened(sessions):
        yield sessions


async def begin(sessions: Sessions) -> Session:
    """A session of the task."""
    return await sessions.start(TASK, caller=Caller(connection="c"))


async def add(session: Session, number: int, name: str = "add") -> str:
    """Add a number; what is seen then."""
    action = CustomAction(action=name, args={"number": number})
    stepped = await session.step((action,), LOOK)
    assert stepped.error is None
    return stepped.result.observation.text or ""


async def answer(session: Session, text: str, way: str):  # noqa: ANN201
    """Answer as the tool `response` does, or with a response action."""
    if way == "step":
        from hud_mcp.values.action import ResponseAction  # noqa: PLC0415

        stepped = await session.step((ResponseAction(text=text),), LOOK)
        assert stepped.answered
    receipt = await session.respond(text)
    assert receipt is not None
    return receipt


class Gated(SlateSpec):
    """Slates of which every one but the first waits to be opened."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults, replayable=True)
        self.waits = anyio.Event()
        self.gate = anyio.Event()

    async def open(self, opening: Opening) -> Slate:
        """Take one; a later one, when it is let through."""
        if self.faults.opened:
            self.waits.set()
            await self.gate.wait()
        return await super().open(opening)
