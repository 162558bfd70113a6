"""OpenEnv's addresses: a WebSocket with one episode, the same over HTTP, and the tasks."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from hud_mcp.base import __version__
from hud_mcp.cli.wires import Served, Wire
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.openenv.episode import Episode, Refused, split_of
from hud_mcp.plugins.openenv.rpc import McpBeside, Places, rpc_reply
from hud_mcp.plugins.openenv.tools import action_schema
from hud_mcp.server.local import LocalTools
from hud_mcp.server.web.auth import Hosts, Tokens, caller_of_token
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import ImageFormat

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_OBSERVATION = {
    "title": "TaskObservation",
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "What is asked; after a reset."},
        "text": {"type": "string", "description": "What there is to see, in words."},
        "image": {"type": "string", "description": "The picture, as base64."},
        "image_type": {"type": "string"},
        "values": {"description": "What a program reads in place of the text."},
        "error": {"type": "string", "description": "Why an action was refused."},
        "notes": {"type": "array", "items": {"type": "string"}},
        "tool_name": {"type": "string"},
        "result": {"type": "string", "description": "What a tool returned."},
        "structured": {"type": "object", "description": "The same for a program, if it has that."},
        "tools": {"type": "array", "items": {"type": "object"}},
        "answer_schema": {"type": "object"},
    },
}
_STATE = {
    "title": "TaskState",
    "type": "object",
    "properties": {
        "episode_id": {"type": ["string", "null"]},
        "step_count": {"type": "integer", "minimum": 0},
        "task": {"type": "string"},
        "done": {"type": "boolean"},
    },
}


_MOST_A_SESSION = 4


class _Unknown(Exception):  # as the project's errors are named
    """A request that is refused with a status of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def openenv_routes(
    sessions: Sessions, *, hosts: Hosts, access: Tokens | None, image: ImageFormat
) -> list[BaseRoute]:
    """Return the routes of OpenEnv's wire. `access` has the credentials of MCP's callers."""
    face = _Face(sessions, hosts, access, image)
    return [
        Route("/health", face.open(face.health)),
        Route("/metadata", face.known(face.metadata)),
        Route("/schema", face.known(face.schema)),
        Route("/reset", face.known(face.reset), methods=["POST"]),
        Route("/step", face.known(face.step), methods=["POST"]),
        Route("/state", face.known(face.state)),
        Route("/list_environments", face.known(face.environments)),
        Route("/{name}/splits", face.known(face.splits)),
        Route("/{name}/tasks", face.known(face.tasks), methods=["POST"]),
        Route("/{name}/num_tasks", face.known(face.count), methods=["POST"]),
        Route("/{name}/task", face.known(face.task), methods=["POST"]),
        Route("/{name}/task_range", face.known(face.task_range), methods=["POST"]),
        WebSocketRoute("/ws", face.talk),
        McpBeside(face.rpc, 4 * sessions.limits.argument_bytes),
    ]


Answer = Callable[[Request, Caller], Awaitable[Any]]


