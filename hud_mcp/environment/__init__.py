"""Declaring environments: `Environment`, and who sees the rewards of its tasks."""

from hud_mcp.environment.environment import (
    REWARD_POLICIES,
    Environment,
    declared_environment,
)

__all__ = ["REWARD_POLICIES", "Environment", "declared_environment"]
