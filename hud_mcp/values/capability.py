"""A running service that an agent may use directly, HUD's binding: its protocol and address."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, ValidationError, field_validator

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.action import Value

__all__ = ["Capability"]

_MOST_DISPLAY = 59_635
"""The last display: with 5900 it is the last port."""


class Capability(Value):
    """The address and parameters of a running service."""

    name: str = Field(min_length=1)
    protocol: str = Field(min_length=1, description="For instance `ssh/2`, `cdp/1.3`, `rfb/3.8`.")
    url: str
    # Not in its representation: it may carry keys, and logs carry representations.
    params: dict[str, Any] = Field(default_factory=dict, repr=False)

    @field_validator("url")
    @classmethod
    def _has_host(cls, url: str) -> str:
        parts = urlsplit(url)
        if not parts.scheme or not parts.hostname:
            raise ValueError(f"a capability's URL has a scheme and a host; got {url!r}")
        return url

    def to_manifest(self) -> dict[str, Any]:
        """Return the form on the wire: name, protocol, url, params."""
        return {**self.model_dump(), "params": dict(self.params)}

    @classmethod
    def from_manifest(cls, data: Mapping[str, Any]) -> "Capability":
        """Read the form of `to_manifest`; the URL decides an MCP server's transport.

        Raises:
            InvalidEnvironment: A field is missing, or cannot be read.
        """
        given = dict(data)
        params: dict[str, Any] = dict(given.get("params") or {})
        if str(given.get("protocol")).partition("/")[0] == "mcp":
            sockets = urlsplit(str(given.get("url"))).scheme in ("ws", "wss")
            params.setdefault("transport", "websocket" if sockets else "streamable-http")
        try:
            return cls.model_validate({**given, "params": params})
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            raise InvalidEnvironment(
                f"This is not a capability: {'.'.join(map(str, first['loc']))}: "
                f"{first['msg'].lower()}; expected name, protocol, url and params."
            ) from None

    @classmethod
    def ssh(
        cls,
        *,
        name: str = "shell",
        url: str,
        user: str = "agent",
        host_pubkey: str,
        client_key: str | None = None,
        client_key_path: str | os.PathLike[str] | None = None,
        shell: Literal["bash", "cmd", "powershell"] = "bash",
        cwd: str | None = None,
        isolation: Literal["bwrap", "none"] | None = None,
        process_connections: bool = False,
    ) -> "Capability":
        """`ssh/2`: a shell, with files over sftp.

        Args:
            name: Its name for the agent.
            url: `ssh://host:port`; the scheme, and the port 22, may be left out.
            user: The user to log in as.
            host_pubkey: The server's key, in OpenSSH's form.
            client_key: The private key to log in with, as text.
            client_key_path: Or the key's file, for agents on the same machine.
            shell: The shell that runs the commands.
            cwd: The folder in which commands start.
            isolation: The way in which commands are confined.
            process_connections: Whether its server gives processes the connections of a controller.

        Raises:
            InvalidEnvironment: The URL is not one of ssh, or a key is missing.
        """
        if not host_pubkey.strip():
            raise InvalidEnvironment(
                f"capability {name!r}: host_pubkey is empty, so an agent cannot verify the "
                "server. Give the server's public key, such as 'ssh-ed25519 AAAA…'."
            )
        params: dict[str, Any] = {"user": user, "host_pubkey": host_pubkey, "shell": shell}
        optional = {"client_key": client_key, "cwd": cwd, "isolation": isolation}
        params |= {key: value for key, value in optional.items() if value is not None}
        if process_connections:
            params["process_connections"] = True
        if client_key_path is not None:
            params["client_key_path"] = str(Path(client_key_path))
        return cls._checked(name, "ssh/2", url, params, schemes=("ssh",), port=22)

    @classmethod
    def mcp(
        cls,
        *,
        name: str = "tools",
        url: str,
        auth_token: str | None = None,
        transport: Literal["sse", "streamable-http", "websocket"] | None = None,
    ) -> "Capability":
        """`mcp/2025-11-25`: an MCP server.

        Args:
            name: Its name for the agent.
            url: Of http, https, ws or wss; left out, the scheme is ws, and the port is the
                scheme's.
            auth_token: The bearer token that it requires.
            transport: By default, websocket for ws and wss, streamable-http for the others.

        Raises:
            InvalidEnvironment: The URL has another scheme, or does not fit the transport.
        """
        web, sockets = ("http", "https"), ("ws", "wss")
        schemes = {None: sockets + web, "websocket": sockets}.get(transport, web)
        scheme = _parse(name, url, default="ws").scheme
        params: dict[str, Any] = {
            "transport": transport or ("websocket" if scheme in sockets else "streamable-http")
        }
        if auth_token is not None:
            params["auth_token"] = auth_token
        port = 443 if scheme in ("https", "wss") else 80
        return cls._checked(
            name, "mcp/2025-11-25", url, params, schemes=schemes, port=port, default="ws"
        )

    @classmethod
    def cdp(cls, *, name: str = "browser", url: str, target_id: str | None = None) -> "Capability":
        """`cdp/1.3`: a Chromium's DevTools.

        Args:
            name: Its name for the agent.
            url: Of ws, wss, http or https; left out, the scheme is ws and the port 9222.
            target_id: The id of the page.

        Raises:
            InvalidEnvironment: The URL has another scheme.
        """
        params = {} if target_id is None else {"target_id": target_id}
        schemes = ("ws", "wss", "http", "https")
        return cls._checked(name, "cdp/1.3", url, params, schemes=schemes, port=9222)

    @classmethod
    def rfb(
        cls, *, name: str = "screen", url: str, password: str | None = None, display: int = 0
    ) -> "Capability":
        """`rfb/3.8`: a screen over VNC.

        Args:
            name: Its name for the agent.
            url: `rfb://host:port`; the scheme may be left out, and the port where it is
                5900 and the display's number.
            password: The password that it requires.
            display: Its number, from 0.

        Raises:
            InvalidEnvironment: The URL has another scheme, or the display's number is out of range.
        """
        if not 0 <= display <= _MOST_DISPLAY:
            raise InvalidEnvironment(
                f"capability {name!r}: display={display}; expected 0 to {_MOST_DISPLAY}."
            )
        params: dict[str, Any] = {"display": display}
        if password is not None:
            params["password"] = password
        return cls._checked(name, "rfb/3.8", url, params, schemes=("rfb",), port=5900 + display)

    @classmethod
    def robot(cls, *, name: str = "robot", url: str, contract: dict[str, Any]) -> "Capability":
        """`openpi/0`: a loop of actions and observations over a WebSocket.

        Args:
            name: Its name for the agent.
            url: Of ws or wss; left out, the scheme is ws and the port 9091.
            contract: The robot, and the features of its actions and observations.

        Raises:
            InvalidEnvironment: The URL has another scheme.
        """
        params = {"contract": contract}
        return cls._checked(name, "openpi/0", url, params, schemes=("ws", "wss"), port=9091)

    @classmethod
    def _checked(
        cls,
        name: str,
        protocol: str,
        url: str,
        params: dict[str, Any],
        *,
        schemes: Collection[str],
        port: int,
        default: str | None = None,
    ) -> "Capability":
        """Return a capability with a whole URL, port included, for programs that tunnel it."""
        parts = _parse(name, url, default=default or next(iter(schemes)))
        if parts.scheme not in schemes:
            raise InvalidEnvironment(
                f"capability {name!r}: {url!r} is not an address of {protocol}; expected "
                f"{', '.join(f'{scheme}://' for scheme in schemes)} and a host."
            )
        if parts.port is None:
            parts = parts._replace(netloc=f"{parts.netloc.removesuffix(':')}:{port}")
        if not name:
            raise InvalidEnvironment(f"A capability of {protocol} has no name; give it one.")
        return cls(name=name, protocol=protocol, url=parts.geturl(), params=params)


def _parse(name: str, url: str, *, default: str) -> SplitResult:
    """Return a URL's parts; raise InvalidEnvironment if it has no host, or no possible port."""
    whole = url if "://" in url else f"{default}://{url}"
    try:
        parts = urlsplit(whole)
        if parts.hostname and parts.port != 0 and not any(sign.isspace() for sign in url):
            return parts
    except ValueError:
        pass  # the same error as without a host
    raise InvalidEnvironment(
        f"capability {name!r}: {url!r} is not an address; expected a host and a port from 1 to "
        f"65535, such as {default}://127.0.0.1:8000."
    )