class _Face:
    def __init__(
        self, sessions: Sessions, hosts: Hosts, access: Tokens | None, image: ImageFormat
    ) -> None:
        self._sessions = sessions
        self._tools = LocalTools(sessions, image=image)
        self._places = Places(self._tools)
        self._hosts = hosts
        self._tokens = access
        self._talking = 0

    def open(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                self._check_host(request)
                return JSONResponse(await answer(request, Caller()))
            except _Unknown as exc:
                return JSONResponse({"detail": str(exc)}, exc.status)

        return endpoint

    def known(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                caller = await self._caller(request)
                return JSONResponse(await answer(request, caller))
            except _Unknown as exc:
                return JSONResponse({"detail": str(exc)}, exc.status)
            except (Refused, HudMcpError) as exc:
                wait_s = exc.retry_after_s if isinstance(exc, Refused) else None
                if wait_s is None:
                    return JSONResponse({"detail": str(exc)}, 400)
                return JSONResponse({"detail": str(exc)}, 429, {"retry-after": str(wait_s)})
            except Exception:  # the boundary of a request
                logger.exception("a request of OpenEnv's failed: %s", request.url.path)
                detail = "It failed inside the server; its log says why."
                return JSONResponse({"detail": detail}, 500)

        return endpoint

    def _check_host(self, request: HTTPConnection) -> None:
        """Refuse pages of other sites: they can name any host, but not choose the Origin."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._hosts.allows(host):
            raise _Unknown(421, "This server does not answer to that Host; --allow-host adds one.")
        if origin is not None and origin.partition("://")[2] != host:
            raise _Unknown(403, "Only this server's own pages may send this request.")

    async def _caller(self, request: HTTPConnection) -> Caller:
        self._check_host(request)
        if self._tokens is None:
            return Caller()
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        token = await self._tokens.verify_token(bearer) if scheme.lower() == "bearer" else None
        if token is None:
            raise _Unknown(401, "Send the server's token: Authorization: Bearer TOKEN.")
        return caller_of_token(token)

    async def _body(self, request: Request) -> Row:
        return await _body(request, 4 * self._sessions.limits.argument_bytes)

    async def health(self, _request: Request, _caller: Caller) -> Row:
        return {"status": "healthy"}

    async def metadata(self, _request: Request, _caller: Caller) -> Row:
        names = list(self._sessions.environments)
        templates = [t for e in self._sessions.environments.values() for t in e.templates.values()]
        told = "; ".join(t.description for t in templates if t.description)
        return {
            "name": names[0] if len(names) == 1 else "hud-mcp",
            "description": told or f"Tasks of {', '.join(names)}.",
            "version": __version__,
        }

    async def schema(self, _request: Request, _caller: Caller) -> Row:
        return {"action": action_schema(self._tools), "observation": _OBSERVATION, "state": _STATE}

    async def reset(self, request: Request, caller: Caller) -> Row:
        return await Episode(self._tools, caller).reset(await self._body(request))

    async def step(self, request: Request, caller: Caller) -> Row:
        given = await self._body(request)
        episode = await self._resumed(caller, given.get("session"))
        action: Any = given.get("action")
        if not isinstance(action, Mapping):
            raise Refused("step: give `action`, an object; GET /schema says what it holds.")
        return await episode.step(cast("Row", action))

    async def state(self, request: Request, caller: Caller) -> Row:
        return (await self._resumed(caller, request.query_params.get("session"))).state()

    async def _resumed(self, caller: Caller, session: Any) -> Episode:
        if not session:
            raise Refused(
                "Give `session`, which the reply to /reset has in its metadata; or connect to /ws."
            )
        episode = Episode(self._tools, caller)
        await episode.resume(str(session))
        return episode

    async def environments(self, _request: Request, _caller: Caller) -> list[str]:
        return list(self._sessions.environments)

    def _rows(self, request: Request, split: Any) -> list[Row]:
        """Return the tasks of an environment's split, without anything of their grading."""
        name = request.path_params["name"]
        if name not in self._sessions.environments:
            raise _Unknown(404, f"unknown environment {name!r}")
        return [
            {"id": t.id, "env": t.env, "template": t.template, "description": t.description}
            for t in self._sessions.tasks
            if t.env == name and (split is None or split_of(t) == split)
        ]

    async def splits(self, request: Request, _caller: Caller) -> list[Row]:
        ids = {row["id"] for row in self._rows(request, None)}
        names = dict.fromkeys(split_of(t) for t in self._sessions.tasks if t.id in ids)
        known = ("train", "validation", "test")
        return [{"name": n, "type": n if n in known else "validation"} for n in names]

    async def tasks(self, request: Request, _caller: Caller) -> Row:
        split = (await self._body(request)).get("split")
        return {"tasks": self._rows(request, split), "env_name": request.path_params["name"]}

    async def count(self, request: Request, _caller: Caller) -> Row:
        return {"num_tasks": len(self._rows(request, (await self._body(request)).get("split")))}

    async def task(self, request: Request, _caller: Caller) -> Row:
        given = await self._body(request)
        rows, index = self._rows(request, given.get("split")), given.get("index")
        if not isinstance(index, int) or not 0 <= index < len(rows):
            raise Refused(f"index: {index!r} is not from 0 to {len(rows) - 1}.")
        return {"task": rows[index]}

    async def task_range(self, request: Request, _caller: Caller) -> Row:
        given = await self._body(request)
        edges = [given.get("start"), given.get("stop")]
        if any(edge is not None and not isinstance(edge, int) for edge in edges):
            raise Refused("start and stop are integers, or left out.")
        return {"tasks": self._rows(request, given.get("split"))[slice(*edges)]}

    async def rpc(self, request: Request, asked: Row) -> Response:
        async def answer(_request: Request, caller: Caller) -> Row:
            return await self._places.reply(caller, asked)

        return await self.known(answer)(request)

    async def talk(self, socket: WebSocket) -> None:
        """Serve one connection: one episode after the other. A session can outlive it."""
        try:
            caller = await self._caller(socket)
            self._check_room()
        except _Unknown as exc:
            await socket.send_denial_response(JSONResponse({"detail": str(exc)}, exc.status))
            return
        self._talking += 1
        try:
            await self._talk(socket, caller)
        finally:
            self._talking -= 1

    def _check_room(self) -> None:
        """Raise _Unknown if far more connections are open than there can be sessions."""
        if self._talking >= _MOST_A_SESSION * self._sessions.limits.sessions:
            raise _Unknown(503, "Too many connections are open here. Close some first.")

    async def _talk(self, socket: WebSocket, caller: Caller) -> None:
        await socket.accept()
        name = socket.query_params.get("session_id")
        placed = self._places.find(caller, name) if name else None
        episode = placed or Episode(self._tools, caller)
        try:
            if name and placed is None:
                await episode.resume(name)
            while (reply := await self._replied(episode, await socket.receive_text())) is not None:
                await socket.send_text(json.dumps(reply))
            await socket.close()
        except WebSocketDisconnect:
            return
        except Refused as exc:
            await socket.send_text(json.dumps(_error(str(exc), "SESSION_ERROR")))
            await socket.close()

    async def _replied(self, episode: Episode, text: str) -> Row | None:
        """Return the reply to one message; None if the message closes the connection."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as exc:
            return _error(f"Invalid JSON: {exc}", "INVALID_JSON")
        given: Row = cast("Row", message) if isinstance(message, dict) else {}
        kind, data = given.get("type"), given.get("data", {})
        if not isinstance(data, Mapping):
            return _error("data: give an object.", "VALIDATION_ERROR")
        if kind == "close":
            async with episode.turn:
                await episode.close()
            return None
        try:
            return await self._performed(episode, kind, cast("Row", data))
        except (Refused, HudMcpError) as exc:
            return _error(str(exc), "EXECUTION_ERROR")
        except Exception:  # the boundary of a message: the connection goes on
            logger.exception("a message of OpenEnv's failed: %s", kind)
            return _error("It failed inside the server; its log says why.", "EXECUTION_ERROR")

    async def _performed(self, episode: Episode, kind: Any, data: Row) -> Row:
        if kind in {"reset", "step"}:
            async with episode.turn:
                act = episode.reset if kind == "reset" else episode.step
                return {"type": "observation", "data": await act(data)}
        if kind == "state":
            return {"type": "state", "data": episode.state()}
        if kind == "mcp":
            return {"type": "mcp", "data": await rpc_reply(self._tools, episode, data)}
        return _error(f"Unknown message type: {kind}", "UNKNOWN_TYPE")


async def _body(request: Request, most_bytes: int) -> Row:
    """Return the object in a request's body; an empty one if the body is empty.

    Raises:
        _Unknown: It is larger than the server accepts.
        Refused: It is not JSON, or no object.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise _Unknown(413, f"The body is larger than {most_bytes} bytes.")
    if not body:
        return {}
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise Refused(f"The body is not JSON: {exc}.") from exc
    if not isinstance(given, dict):
        raise Refused("The body is not an object of JSON.")
    return cast("Row", given)


def _error(text: str, code: str) -> Row:
    return {"type": "error", "data": {"message": text, "code": code}}


def _routes(served: Served) -> list[Any]:
    return openenv_routes(
        served.sessions,
        hosts=served.hosts,
        access=served.access,
        image=served.options["image"],
    )


WIRE = Wire(routes=_routes, sockets=True)
