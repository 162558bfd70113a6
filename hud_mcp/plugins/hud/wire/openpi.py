"""`openpi/0`: its frames, which are MessagePack with arrays over a WebSocket, and its client.

A connection claims one robot, and receives its observation now and after each action. HUD's server
drops a connection that is silent for half a minute. Therefore each call has a new connection.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud import wire

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_CONNECT_S = 20.0
_CLOSE_S = 2.0
_STEP_S = 600.0
"""Seconds for one step of a simulator; the session's own limit is usually shorter."""
_FREE_S = 5.0
"""Seconds for which the former connection may still hold the robot."""
_FREE_STEP_S = 0.05
_FRAME_BYTES = 64 * 1024 * 1024


_NUMBER = re.compile(r"[<>=|]?(\?|b1|[iu][1248]|f(2|4|8|12|16))|bool|u?int\d{1,2}|float\d{2,3}")
"""NumPy's names of the numbers that arrays may hold: bool, whole numbers and fractions."""


def pack(value: Any) -> bytes:
    """Write a value with arrays of numbers as MessagePack."""

    def write(array: "NDArray[Any]") -> dict[bytes, Any]:
        return {
            b"__ndarray__": True,
            b"data": array.tobytes(),
            b"dtype": array.dtype.str,
            b"shape": array.shape,
        }

    return wire.msgpack.packb(value, default=write)


def unpack(frame: bytes) -> Any:
    """Read a value, or raise ValueError.

    Its only objects are arrays, none larger than the frame.
    """

    def read(found: dict[Any, Any]) -> Any:
        if b"__ndarray__" in found:
            shape, data = tuple(found[b"shape"]), found[b"data"]
            if not isinstance(data, bytes):  # without any, NumPy takes memory of its own
                raise ValueError("the data of an array are bytes")
            return libraries.numpy.ndarray(shape, _number_type(found[b"dtype"]), data)
        if b"__npgeneric__" in found:
            return _number_type(found[b"dtype"]).type(found[b"data"]).item()
        return found

    try:
        return wire.msgpack.unpackb(frame, object_hook=read)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
        raise ValueError(str(exc)) from exc


def _number_type(name: Any) -> "np.dtype[Any]":
    # NumPy reads more than names, as Python: what comes is not for it to judge.
    if not isinstance(name, str) or not _NUMBER.fullmatch(name):
        raise ValueError(f"an array of {str(name)[:100]!r}, and not of numbers")
    return libraries.numpy.dtype(name)


@dataclass(frozen=True)
class Seen:
    """One observation: the arrays by sensor, and the last step's reward if the server tells it."""

    data: "Mapping[str, NDArray[Any]]"
    is_over: bool
    reward: float | None = None


class Wire:
    """A connection that has claimed a robot, with the last observation. Made by `claim`."""

    def __init__(self, socket: Any, seen: Seen) -> None:
        self._socket = socket
        self.seen = seen

    async def move(self, action: Sequence[float]) -> Seen:
        """Send one action, and wait for its observation.

        EnvironmentFailed has the server's error. If the connection broke (OSError,
        WebSocketException, TimeoutError), the robot may have moved.
        """
        await self._socket.send(
            pack({"actions": libraries.numpy.asarray(action, dtype=libraries.numpy.float32)})
        )
        self.seen = await _observation(self._socket, _STEP_S)
        return self.seen


def is_installed() -> bool:
    """Whether the libraries of this wire are installed."""
    return all(find_spec(name) for name in ("msgpack", "numpy", "websockets"))


@asynccontextmanager
async def claim(url: str, token: str | None) -> AsyncGenerator[Wire]:
    """Connect, claim a robot, and observe it; after the block it waits.

    Raises:
        EnvironmentFailed: No robot can be claimed; the text has the server's error.
        OSError, websockets.WebSocketException, TimeoutError: Nothing answers there.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _FREE_S
    while True:
        socket = await _connect(url)
        try:
            first: Any = _read(await _frame(socket, _CONNECT_S))
            asks = isinstance(first, dict) and bool(cast("Any", first).get("claim_required"))
            if asks or token is not None:
                await socket.send(pack({"claim": token}))
            wire = Wire(socket, await _observation(socket, _STEP_S))
        except EnvironmentFailed as exc:
            await socket.close()
            if "live connection" in str(exc) and loop.time() < end:
                await asyncio.sleep(_FREE_STEP_S)  # until it notices that ours has ended
                continue
            raise
        except BaseException:
            socket.transport.abort()
            raise
        break
    try:
        yield wire
    finally:
        await socket.close()


async def _connect(url: str) -> Any:
    return await libraries.websockets.connect(
        url,
        max_size=_FRAME_BYTES,
        open_timeout=_CONNECT_S,
        close_timeout=_CLOSE_S,
        ping_interval=None,  # a simulator may be busy for longer than any
        compression=None,
        proxy=None,
    )


async def _frame(socket: Any, within_s: float) -> bytes:
    """Return the next frame; by the protocol, a frame of text is an error."""
    async with asyncio.timeout(within_s):
        frame: bytes | str = await socket.recv()
    if isinstance(frame, str):
        said = [line.strip() for line in frame.splitlines() if line.strip()] or ["nothing"]
        raise EnvironmentFailed(f"its server reports an error: {said[-1][:300]}")
    return frame


async def _observation(socket: Any, within_s: float) -> Seen:
    found: Any = _read(await _frame(socket, within_s))
    if not isinstance(found, dict):
        raise EnvironmentFailed("its server sends something other than an observation.")
    rest = cast("dict[str, Any]", found)
    data = {str(name): value for name, value in rest.items() if hasattr(value, "ndim")}
    reward: Any = rest.get("reward")
    is_number = isinstance(reward, int | float) and math.isfinite(reward)
    over: Any = rest.get("terminated", False)
    for name in ("terminated", "reward"):
        data.pop(name, None)
    return Seen(data, _is_true(over), float(reward) if is_number else None)


def _is_true(given: Any) -> bool:
    return bool(given.any()) if hasattr(given, "any") else bool(given)


def _read(frame: bytes) -> Any:
    try:
        return unpack(frame)
    except ValueError as exc:
        raise EnvironmentFailed(f"its server does not speak openpi/0: {exc}") from exc
