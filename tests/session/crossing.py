"""Pads that can be held up or broken at any moment, and the sessions on them."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from open_sessions import opened
from slate import Moments, Slate, SlateSpec

from hud_mcp.environment import Environment
from hud_mcp.errors import (
    EnvironmentFailed,
    WorldDied,
)
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.action import ActionEffect, ClickAction, MoveAction, TypeAction
from hud_mcp.values.grade import Grade
from hud_mcp.values.observation import Look, Observation
from hud_mcp.world import Opening

ME = Caller()
LOOK = Look()


class Pad(Slate):
    """A slate that can fall: it is dead then."""

    def __init__(self, spec: "PadSpec") -> None:
        super().__init__(spec.moments)
        self.broken: str | None = None
        self.spec = spec

    @property
    def died(self) -> str | None:
        """Why it is broken."""
        return self.broken

    def fall(self) -> EnvironmentFailed:
        """Break it."""
        self.broken = "The pad fell."
        return EnvironmentFailed(self.broken)

    def check(self) -> None:
        """Refuse to be used once it is broken."""
        if self.broken:
            raise EnvironmentFailed(self.broken)

    async def act(self, action: object) -> ActionEffect:
        """Write a word; `drop` breaks it, and so does whoever lets go of it in the middle."""
        self.check()
        if isinstance(action, ClickAction | MoveAction):
            return ActionEffect(text=f"at {action.point}")
        if isinstance(action, TypeAction) and action.text == "drop":
            raise self.fall()
        try:
            return await super().act(action)
        except asyncio.CancelledError:
            raise self.fall() from None

    async def observe(self, look: Look) -> Observation:
        """The words."""
        self.check()
        return await super().observe(look)

    async def close(self) -> None:
        """Count it as closed."""
        await self.moments.pass_by("close")
        self.spec.closed += 1


class PadSpec(SlateSpec):
    """Declares a pad.

    Attributes:
        opened: How many there were.
        closed: How many of them are closed.
        graded: The answers that a template graded.
    """

    actions = frozenset({"type", "click", "move"})
    has_screen = False
    world_type: Any = Pad

    def __init__(self, moments: Moments, kind: type[Pad] = Pad, *, replayable: bool = True) -> None:
        super().__init__(moments, replayable=replayable)
        self.kind = kind
        self.opened = self.closed = 0
        self.graded: list[str] = []

    async def open(self, _opening: Opening) -> Pad:
        """Take one."""
        await self.moments.pass_by("open")
        self.opened += 1
        return self.kind(self)


def pads(spec: PadSpec) -> Environment:
    """An environment that says what was written, and gives 1.0 for tea."""
    env = Environment("pads", world=spec)

    @env.template()
    async def fill(pad: Pad) -> Any:
        await breaking(spec.moments, "setup")
        answer = yield "Write tea."
        await breaking(spec.moments, "grade")
        spec.graded.append(answer)
        yield Grade(reward=float(pad.words == ["tea"]), content=f"{' '.join(pad.words)}; {answer}")

    @env.tool
    async def fail(pad: Pad) -> str:
        """Fail."""
        raise RuntimeError("not today")

    return env


async def breaking(moments: Moments, moment: str) -> None:
    """Pass a moment as a browser's call does, which fails as its process is ended."""
    try:
        await moments.pass_by(moment)
    except asyncio.CancelledError:
        raise EnvironmentFailed("The browser has been closed.") from None


@asynccontextmanager
async def serving(
    store: Path | Store, env: Environment, **limits: float
) -> AsyncIterator[Sessions]:
    """What a server has, until it stops."""
    kept = store if isinstance(store, Store) else Store(store)
    sessions = Sessions([env], store=kept, limits=Limits.model_validate(limits))
    async with opened(sessions):
        yield sessions


async def begin(sessions: Sessions, caller: Caller = ME, **more: Any) -> Session:
    """A session that has written tea."""
    session = await sessions.start(sessions.catalogue.mint("fill", {}), caller=caller, **more)
    await write(session, "tea")
    return session


async def write(session: Session, word: str) -> str | None:
    """Write a word; what is seen then."""
    return (await session.step((TypeAction(text=word),), LOOK)).result.observation.text


async def drop(session: Session) -> None:
    """Break its world in a call."""
    with suppress(WorldDied):
        await write(session, "drop")


async def find(sessions: Sessions, session_id: str, caller: Caller = ME) -> Session:
    """The session that goes on."""
    found = await sessions.find(session_id, caller)
    assert isinstance(found, Session)
    return found


async def a_while() -> None:
    """Let whatever can happen, happen: a wait that is passed by would be over."""
    for _ in range(40):
        await anyio.lowlevel.checkpoint()


def tell(store: Path, *statements: str) -> None:
    """Change a store's file behind its server's back."""
    with sqlite3.connect(store, timeout=20, isolation_level=None) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


STOLEN = "UPDATE sessions SET owner = 'srv-another'"


def refusing(what: str, *, when: str = "1") -> str:
    """A trigger by which a store's disk refuses one kind of write."""
    return (
        f"CREATE TRIGGER refusing BEFORE {what} WHEN {when} "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )


ACCEPTING = "DROP TRIGGER refusing"
