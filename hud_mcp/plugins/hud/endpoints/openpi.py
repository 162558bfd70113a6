"""Direct access to a Gymnasium world as to a robot: `openpi/0`, so that HUD's policies can step it.

Each action is a step of the session, recorded as one that came over MCP; rewards stay here.
"""

import asyncio
import contextlib
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base.serving.listening import LOOPBACK, port_of
from hud_mcp.environment.world import EndpointAccess, FindSession
from hud_mcp.errors import ActionFailed, HudMcpError
from hud_mcp.plugins.gymnasium.world import Gymnasium
from hud_mcp.plugins.hud.endpoints import libraries
from hud_mcp.plugins.hud.endpoints.arrays import are_installed, pack, unpack
from hud_mcp.plugins.hud.wire.words import in_hud_words
from hud_mcp.session.session import Session, Stepped
from hud_mcp.values.action import CustomAction
from hud_mcp.values.capability import Capability
from hud_mcp.values.observation import Look

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RobotEndpoint", "publish"]

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
"""How many actions a frame may hold."""

Space = Mapping[str, Any]
"""A space as the world describes it to programs."""


def publish(world: Gymnasium, environment: str) -> "RobotEndpoint | None":
    """The endpoint of a world that arrays can step; else the log says why there is none."""
    spaces = world.spaces
    problem = None
    if spaces is None or _count(spaces["action"]) is None:
        problem = "an action of it is not an array of numbers"
    elif not any(_arrays(spaces["observation"])):
        problem = "nothing of what it shows is an array of numbers"
    elif not (are_installed() and find_spec("websockets")):
        problem = "it needs `pip install hud-mcp[robot]`"
    if spaces is None or problem is not None:
        logger.info("%s is not published as %s: %s", environment, _PROTOCOL, problem)
        return None
    return RobotEndpoint(spaces, _contract(environment, spaces, world.action_schema))


class RobotEndpoint:
    """A `Endpoint` to the Gymnasium environments of an environment's sessions.

    Args:
        spaces: Those of its actions and observations.
        contract: What a policy is told of them.
    """

    name = NAME

    def __init__(self, spaces: dict[str, Space], contract: dict[str, Any]) -> None:
        self._spaces = spaces
        self._contract = contract
        self._server: Any = None
        self._accesses: dict[str, _RobotAccess] = {}

    def check(self) -> None:
        """Whether it can be opened is known already."""

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
        """Where it listens."""
        return self._capability("")

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make an address that nobody guesses, for one session."""
        path = f"/{secrets.token_urlsafe(24)}"
        find = cast("Callable[[], Awaitable[Session]]", find_session)  # it steps, as no other does
        access = _RobotAccess(self._capability(path), find, lambda: self._accesses.pop(path, None))
        self._accesses[path] = access
        return access

    async def close(self) -> None:
        """Listen no more. It may be called twice."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._server.wait_closed()

    def _capability(self, path: str) -> Capability:
        url = f"ws://{LOOPBACK}:{port_of(self._server)}{path}"
        return Capability.robot(name=NAME, url=url, contract=self._contract)

    def _let_in(self, connection: Any, request: Any) -> Any:
        """Refuse an unknown address, and a page in somebody's browser."""
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
        """Step until the peer leaves, or until there is an error to tell."""
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
        """The actions of a frame, one or a list of them, as JSON has them.

        Raises:
            ValueError: They are none.
        """
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
        space = libraries.space_from_json(self._spaces["observation"])
        seen = libraries.value_from_json(stepped.result.observation.values, space)
        if stepped.result.terminated or stepped.result.truncated:
            access.ended = session.id
        return pack({**dict(_numbers(seen)), "terminated": access.ended == session.id})


class _RobotAccess:
    """One session's address. An `EndpointAccess`.

    Attributes:
        ended: The id of the session whose episode is over, which a look does not tell.
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
        """Forget the address, and drop who is there."""
        self._forget()
        for socket in list(self.sockets):
            socket.transport.abort()


async def _step(session: Session, actions: list[Any]) -> Stepped:
    action = CustomAction(action="step", args={"actions": actions})
    look = Look(text=False, values=True)
    return await session.step((action,), look, kind="act", deliver_image=False)


def _message(frame: bytes | str) -> dict[str, Any]:
    """Read what a peer sent.

    Raises:
        ValueError: It is not an object.
    """
    found: Any = None if isinstance(frame, str) else unpack(frame)
    if not isinstance(found, dict):
        raise ValueError("a frame is a MessagePack map")  # noqa: TRY004  # of what came, not of ours
    return cast("dict[str, Any]", found)


def _contract(name: str, spaces: Mapping[str, Space], schema: Mapping[str, Any]) -> dict[str, Any]:
    """What HUD's agents are told: the features, their parts and their bounds."""
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
        "description": str(schema.get("description", "")),
    }
    features["action"] = moves
    low, high = _limits(action)
    if low is not None and all(map(math.isfinite, [*low, *high])):
        moves["limits"] = {"min": low, "max": high}
    return {"robot_type": name, "control_rate": _RATE, "features": features}


def _limits(space: Space) -> tuple[Any, Any]:
    made: Any = libraries.space_from_json(space)
    kind = space["space"]
    if kind == "Box":
        return made.low.reshape(-1).tolist(), made.high.reshape(-1).tolist()
    if kind == "Discrete":
        return [int(made.start)], [int(made.start + made.n - 1)]
    return None, None


def _count(space: Space) -> int | None:
    """How many numbers an action has; None where it is not an array."""
    kind = space["space"]
    if kind == "Discrete":
        return 1
    if kind not in ("Box", "MultiDiscrete", "MultiBinary"):
        return None
    return math.prod(libraries.space_from_json(space).shape or (1,))


def _plain(row: "NDArray[Any]", space: Space) -> Any:
    """One action as JSON has it; whole numbers where the space has them.

    Raises:
        ValueError: One should be whole, and is not.
    """
    made: Any = libraries.space_from_json(space)
    if made.dtype.kind == "f":
        return row.reshape(made.shape).tolist()
    if not all(float(number).is_integer() for number in row):
        raise ValueError("this action takes whole numbers")
    whole = row.astype("int64")
    return int(whole[0]) if space["space"] == "Discrete" else whole.reshape(made.shape).tolist()


def _arrays(space: Space, name: str = "") -> "Iterator[tuple[str, str, list[int]]]":
    """The arrays of numbers of an observation: name, kind of number, shape."""
    if space["space"] == "Dict":
        for key, part in space["parts"].items():
            yield from _arrays(part, f"{name}/{key}" if name else str(key))
        return
    made: Any = libraries.space_from_json(space)
    if getattr(made, "dtype", None) is not None and made.dtype.kind in "biuf":
        yield name or "obs", str(made.dtype), list(made.shape or (1,))


def _numbers(seen: Any, name: str = "") -> "Iterator[tuple[str, NDArray[Any]]]":
    """The same of a value."""
    if isinstance(seen, Mapping):
        for key, part in cast("Mapping[str, Any]", seen).items():
            yield from _numbers(part, f"{name}/{key}" if name else str(key))
    elif not isinstance(seen, str | list | tuple):
        yield name or "obs", libraries.numpy.atleast_1d(libraries.numpy.asarray(seen))


def _is_picture(shape: list[int], dtype: str) -> bool:
    return len(shape) == _IMAGE_RANK and shape[-1] in _COLOURS and dtype == "uint8"
