"""What a sandbox may use; reaching a bound ends the command that did, not the session."""

from pydantic import Field

from hud_mcp.values.action import Value

__all__ = ["SandboxLimits"]

MIB = 1024 * 1024


class SandboxLimits(Value):
    """Bounds of one sandbox. Durations are seconds, sizes bytes.

    File systems in memory hold all written files. A sandbox takes at most `memory_bytes`,
    `disk_bytes` and twice `scratch_bytes` of the machine's memory.
    """

    processes: int = Field(default=128, ge=4, description="At once, commands in the back too.")
    memory_bytes: int = Field(default=1024 * MIB, ge=16 * MIB, description="Of all processes.")
    disk_bytes: int = Field(default=512 * MIB, ge=MIB, description="Of the folder.")
    scratch_bytes: int = Field(default=128 * MIB, ge=MIB, description="Of /tmp, and of /dev/shm.")
    files: int = Field(default=100_000, ge=100, description="Files and folders of all of them.")
    open_files: int = Field(default=1024, ge=64, description="Descriptors of one process.")
    command_s: float = Field(default=50, gt=0, description="A command, unless a call says less.")
    connected_s: float = Field(default=3600, gt=0, description="A command over ssh.")
    output_bytes: int = Field(default=64 * MIB, ge=1024, description="That a command may write.")
    shown_bytes: int = Field(
        default=MIB, ge=1024, description="Of these, kept: the first half and the last."
    )
    connections: int = Field(default=64, ge=1, description="Through the allow-list, at once.")
