"""Direct access to a world of arrays as to a robot: `openpi/0`, by which HUD's policies step it.

Each action is a step of the session, and recorded like a step over MCP. Rewards are not sent.
"""

import asyncio
import base64
import contextlib
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base import libraries
from hud_mcp.base.listening import LOOPBACK, port_of
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.world import EndpointAccess, FindSession
from hud_mcp.errors import ActionFailed, HudMcpError
from hud_mcp.plugins.hud.wire.openpi import is_installed, pack, unpack
from hud_mcp.plugins.hud.wire.requests import in_hud_words
from hud_mcp.session.draft import Stepped
from hud_mcp.session.session import Session
from hud_mcp.values.action import CustomAction
from hud_mcp.values.capability import Capability
from hud_mcp.values.observation import Look

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


logger = logging.getLogger(__name__)

NAME = "robot"
_PROTOCOL = "openpi/0"
_CLAIM_S = 30.0
_FRAME_BYTES = 1024 * 1024
_CLOSE_S = 1.0
_RATE = 10
_IMAGE_RANK = 3
_COLOURS = (1, 3, 4)
_FIRST = 'the first frame must be {"claim": …}'
_MOST_ACTIONS = 1000
"""The most actions in a frame."""

Space = Mapping[str, Any]
"""A space as a world describes it to programs."""


def publish(world: WorldSpec, environment: str) -> "RobotEndpoint | None":
    """Return the endpoint of a world that arrays can step; if it cannot, log the reason."""
    spaces = world.spaces
    problem = None
    if spaces is None or _count(spaces["action"]) is None:
        problem = "an action of it is not an array of numbers"
    elif not any(_arrays(spaces["observation"])):
        problem = "nothing of what it shows is an array of numbers"
    elif not is_installed():
        problem = "it needs `pip install hud-mcp[robot]`"
    if spaces is None or problem is not None:
        logger.info("%s is not published as %s: %s", environment, _PROTOCOL, problem)
        return None
    return RobotEndpoint(spaces, _contract(environment, spaces, _action_text(world)))


