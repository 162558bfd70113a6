"""The bounds of a server and of each session; reaching one is an error that names it."""

from pydantic import Field

from hud_mcp.values.action import Value

__all__ = ["Limits"]


class Limits(Value):
    """Explicit bounds, all configurable. Durations are seconds, sizes bytes."""

    sessions: int = Field(default=128, ge=1, description="Sessions at once, of all callers.")
    sessions_per_caller: int = Field(default=64, ge=1, description="Sessions at once of one.")
    actions_per_step: int = Field(default=50, ge=1)
    argument_bytes: int = Field(default=1_048_576, ge=1, description="Of a call's arguments.")
    observation_chars: int = Field(default=10_000, ge=200, description="Of an observation's text.")
    queue: int = Field(default=64, ge=1, description="Calls that may wait on one session.")
    setup_s: float = Field(default=120, gt=0)
    step_s: float = Field(default=60, gt=0)
    grade_s: float = Field(default=300, gt=0)
    reply_s: float = Field(default=45, gt=0, description="How long a reply waits for the grade.")
    idle_s: float = Field(default=1800, gt=0, description="Without a call, a session expires.")
    total_s: float = Field(default=14_400, gt=0, description="After this, it expires anyway.")
    provisional_s: float = Field(
        default=300, gt=0, description="One that a prompt started and nobody acts on."
    )
    log_lines: int = Field(default=10_000, ge=0)
