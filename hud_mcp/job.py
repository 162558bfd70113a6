"""One run of a taskset by one agent: its identity; its trajectories point to it."""

import secrets
from datetime import datetime
from typing import Any

from pydantic import Field

from hud_mcp.action import Value
from hud_mcp.trajectory import utc_now

__all__ = ["Job"]


class Job(Value):
    """What is known of a run."""

    id: str = Field(default_factory=lambda: f"job-{secrets.token_hex(6)}")
    name: str
    taskset: str | None = None
    agent: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime = Field(default_factory=utc_now)
    damage: str | None = Field(
        default=None, description="In a list: why the rest of its row cannot be read; or None."
    )
