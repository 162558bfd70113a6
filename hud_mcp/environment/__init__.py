"""Declaring environments: `Environment`, what its templates take, and who sees their rewards.

`Workspace` and the types that its options take have HUD's names. `hud_mcp.environment.server`
serves an environment on the HUD control channel.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names
from hud_mcp.environment.argument_types import (
    DataFileArg,
    DataFileRef,
    DataFilesArg,
    FileRef,
    FilesArg,
    GradingArg,
    PromptArg,
)
from hud_mcp.environment.checks import REWARD_POLICIES
from hud_mcp.environment.environment import (
    Environment,
    declared_environment,
)
from hud_mcp.environment.loading import load_environment
from hud_mcp.environment.template import Answer
from hud_mcp.environment.workspace import (
    DEFAULT_SYSTEM_MOUNTS,
    Mount,
    MountKind,
    Peer,
    WorkspaceRoute,
)
from hud_mcp.values.capability import Capability

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.workspace.spec import Workspace as Workspace
else:  # it is a world's declaration, which lies above this module
    __getattr__ = lazy_names(__name__)

__all__ = [
    "DEFAULT_SYSTEM_MOUNTS",
    "REWARD_POLICIES",
    "Answer",
    "Capability",
    "DataFileArg",
    "DataFileRef",
    "DataFilesArg",
    "Environment",
    "FileRef",
    "FilesArg",
    "GradingArg",
    "Mount",
    "MountKind",
    "Peer",
    "PromptArg",
    "Workspace",
    "WorkspaceRoute",
    "declared_environment",
    "load_environment",
]
