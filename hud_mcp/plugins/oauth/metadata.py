"""The documents by which clients find their way to a token, and the challenge that names them."""

from typing import Any

from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl

from hud_mcp.plugins.oauth.clients import METHODS
from hud_mcp.plugins.oauth.settings import Place
from hud_mcp.plugins.oauth.values import SCOPES, WORK

_RESOURCE = "/.well-known/oauth-protected-resource"
_SERVER = "/.well-known/oauth-authorization-server"


def resource_metadata(place: Place, issuer: str) -> dict[str, Any]:
    """Return the metadata of the protected resource (RFC 9728)."""
    return {
        "resource": place.resource,
        "authorization_servers": [issuer],
        "scopes_supported": [WORK],  # clients ask for all of these at once, for more when needed
        "bearer_methods_supported": ["header"],
        "resource_name": "hud-mcp",
    }


def server_metadata(place: Place, *, is_open: bool) -> dict[str, Any]:
    """Return the metadata of this authorization server (RFC 8414)."""
    issuer = place.issuer
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "revocation_endpoint": f"{issuer}/revoke",
        **({"registration_endpoint": f"{issuer}/register"} if is_open else {}),
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": list(METHODS),
        "revocation_endpoint_auth_methods_supported": list(METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def resource_paths(place: Place) -> list[str]:
    """Return the paths of the resource's metadata, as clients and as proxies spell them."""
    return _paths(_RESOURCE, place.prefix + place.path, place.path)


def server_paths(place: Place) -> list[str]:
    """Return the paths of the authorization server's metadata."""
    return _paths(_SERVER, place.prefix)


def _paths(well_known: str, *inside: str) -> list[str]:
    return list(dict.fromkeys([well_known, *(well_known + each for each in inside)]))


def challenge(place: Place, *, error: str = "", text: str = "", scope: str = WORK) -> str:
    """Return the value of WWW-Authenticate (RFC 6750, 3; RFC 9728, 5.1)."""
    url = build_resource_metadata_url(AnyHttpUrl(place.resource))
    told = {"error": error, "error_description": text} if error else {}
    parts = {**told, "resource_metadata": str(url), "scope": scope}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())
