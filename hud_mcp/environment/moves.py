"""Moves: a template's functions that change its world, or tell the agent something, as it works.

Each happens once in a session: at a time, after a step, or once a condition holds. The step at
which it happened records it, and a resumed session repeats it there.
"""

import asyncio
import inspect
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import Field

from hud_mcp.environment.agent_data import begin_grading, blame
from hud_mcp.environment.arguments import source_line
from hud_mcp.errors import BrokenByAgent, InvalidTemplate, MoveFailed
from hud_mcp.values.action import Value

__all__ = ["Move", "Moves", "WorldEvent"]

_MOVE_S = 30.0
"""The longest move; a call of the agent waits for it."""
_MOST_CHARS = 4000
"""The longest text of a move for the agent."""

Call = Callable[..., Any]
"""A plain or async function `(world, **arguments)`."""


class WorldEvent(Value):
    """A move that happened, in the record of its step."""

    move: str = Field(description="The function's name.")
    first: bool = Field(
        default=False, description="Whether it came before the step's actions, by the clock."
    )
    after_s: float = Field(default=0.0, ge=0, description="Seconds since the prompt.")
    text: str | None = Field(default=None, description="The agent's note in its next reply.")
    error: str | None = Field(
        default=None, description="The agent's doing that prevented it, or the reason of its end."
    )

    def __str__(self) -> str:
        """Return the event in a line, for people."""
        where = ", before the step" if self.first else ""
        said = "" if self.text is None else f": {self.text}"
        failed = "" if self.error is None else f", which failed: {self.error}"
        return f"{self.move} at {self.after_s:.1f} s{where}{said}{failed}"


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """One declared move; exactly one of `seconds`, `step` and `condition` says its time."""

    function: Call
    seconds: float | None = None
    step: int | None = None
    condition: Call | None = None

    @property
    def name(self) -> str:
        """Its name in the record."""
        return self.function.__name__

    def check(self, *, noun: str, known: Sequence[str], others: Sequence["Move"]) -> None:
        """Raise InvalidTemplate for a wrong time, an unknown argument, or a name that is taken."""
        where = source_line(self.function)
        for call in (self.function, self.condition or self.function):
            if not callable(call):
                raise InvalidTemplate(
                    f"{where}: expected a condition, a function, got {call!r:.60}."
                )
            unknown = [name for name in _taken(call)[0] if name not in known]
            if unknown:
                raise InvalidTemplate(
                    f"{source_line(call)}: a move of {noun} asks for {unknown[0]!r}; beside the "
                    f"world, the template takes: {', '.join(known) or 'nothing'}."
                )
        if self.seconds is not None and not 0 <= self.seconds < float("inf"):
            raise InvalidTemplate(f"{where}: `seconds` must be 0 or more, got {self.seconds!r}.")
        if self.step is not None and self.step < 1:
            raise InvalidTemplate(f"{where}: `step` counts from 1, got {self.step!r}.")
        if any(other.name == self.name for other in others):
            raise InvalidTemplate(
                f"{where}: {noun} has a move {self.name!r} already; the record tells moves apart "
                "by their names. Give this function another name."
            )


def _taken(call: Call) -> tuple[list[str], bool]:
    """Return the names of a move's arguments after the world, and whether it takes all."""
    every = list(inspect.signature(call).parameters.values())
    if not every or every[0].kind > inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise InvalidTemplate(
            f"{source_line(call)}: a move's first parameter receives the world; write "
            "`(world, ...)`, followed by arguments of the template."
        )
    named = [each.name for each in every[1:] if each.kind is not each.VAR_KEYWORD]
    return named, len(named) + 1 < len(every)


