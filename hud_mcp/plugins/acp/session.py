"""One session of the protocol with one agent: begun, prompted, loaded again, cancelled."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.agents.kind import RunModel
from hud_mcp.agents.programs import SERVER
from hud_mcp.agents.surroundings import Surroundings
from hud_mcp.base import __version__
from hud_mcp.errors import InvalidAgent
from hud_mcp.plugins.acp import libraries
from hud_mcp.plugins.acp.connection import Connection, Json, RequestRefused
from hud_mcp.plugins.acp.known import Start

if TYPE_CHECKING:
    from acp.schema import InitializeResponse, NewSessionResponse, PromptResponse

__all__ = ["Session"]

_PROTOCOL = 1
_AUTH_REQUIRED = -32000
_PATHS = {"anthropic": "", "openai": "/v1"}
"""The wire forms of providers that a gateway speaks, and where each begins."""


class Session:
    """A session with an agent that runs. `open` begins it, or loads the one of an ended agent.

    Args:
        start: The start of the agent.
        here: Its places.
        url: The address of the server of its tools.
        token: The token that opens this server.
        model: The model of its run, if a gateway gives one.

    Attributes:
        number: The agent's own id of the session; empty before it begins.
        loads: Whether the agent can load a session again.
        model: The model's name, as the agent says it.
        has_shell: Whether files and terminals are served to it.
    """

    def __init__(
        self, start: Start, here: Surroundings, url: str, token: str, model: RunModel | None
    ) -> None:
        self.number = ""
        self.loads = False
        self.model: str | None = None
        self.has_shell = False
        self._start = start
        self._here = here
        self._url = url
        self._token = token
        self._given = model

    async def open(self, agent: Connection, folder: Path) -> None:
        """Begin the session, or load it if it had begun.

        Raises:
            CommandDied: The agent ended, or breaks the protocol.
            InvalidAgent: It wants a login.
            RequestRefused: It refuses to begin.
        """
        client: Json = {
            "fs": {"readTextFile": self.has_shell, "writeTextFile": self.has_shell},
            "terminal": self.has_shell,
            "auth": {"terminal": False, "_meta": {"gateway": True}},
        }
        said = {
            "protocolVersion": _PROTOCOL,
            "clientCapabilities": client,
            "clientInfo": {"name": SERVER, "version": __version__},
        }
        kind = libraries.schema.InitializeResponse
        found = await agent.ask("initialize", said, kind)
        if found.protocol_version != _PROTOCOL:
            raise agent.died(f"speaks version {found.protocol_version} of the protocol, not 1")
        if self._given is not None:
            await self._give_model(agent, self._given, found)
        can = found.agent_capabilities
        takes_http = can is not None and can.mcp_capabilities and can.mcp_capabilities.http
        asked: Json = {
            "cwd": str(folder),
            "mcpServers": [self._server(takes_http=bool(takes_http))],
        }
        if self.number:
            asked["sessionId"] = self.number
            await agent.request("session/load", asked)
            return
        self.loads = bool(can and can.load_session)
        await self._begin(agent, {**asked, "_meta": dict(self._start.meta)})

    def _server(self, *, takes_http: bool) -> Json:
        """Return the server of tools as `session/new` takes it.

        Each agent starts programs. One that takes no server over HTTP gets a program of ours.
        """
        headers = [{"name": "Authorization", "value": f"Bearer {self._token}"}]
        if takes_http:
            return {"type": "http", "name": SERVER, "url": self._url, "headers": headers}
        place = self._here.folder / "pipe.json"
        if not place.exists():
            self._here.write(place.name, {"url": self._url, "token": self._token})
        arguments = ["-P", "-m", "hud_mcp.plugins.acp.pipe", str(place)]
        return {"name": SERVER, "command": sys.executable, "args": arguments, "env": []}

    async def _begin(self, agent: Connection, asked: Json) -> None:
        kind = libraries.schema.NewSessionResponse
        try:
            begun = await agent.ask("session/new", asked, kind)
        except RequestRefused as exc:
            if exc.code != _AUTH_REQUIRED:
                raise
            raise InvalidAgent(
                f"The agent wants a login ({exc}). Log in once by its own program, or set the key "
                "of its model's provider."
            ) from None
        self.number = begun.session_id
        self.model = _current_model(begun)
        mode, modes = self._start.mode, begun.modes
        if modes is None or mode in (None, modes.current_mode_id):
            return
        if mode in [each.id for each in modes.available_modes]:
            await agent.request("session/set_mode", {"sessionId": self.number, "modeId": mode})

    async def _give_model(
        self, agent: Connection, model: RunModel, found: "InitializeResponse"
    ) -> None:
        """Send the agent's requests to the gateway; its variables say the same to others."""
        headers = {"Authorization": f"Bearer {model.key}", "x-api-key": model.key}
        can = found.agent_capabilities
        if can is not None and can.providers is not None:
            kind = libraries.schema.ListProvidersResponse
            listed = await agent.ask("providers/list", {}, kind)
            for each in listed.providers:
                form = next((form for form in _PATHS if form in each.supported), None)
                if form is not None:
                    where = {"apiType": form, "baseUrl": f"{model.url}{_PATHS[form]}"}
                    given = {"providerId": each.provider_id, **where, "headers": headers}
                    await agent.request("providers/set", given)
        elif "gateway" in [each.id for each in found.auth_methods or ()]:
            gateway = {"baseUrl": model.url, "headers": headers}
            given = {"methodId": "gateway", "_meta": {"gateway": gateway}}
            await agent.request("authenticate", given)

    async def prompt(self, agent: Connection, text: str) -> "PromptResponse":
        """Send a prompt, and return the agent's answer once its work is over.

        Raises:
            CommandDied: The agent ended, or breaks the protocol.
            RequestRefused: It could not work.

        If this call is cancelled, the agent is asked to stop, and has a moment for it.
        """
        asked = {"sessionId": self.number, "prompt": [{"type": "text", "text": text}]}
        kind = libraries.schema.PromptResponse
        return await agent.ask("session/prompt", asked, kind, cancel="session/cancel")


def _current_model(begun: "NewSessionResponse") -> str | None:
    """Return the model that a session says it has."""
    for each in begun.config_options or ():
        value: Any = each.current_value
        if each.category == "model" and isinstance(value, str):
            return None if value == "default" else value
    return None
