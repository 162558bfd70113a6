"""Which hosts a world may reach: one policy, and one gateway that connects to them.

The pages of a browser and the programs of a sandbox have no way out but a proxy of this
process. It looks names up, so that no name server hears of a host that is not on the list, and
it connects to the address that the list has admitted: a name that leads elsewhere by the time
that it is connected to gains nothing.
"""

from hud_mcp.base.egress.addresses import Address
from hud_mcp.base.egress.allow import AllowList, is_host
from hud_mcp.base.egress.gateway import HEAD_BYTES, Gateway

__all__ = ["HEAD_BYTES", "Address", "AllowList", "Gateway", "is_host"]