class Moves:
    """The moves of one life of a session: those to come, and notes that no reply has carried."""

    __slots__ = (
        "_arguments", "_coming", "_cut", "_declared", "_unwritten", "_world", "_zero_s", "untold",
    )  # fmt: skip

    def __init__(
        self,
        moves: Sequence[Move],
        *,
        arguments: Callable[[], Mapping[str, Any]],
        world: Callable[[], Any],
    ) -> None:
        self._declared = {move.name: move for move in moves}
        self._coming = list(moves)
        self._arguments = arguments
        self._world = world
        self._unwritten: list[WorldEvent] = []
        self._cut: asyncio.CancelledError | None = None
        self._zero_s = time.monotonic()
        self.untold: list[str] = []

    def start(self, elapsed_s: float = 0.0) -> None:
        """Start the clock, at the prompt or as far as the record goes."""
        self._zero_s = time.monotonic() - elapsed_s

    def restore(self, events: Sequence[WorldEvent], told: Sequence[str]) -> None:
        """Take over what happened by the record: it comes no more, and untold notes are kept."""
        done = {event.move for event in events}
        self._coming = [move for move in self._coming if move.name not in done]
        self.untold = [e.text for e in events if e.text is not None and e.text not in told]

    async def before(self, events: list[WorldEvent]) -> None:
        """Make the moves that are due by the clock, or raise `MoveFailed`, before a call acts."""
        # Of a call that was not recorded, such as one that asked its caller first.
        events.extend(self._unwritten)
        self._unwritten.clear()
        for move in [each for each in self._coming if self._is_time(each)]:
            await self._make(move, events, first=True)

    async def after(self, events: list[WorldEvent], number: int) -> None:
        """Make the moves that are due after step `number`, from 1; raises as `before` does."""
        for move in list(self._coming):
            is_due = self._is_time(move) or (move.step is not None and move.step <= number)
            if move.condition is not None:
                try:
                    is_due = bool(await self._call(move, move.condition))
                except BrokenByAgent:  # the agent's own doing, such as a file that it has removed
                    continue
                await self._leave_if_cut()
            if is_due:
                await self._make(move, events, first=False)

    def keep(self, events: Sequence[WorldEvent]) -> None:
        """Keep what happened at a call that is not recorded, for the record of the next one."""
        self._unwritten.extend(events)

    async def repeat(self, events: Sequence[WorldEvent], *, first: bool) -> None:
        """Make recorded moves again, at their place in a step, or raise `MoveFailed`."""
        for event in events:
            if event.first is not first:
                continue
            move = self._declared.get(event.move)
            if move is None:
                raise MoveFailed(f"its template has no move {event.move!r} any more")
            try:
                await self._call(move, move.function)
            except (BrokenByAgent, MoveFailed) as exc:
                if event.error is None or isinstance(exc, MoveFailed):
                    text = f"the move {event.move!r} was made before, and now it failed"
                    raise MoveFailed(f"{text}: {exc.__cause__ or exc}") from exc
            await self._leave_if_cut()

    def _is_time(self, move: Move) -> bool:
        return move.seconds is not None and time.monotonic() - self._zero_s >= move.seconds

    async def _make(self, move: Move, events: list[WorldEvent], *, first: bool) -> None:
        text, error, failed = None, None, None
        try:
            said = await self._call(move, move.function)
            text = None if said is None else str(said)[:_MOST_CHARS]
        except BrokenByAgent as exc:
            error = str(exc)
        except MoveFailed as exc:
            error, failed = exc.described, exc
        self._coming.remove(move)  # it is not tried again, whatever came of it
        after_s = round(max(0.0, time.monotonic() - self._zero_s), 3)
        event = WorldEvent(move=move.name, first=first, after_s=after_s, text=text, error=error)
        events.append(event)
        if text is not None:
            self.untold.append(text)
        if failed is not None:
            raise failed
        await self._leave_if_cut()

    async def _call(self, move: Move, call: Call) -> Any:
        """Call a function to its end, also if the agent's call is cancelled meanwhile."""
        self._cut = None
        making = asyncio.ensure_future(self._called(move, call))
        # A move that was cut off half-way could be neither repeated nor left out.
        with anyio.CancelScope(shield=True):
            while not making.done():
                try:
                    await asyncio.wait({making})
                except asyncio.CancelledError as exc:
                    self._cut = exc
        return making.result()

    async def _leave_if_cut(self) -> None:
        """Let the cancellation of the agent's call take effect, once a function has ended."""
        cut, self._cut = self._cut, None
        if cut is not None:
            raise cut
        await anyio.lowlevel.checkpoint_if_cancelled()

    async def _called(self, move: Move, call: Call) -> Any:
        begin_grading("")  # an error that is about the agent's data is then the agent's doing
        names, takes_all = _taken(call)
        try:
            known = self._arguments()
            given = known if takes_all else {name: known[name] for name in names}
            async with asyncio.timeout(_MOVE_S):
                value: Any = call(self._world(), **given)
                return await value if inspect.isawaitable(value) else value
        except (Exception, SystemExit, BaseExceptionGroup) as exc:
            broken = blame(exc)
            if isinstance(broken, BrokenByAgent):
                raise broken from exc
            raise _failure(move, call, exc) from exc


def _failure(move: Move, call: Call, exc: BaseException) -> MoveFailed:
    """Return the error of a move that raised: the record's with its line, the agent's without."""
    where = source_line(call)
    file = where.rpartition(":")[0]
    frames = [f for f in traceback.extract_tb(exc.__traceback__) if f.filename == file]
    place = f"{file}:{frames[-1].lineno}" if frames else where
    said = f"it took longer than {_MOVE_S:g} s" if isinstance(exc, TimeoutError) else str(exc)
    failed = MoveFailed("A change of this task's world failed, which is no doing of yours.")
    failed.described = f"{place}: the move {move.name!r}: {type(exc).__name__}: {said}"
    return failed
