"""Resources: the environments' manifests, and the record and picture of a session.

A session's resources are addressed by its id, which only its caller knows. None of them
carries a reference answer, metadata, a log, or a reward that the policy withholds.
"""

import base64
import mimetypes
import re
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from hud_mcp.errors import HudMcpError
from hud_mcp.record.values import Receipt
from hud_mcp.registry import service
from hud_mcp.server.call import ask_session
from hud_mcp.server.own_tools import safe_names
from hud_mcp.server.results import trajectory_view
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat

__all__ = ["Resources", "missing", "session_of"]

_SESSION = re.compile(r"hud://sessions/([^/]+)/(trajectory|screenshot)")
_FILE = re.compile(r"hud://sessions/([^/]+)/files/([^/]+)")
_SERVERS = re.compile(r"hud://sessions/([^/]+)/server/(.+)", re.DOTALL)
_OURS = "hud://"
_ENVIRONMENT = re.compile(r"hud://environments/([^/]+)")


class Resources:
    """The resources of one server.

    Args:
        sessions: The registry.
        image: The format of pictures; one that would be too large as PNG is a JPEG.
    """

    def __init__(self, sessions: Sessions, image: ImageFormat = DEFAULT_FORMAT) -> None:
        self._sessions = sessions
        self._image = image
        self.refresh()

    def refresh(self) -> None:
        """Take over the environments that are served now."""
        safe = safe_names(self._sessions.environments)
        self._environments = {safe[name]: e for name, e in self._sessions.environments.items()}
        self._passed = {
            uri: types.ResourceTemplate.model_validate({**each, "uriTemplate": uri})
            for environment in self._environments.values()
            for each in environment.world.resources
            for uri in [f"hud://sessions/{{session}}/server/{each['uriTemplate']}"]
        }

    def declared(self) -> list[types.Resource]:
        """Return the environments' manifests. A list of sessions would tell secret ids."""
        return [
            types.Resource(
                uri=f"hud://environments/{name}",
                name=name,
                title=f"Environment {e.name}",
                description="Its templates, actions, tools and context features.",
                mime_type="application/json",
            )
            for name, e in self._environments.items()
        ]

    def templates(self) -> list[types.ResourceTemplate]:
        """Return the templates of a session's resources."""
        return [
            types.ResourceTemplate(
                uri_template="hud://sessions/{session}/trajectory",
                name="trajectory",
                title="A session's steps so far",
                mime_type="application/json",
            ),
            types.ResourceTemplate(
                uri_template="hud://sessions/{session}/screenshot",
                name="screenshot",
                title="A session's latest screenshot",
                mime_type=f"image/{self._image}",
            ),
            types.ResourceTemplate(
                uri_template="hud://sessions/{session}/files/{name}",
                name="file",
                title="A file that belongs to a session's task",
                description="The prompt names it where there is one.",
            ),
            *self._passed.values(),
        ]

    async def read(self, uri: str, caller: Caller) -> types.ReadResourceResult:
        """Return one resource.

        Raises:
            MCPError: -32602 with the URI if no such resource exists.
        """
        if not caller.is_agent and (found := _ENVIRONMENT.fullmatch(uri)):
            environment = self._environments.get(found[1])
            if environment is not None:
                return _json(uri, environment.manifest())
        content = None
        if found := _SESSION.fullmatch(uri):
            content = await self._of_session(uri, found[1], found[2], caller)
        elif found := _FILE.fullmatch(uri):
            content = await self._file(uri, found[1], unquote(found[2]), caller)
        elif (found := _SERVERS.fullmatch(uri)) and await self._sessions.key_of(found[1], caller):
            given = await ask_session(
                self._sessions, found[1], caller, "resources/read", uri=found[2]
            )
            prefix = uri.removesuffix(found[2])
            contents = [{**each, "uri": f"{prefix}{each['uri']}"} for each in given]
            content = types.ReadResourceResult.model_validate({"contents": contents})
        if content is not None:
            return content
        raise missing(uri)

    def complete(self, typed: str, caller: Caller) -> list[str]:
        """Return the caller's own session ids that begin with the typed text."""
        return [s.id for s in self._sessions.roster.living_of(caller) if s.id.startswith(typed)]

    async def key_of(self, uri: str, caller: Caller) -> str | None:
        """Return the digest of the id of the session that a caller's resource belongs to.

        None for a resource of no session, or an address of another scheme.

        Raises:
            MCPError: -32602 with the URI if the caller has no such resource.
            StoreFailed: The store cannot be read.
        """
        if not uri.startswith(_OURS):
            return None
        if not caller.is_agent and (found := _ENVIRONMENT.fullmatch(uri)):
            if found[1] in self._environments:
                return None
        elif found := _SESSION.fullmatch(uri) or _FILE.fullmatch(uri) or _SERVERS.fullmatch(uri):
            key = await self._sessions.key_of(found[1], caller)
            if key is not None:
                return key
        raise missing(uri)

    async def _of_session(
        self, uri: str, session_id: str, what: str, caller: Caller
    ) -> types.ReadResourceResult | None:
        try:
            found = await self._sessions.find(session_id, caller)
            if isinstance(found, Session) and found.latest is not None and what == "screenshot":
                return _blob(uri, found.latest.mime_type, found.latest.as_base64())
            place = found.trajectory if isinstance(found, Receipt) else found.trajectory_id
            trajectory = await self._sessions.store.load_trajectory(place)
            if what == "trajectory":
                return _json(uri, trajectory_view(trajectory, found.reward_policy))
            shots = [s.screenshot for s in trajectory.steps if s.screenshot is not None]
            data = await self._sessions.store.read_screenshot(shots[-1]) if shots else None
        except HudMcpError:
            return None
        if data is None:
            return None
        kind = "png" if shots[-1].extension == "png" else "jpeg"
        return _blob(uri, f"image/{kind}", base64.b64encode(data).decode())

    async def _file(
        self, uri: str, session_id: str, name: str, caller: Caller
    ) -> types.ReadResourceResult | None:
        """Return a file that the task's row gives its session, while this process has it."""
        try:
            found = await self._sessions.find(session_id, caller)
            if not isinstance(found, Session):
                return None
            for call in found.task.setup:
                if call.function == "session_file" and call.args[0] == name:
                    kept = await anyio.to_thread.run_sync(service("dataset file"), call.args[1])
                    return _content(uri, name, await anyio.to_thread.run_sync(kept.read_bytes))
        except (HudMcpError, OSError):
            return None
        return None


def _content(uri: str, name: str, data: bytes) -> types.ReadResourceResult:
    """Return a file as text if it is text, else as bytes."""
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    try:
        text = types.TextResourceContents(uri=uri, mime_type=kind, text=data.decode())
    except UnicodeDecodeError:
        return _blob(uri, kind, base64.b64encode(data).decode())
    return types.ReadResourceResult(contents=[text])


def _blob(uri: str, mime_type: str, blob: str) -> types.ReadResourceResult:
    content = types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=blob)
    return types.ReadResourceResult(contents=[content])


def _json(uri: str, value: dict[str, Any]) -> types.ReadResourceResult:
    text = orjson.dumps(value).decode()
    content = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    return types.ReadResourceResult(contents=[content])


def session_of(uri: str) -> tuple[str, str] | None:
    """Return the session's id and the part in an address; None for another resource."""
    found = _SESSION.fullmatch(uri)
    return None if found is None else (found[1], found[2])


def missing(uri: str) -> MCPError:
    """Return the error for an address without a resource."""
    return MCPError(code=INVALID_PARAMS, message=f"Resource not found: {uri}", data={"uri": uri})
