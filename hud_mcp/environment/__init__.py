"""The declaration of environments: `Environment`, its templates' types, and reward policies.

`Workspace` and the types of its options are HUD's, and a plugin has them.
"""

from typing import Any

from hud_mcp.environment.arguments import (
    DataFileArg,
    DataFileRef,
    DataFilesArg,
    FileRef,
    FilesArg,
    GradingArg,
    PromptArg,
)
from hud_mcp.environment.declarations import REWARD_POLICIES
from hud_mcp.environment.environment import Environment, declared_environment
from hud_mcp.environment.prompt import Answer
from hud_mcp.registry import service
from hud_mcp.values.capability import Capability

__all__ = [
    "DEFAULT_SYSTEM_MOUNTS",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
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
    "Mount",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
    "MountKind",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
    "Peer",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
    "PromptArg",
    "Workspace",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
    "WorkspaceRoute",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
    "declared_environment",
    "load_environment",  # pyright: ignore[reportUnsupportedDunderAll]  # by __getattr__
]


def __getattr__(name: str) -> Any:
    # Those without an import derive from worlds, which lie above: an import would be a circle.
    if name in __all__:
        return service(f"environment.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
