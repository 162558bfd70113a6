"""The two eras of the protocol: how a client and a server come to terms, and what requests carry.

Servers of 2025-11-25 and earlier take a handshake. Those of 2026-07-28 take an envelope on each
request, and answer `server/discover`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeAlias, cast

from hud_mcp.base import __version__
from hud_mcp.base.text import clip, clip_repr
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.servers.peer import Json, Peer, RemoteError, as_list, as_object

__all__ = ["Era", "WantedEra", "negotiate"]

WantedEra: TypeAlias = Literal["auto", "2025-11-25", "2026-07-28"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"
_UNSUPPORTED_VERSION = -32022
_DISCOVER_S = 5.0
_CLIENT = {"name": "hud-mcp", "version": __version__}
_CAPABILITIES: Json = {"roots": {"listChanged": False}}
_TEXT_CHARS = 100_000


@dataclass(frozen=True)
class Era:
    """The terms of one connection.

    Attributes:
        version: The version of the protocol.
        server: The server's name and version, in its own words.
        capabilities: The capabilities that it declares.
        instructions: Its text for models.
    """

    version: str
    server: Json = field(default_factory=dict[str, Any])
    capabilities: Json = field(default_factory=dict[str, Any])
    instructions: str = ""

    @property
    def is_modern(self) -> bool:
        """Whether each request carries an envelope."""
        return self.version == MODERN_VERSION

    def params(
        self, params: Mapping[str, Any], capabilities: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return a request's parameters with its envelope.

        `capabilities` are those of the client on whose behalf it is, beside the session's folder.
        """
        if not self.is_modern:
            return params
        envelope = _envelope({**_CAPABILITIES, **(capabilities or {})})
        return {**params, "_meta": {**params.get("_meta", {}), **envelope}}


async def negotiate(
    peer: Peer, wanted: WantedEra = "auto", more: Json | None = None, *, timeout_s: float = 30.0
) -> Era:
    """Agree with a server on an era. The handshake declares `more` capabilities of ours.

    `auto` asks for the newer one, and takes the handshake after any refusal but that of a server
    which has the newer era alone, in other versions.

    Raises:
        EnvironmentFailed: The server refuses, or speaks no known version.
        PeerEnded: It is gone, or broke the protocol.
        TimeoutError: It does not answer in time.
    """
    if wanted == "2025-11-25":
        return await _shake_hands(peer, more, timeout_s)
    if wanted == MODERN_VERSION:
        return await _discover(peer, timeout_s) or _refused(MODERN_VERSION, "it has no such era")
    try:
        # A server that does not know discovery may say nothing to it.
        era = await _discover(peer, min(_DISCOVER_S, timeout_s))
        return era or await _shake_hands(peer, more, timeout_s)
    except TimeoutError:
        try:
            return await _shake_hands(peer, more, timeout_s)
        except EnvironmentFailed as exc:
            if not _is_modern(exc.__cause__):
                raise
    # It started so slowly that both questions waited, and answered the first one.
    return await _discover(peer, timeout_s) or _refused(MODERN_VERSION, "it has no such era")


async def _discover(peer: Peer, timeout_s: float) -> Era | None:
    """Ask a server for the newer era; None if it has the handshake alone."""
    try:
        asked = {"_meta": _envelope(_CAPABILITIES)}
        found = await peer.request("server/discover", asked, timeout_s=timeout_s)
    except RemoteError as exc:
        if exc.code == _UNSUPPORTED_VERSION and not _shares_handshake(exc.data):
            _refused(MODERN_VERSION, exc)
        return None
    if MODERN_VERSION not in as_list(found.get("supportedVersions")):
        return None
    meta = as_object(found.get("_meta"))
    server = as_object(found.get("serverInfo")) or as_object(meta.get(f"{_META}serverInfo"))
    return _era(MODERN_VERSION, server, found)


def _refused(version: str, why: object) -> NoReturn:
    raise EnvironmentFailed(f"It refuses MCP {version}: {why}")


def _is_modern(error: BaseException | None) -> bool:
    return isinstance(error, RemoteError) and error.code == _UNSUPPORTED_VERSION


async def _shake_hands(peer: Peer, more: Json | None, timeout_s: float) -> Era:
    latest = HANDSHAKE_VERSIONS[-1]
    capabilities: Json = {**_CAPABILITIES, "elicitation": {"form": {}, "url": {}}, **(more or {})}
    asked = {"protocolVersion": latest, "capabilities": capabilities, "clientInfo": _CLIENT}
    try:
        found = await peer.request("initialize", asked, timeout_s=timeout_s)
    except RemoteError as exc:
        raise EnvironmentFailed(f"It refuses MCP {latest}: {exc}") from exc
    version = found.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        known = ", ".join(HANDSHAKE_VERSIONS)
        raise EnvironmentFailed(f"It speaks {clip_repr(version)}; expected one of {known}.")
    await peer.notify("notifications/initialized")
    return _era(str(version), as_object(found.get("serverInfo")), found)


def _era(version: str, server: Json, found: Json) -> Era:
    said = found.get("instructions")
    text = clip(said, _TEXT_CHARS) if isinstance(said, str) else ""
    return Era(version, server, as_object(found.get("capabilities")), text)


def _envelope(capabilities: Json) -> Json:
    return {
        f"{_META}protocolVersion": MODERN_VERSION,
        f"{_META}clientInfo": _CLIENT,
        f"{_META}clientCapabilities": capabilities,
    }


def _shares_handshake(data: Any) -> bool:
    """Whether an error on versions names one of the handshake's, or none at all."""
    supported = as_object(data).get("supported")
    if not isinstance(supported, list):
        return True
    return any(version in HANDSHAKE_VERSIONS for version in cast("list[Any]", supported))
