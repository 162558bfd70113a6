"""Endpoints: the addresses of a session's own capabilities (ssh/2, cdp/1.3, openpi/0, …)."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer as SshServer
else:
    __getattr__ = lazy_names(__name__)
