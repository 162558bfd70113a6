"""Declaring environments: `Environment`, what its templates take, and who sees their rewards.

`hud_mcp.environment.server` serves one on the HUD control channel.
"""

from hud_mcp.capability import Capability
from hud_mcp.environment.arguments import (
    DataFileArg,
    DataFileRef,
    DataFilesArg,
    FileRef,
    FilesArg,
    GradingArg,
    PromptArg,
)
from hud_mcp.environment.environment import REWARD_POLICIES, Environment
from hud_mcp.environment.loading import load_environment
from hud_mcp.template import Answer

__all__ = [
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
    "PromptArg",
    "load_environment",
]
