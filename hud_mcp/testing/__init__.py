"""The contract of a world as tests, for authors of worlds to run on their own.

Derive a class of tests, and override `make_spec`, and the samples if the world takes more than
`wait`:

    from hud_mcp.testing import WorldContract

    @pytest.mark.anyio  # anyio's plugin for pytest comes with hud-mcp
    class TestMyWorld(WorldContract):
        @classmethod
        def make_spec(cls) -> WorldSpec:
            return MyWorld()

Each check is a sentence of the protocol. `check_world` makes all checks without pytest.
"""

from hud_mcp.testing.checks import CALL_BOUND_S, ContractBroken
from hud_mcp.testing.contract import WorldContract, check_world

__all__ = ["CALL_BOUND_S", "ContractBroken", "WorldContract", "check_world"]
