"""The server of sign-in. It loads when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.oauth.issuer import OuterIssuer as OuterIssuer
    from hud_mcp.plugins.oauth.server import AuthorizationServer as AuthorizationServer
else:
    __getattr__ = lazy_names(__name__)