class RobotEndpoint:
    """An `Endpoint` to an environment's worlds, with their contract for a policy."""

    name = NAME

    def __init__(self, spaces: Mapping[str, Space], contract: dict[str, Any]) -> None:
        self._spaces = spaces
        self._contract = contract
        self._server: Any = None
        self._accesses: dict[str, _RobotAccess] = {}

    def check(self) -> None:
        """Do nothing: `publish` has checked the machine."""

    async def open(self) -> None:
        """Listen on a loopback port."""
        self._server = await libraries.websockets.serve(
            self._serve,
            LOOPBACK,
            0,
            process_request=self._let_in,
            max_size=_FRAME_BYTES,
            close_timeout=_CLOSE_S,
            ping_interval=None,  # an environment may take its time
            compression=None,
            logger=logging.getLogger(f"{__name__}.websockets"),
        )

    @property
    def address(self) -> Capability:
        """The address of the server."""
        return self._capability("")

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make an address for one session that nobody can guess."""
        path = f"/{secrets.token_urlsafe(24)}"
        find = cast("Callable[[], Awaitable[Session]]", find_session)  # it steps, as no other does
        access = _RobotAccess(self._capability(path), find, lambda: self._accesses.pop(path, None))
        self._accesses[path] = access
        return access

    async def close(self) -> None:
        """Stop listening. It may be called twice."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._server.wait_closed()

    def _capability(self, path: str) -> Capability:
        url = f"ws://{LOOPBACK}:{port_of(self._server)}{path}"
        return Capability.robot(name=NAME, url=url, contract=self._contract)

    def _let_in(self, connection: Any, request: Any) -> Any:
        """Refuse an unknown address, and a page in a browser."""
        # Browsers name an origin: no page of a site that a user visits may move a robot.
        if request.path not in self._accesses or "Origin" in request.headers:
            return connection.respond(404, "There is no such robot.\n")
        return None

    async def _serve(self, socket: Any) -> None:
        access = self._accesses.get(socket.request.path)
        if access is None:  # its session has ended since it was let in
            return
        access.sockets.add(socket)
        try:
            said = await self._converse(socket, access)
            await socket.send(said)  # a frame of text is an error, by the protocol
        except libraries.websockets.ConnectionClosed:
            logger.debug("a robot's peer has left")
        finally:
            access.sockets.discard(socket)

    async def _converse(self, socket: Any, access: "_RobotAccess") -> str:
        """Step until the peer leaves, or return the error to send."""
        try:
            await socket.send(pack({"claim_required": True}))
            try:
                async with asyncio.timeout(_CLAIM_S):
                    first = _message(await socket.recv())
            except TimeoutError:
                return f"{_FIRST}, and did not come"
            if "claim" not in first:
                return _FIRST
            session = await access.find_session()
            stepped = await session.step((), Look(text=False, values=True), deliver_image=False)
            while True:
                await socket.send(self._observation(access, session, stepped))
                actions = self._actions(_message(await socket.recv()))
                session = await access.find_session()
                stepped = await _step(session, actions)
        except (HudMcpError, ValueError) as exc:
            return in_hud_words(str(exc))

    def _actions(self, message: Mapping[str, Any]) -> list[Any]:
        """Return the actions of a frame as JSON; ValueError says that it has none."""
        given: Any = message.get("actions")
        space = self._spaces["action"]
        count = _count(space) or 1
        if not hasattr(given, "ndim") or not given.size or given.size % count:
            raise ValueError(f"a frame has `actions`, an array of {count} numbers")
        rows: NDArray[Any] = given.reshape(-1, count)
        if len(rows) > _MOST_ACTIONS:
            raise ValueError(f"a frame has at most {_MOST_ACTIONS} actions")
        return [_plain(row, space) for row in rows]

    def _observation(self, access: "_RobotAccess", session: Session, stepped: Stepped) -> bytes:
        if stepped.error is not None:
            raise ActionFailed(stepped.error)
        seen = _numbers(stepped.result.observation.values, self._spaces["observation"])
        if stepped.result.terminated or stepped.result.truncated:
            access.ended = session.id
        return pack({**dict(seen), "terminated": access.ended == session.id})


class _RobotAccess:
    """One session's address. An `EndpointAccess`.

    `ended` is the id of the session whose episode is over, which a look does not tell.
    """

    def __init__(
        self, capability: Capability, find_session: Callable[[], Awaitable[Session]], forget: Any
    ) -> None:
        self.capability = capability
        self.find_session = find_session
        self.sockets: set[Any] = set()
        self.ended: str | None = None
        self._forget = forget

    async def close(self) -> None:
        """Forget the address, and drop its connections."""
        self._forget()
        for socket in list(self.sockets):
            socket.transport.abort()


async def _step(session: Session, actions: list[Any]) -> Stepped:
    action = CustomAction(action="step", args={"actions": actions})
    look = Look(text=False, values=True)
    return await session.step((action,), look, kind="act", deliver_image=False)


def _message(frame: bytes | str) -> dict[str, Any]:
    """Read a peer's frame; ValueError says that it is not an object."""
    found: Any = None if isinstance(frame, str) else unpack(frame)
    if not isinstance(found, dict):
        raise ValueError("a frame is a MessagePack map")  # noqa: TRY004  # the value came from outside
    return cast("dict[str, Any]", found)


def _contract(name: str, spaces: Mapping[str, Space], action_text: str) -> dict[str, Any]:
    action = spaces["action"]
    count = _count(action) or 1
    features: dict[str, Any] = {
        key: {"role": "observation", "dtype": dtype, "shape": shape}
        | (
            {"type": "rgb"}
            if _is_picture(shape, dtype)
            else {"names": [f"{key}_{i}" for i in range(math.prod(shape))]}
        )
        for key, dtype, shape in _arrays(spaces["observation"])
    }
    moves: dict[str, Any] = {
        "role": "action",
        "dtype": "float32",
        "shape": [count],
        "names": [f"action_{i}" for i in range(count)],
        "description": action_text,
    }
    features["action"] = moves
    low, high = _limits(action)
    if low is not None and all(map(math.isfinite, [*low, *high])):
        moves["limits"] = {"min": low, "max": high}
    return {"robot_type": name, "control_rate": _RATE, "features": features}


