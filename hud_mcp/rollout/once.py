"""The rules by which a call is done once, whatever becomes of the server meanwhile.

A call whose reply was lost is made again if it may be made twice. For a step, the number of steps
before it tells whether it was performed. An agent's process and the job's runner follow the same
rules.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from hud_mcp.agents.agent import Reply
from hud_mcp.errors import HudMcpError, SessionResuming, WorldDied
from hud_mcp.session.receipts import NOTHING_DONE

__all__ = [
    "SUSPECT",
    "ConnectionLost",
    "ServerLost",
    "give_up_on_deaths",
    "repeat",
    "settled",
    "step_once",
]

T = TypeVar("T")

SUSPECT = 2
"""After so many losses in a row, a call is made while no other such call is."""
_LOSSES = 3
"""A call that meets more deaths than this in a row may be what kills its servers."""
_DEATHS = 3
"""A step that finds its world dead, and does nothing, is made again at most this often in a row."""
_PAUSE_S = 0.05


class ConnectionLost(HudMcpError):
    """No reply came, as the server died. The call may or may not have been performed."""


class ServerLost(HudMcpError):
    """The server of a run died, and no other one can be had. The record keeps the steps so far."""


GiveUp = Callable[[ConnectionLost, int], None]
"""Called with a loss, and with the number of losses in a row; it raises to make no other try."""


def give_up_on_deaths(exc: ConnectionLost, losses: int) -> None:
    """Give up a call that has met death after death.

    Raises:
        ServerLost: It was the last try.
    """
    if losses > _LOSSES:
        raise ServerLost(
            f"A call of this session was made {losses} times, and its servers died each time."
        ) from exc


async def repeat(call: Callable[[bool], Awaitable[T]], *, give_up: GiveUp = give_up_on_deaths) -> T:
    """Make a call that may be made twice, until a server replies to it.

    The call learns whether it is a suspect. `give_up` decides after each loss whether another try
    is made.

    Raises:
        HudMcpError: `give_up` has raised it; by default `ServerLost`.
    """
    losses = 0
    while True:
        try:
            return await call(losses >= SUSPECT)
        except ConnectionLost as exc:
            losses += 1
            give_up(exc, losses)
            await anyio.sleep(_PAUSE_S)


async def settled(call: Callable[[], Awaitable[Reply]]) -> Reply:
    """Make a call again while its session is being resumed, which takes a while."""
    while True:
        reply = await call()
        if reply.error_kind != SessionResuming.__name__:
            return reply
        await anyio.sleep(_PAUSE_S)


async def step_once(
    before: int,
    send: Callable[[int], Awaitable[Reply]],
    count: Callable[[], Awaitable[int]],
) -> tuple[int, Reply]:
    """Make a step. Make it again if its world had died before the step and is back.

    Both functions work with the number of steps before the step, which is returned beside the
    reply.
    """
    reply = await send(before)
    for _ in range(_DEATHS):
        # Such a step was refused: the record has no trace of it, so it can be made again.
        known = reply.error_kind == WorldDied.__name__
        if not (reply.is_error and known and NOTHING_DONE in reply.text):
            break
        before = await count()
        reply = await send(before)
    return before, reply
