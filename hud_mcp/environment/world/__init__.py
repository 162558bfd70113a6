"""The contract of a world, what declares one, and what it is opened with.

A *spec* declares a kind of world (`Browser(site="site/")`); opening it gives a *world*,
the live and private state that one session acts on. This package owns the contract and
imports no world. `hud_mcp.testing` has it as tests, for authors to run on worlds of their own.
"""

from hud_mcp.environment.world.agent_data import begin_grading, blame, note_agent_data
from hud_mcp.environment.world.endpoint import (
    DirectAccess,
    DirectSession,
    Endpoint,
    EndpointAccess,
    FindSession,
    Publish,
)
from hud_mcp.environment.world.opening import Opening, Shared, SharedService
from hud_mcp.environment.world.spec import WorldSpec
from hud_mcp.environment.world.world import World, as_world, current_world

__all__ = [
    "DirectAccess",
    "DirectSession",
    "Endpoint",
    "EndpointAccess",
    "FindSession",
    "Opening",
    "Publish",
    "Shared",
    "SharedService",
    "World",
    "WorldSpec",
    "as_world",
    "begin_grading",
    "blame",
    "current_world",
    "note_agent_data",
]