def _action_text(world: WorldSpec) -> str:
    arguments = world.custom_actions.get("step", {}).get("properties", {})
    return str(arguments.get("action", {}).get("description", ""))


def _limits(space: Space) -> tuple[Any, Any]:
    match space["space"]:
        case "Box":
            low, high = (_decode(space[end]).reshape(-1).tolist() for end in ("low", "high"))
            return low, high
        case "Discrete":
            return [space["start"]], [space["start"] + space["n"] - 1]
        case _:
            return None, None


def _form(space: Space) -> "tuple[tuple[int, ...], np.dtype[Any]] | None":
    """Return the shape and the kind of number of a space's arrays; None if it has no arrays."""
    match space["space"]:
        case "Box":
            return tuple(space["low"]["shape"]), libraries.numpy.dtype(space["dtype"])
        case "Discrete":
            return (), libraries.numpy.dtype("int64")
        case "MultiDiscrete":
            return libraries.numpy.shape(space["nvec"]), libraries.numpy.dtype("int64")
        case "MultiBinary":
            return tuple(space["shape"]), libraries.numpy.dtype("int8")
        case _:
            return None


def _decode(raw: Any) -> "NDArray[Any]":
    """Read an array as a world writes it for programs: its bytes in base64, or plain numbers."""
    if isinstance(raw, Mapping):
        array = cast("Mapping[str, Any]", raw)
        data = libraries.numpy.frombuffer(base64.b64decode(array["array"]), dtype=array["dtype"])
        return data.reshape(array["shape"])
    return libraries.numpy.asarray(raw)


def _count(space: Space) -> int | None:
    """Return the number of numbers in an action; None if an action is not an array."""
    form = _form(space)
    return None if form is None else math.prod(form[0] or (1,))


def _plain(row: "NDArray[Any]", space: Space) -> Any:
    """Return one action as JSON. ValueError says that the space needs whole numbers."""
    shape, dtype = _form(space) or ((), libraries.numpy.dtype("int64"))
    if dtype.kind == "f":
        return row.reshape(shape).tolist()
    if not all(float(number).is_integer() for number in row):
        raise ValueError("this action takes whole numbers")
    whole = row.astype("int64")
    return int(whole[0]) if space["space"] == "Discrete" else whole.reshape(shape).tolist()


def _arrays(space: Space) -> "Iterator[tuple[str, str, list[int]]]":
    """Yield the name, the kind of number and the shape of each array of an observation."""
    for name, part, _ in _leaves(space):
        form = _form(part)
        if form is not None and form[1].kind in "biuf":
            yield name, str(form[1]), list(form[0] or (1,))


def _numbers(seen: Any, space: Space) -> "Iterator[tuple[str, NDArray[Any]]]":
    for name, part, value in _leaves(space, seen):
        form = _form(part)
        if form is not None:
            shape, dtype = form
            yield name, _decode(value).astype(dtype, copy=False).reshape(shape or (1,))


def _leaves(space: Space, value: Any = None, name: str = "") -> Iterator[tuple[str, Space, Any]]:
    """Yield each space of a nest of dicts, with its path and its part of the value."""
    if space["space"] != "Dict":
        yield name or "obs", space, value
        return
    for key, part in space["parts"].items():
        inner = None if value is None else value["parts"][key]
        yield from _leaves(part, inner, f"{name}/{key}" if name else str(key))


def _is_picture(shape: list[int], dtype: str) -> bool:
    return len(shape) == _IMAGE_RANK and shape[-1] in _COLOURS and dtype == "uint8"
