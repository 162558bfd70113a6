"""The options and limits of a sandbox."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from hud_mcp.base.egress import AllowList
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.action import Value

MIB = 1024 * 1024


class SandboxLimits(Value):
    """Bounds of one sandbox. Durations are seconds, sizes bytes.

    File systems in memory hold all written files. A sandbox takes at most `memory_bytes`,
    `disk_bytes`, twice `scratch_bytes`, and 4,096 pages (System V) of the machine's memory.
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


Isolation = Literal["bwrap", "none"]

_PART = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")
_TAKEN = frozenset({
    "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp",
    "usr", "workspace",
})  # fmt: skip
"""The names in the root folder that a sandbox uses itself, or takes from the machine."""


@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """The options of a sandbox.

    Attributes:
        isolation: `bwrap` or `none`. With `none`, commands run on the host as the server's user,
            with its network, in a folder of their own. Limits are then kept as far as possible.
        hosts: The hosts that may be reached.
        env: Additional environment variables for every command.
        readonly: Additional folders of the host: a path inside, to a path of the host.
        limits: The bounds of the sandbox.
        places: Names of one existing folder of the machine that show the sandbox's folder too. They
            show it inside, and to processes that enter `Sandbox.namespaces`, and to nobody else.
        names: Paths of links to the folder, which exist inside alone.
        parts: Absolute paths inside that show a folder of the folder too: `/testbed` is `testbed`
            in it. Nothing of the machine is seen there.
        in_place: A folder of the machine to work in, without isolation; it is kept at the end.
    """

    isolation: Isolation = "bwrap"
    hosts: AllowList = field(default_factory=AllowList)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    readonly: Mapping[str, Path] = field(default_factory=dict[str, Path])
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    places: tuple[Path, ...] = ()
    names: tuple[Path, ...] = ()
    parts: tuple[str, ...] = ()
    in_place: Path | None = None

    def __post_init__(self) -> None:
        if self.isolation not in ("bwrap", "none"):
            raise InvalidEnvironment(
                f"isolation={self.isolation!r}: choose 'bwrap', or 'none' for no isolation at all."
            )
        if self.isolation == "none" and (self.hosts.patterns or self.readonly):
            raise InvalidEnvironment(
                "isolation='none' has the network and the files of the host: leave out the "
                "allow-list and what is read-only, or leave out isolation."
            )
        if self.isolation == "none" and self.parts:
            raise InvalidEnvironment(
                "isolation='none' uses the machine's own folders: leave out parts, or isolation."
            )
        if self.in_place is not None and self.isolation != "none":
            raise InvalidEnvironment("A sandbox has its own folder; leave out in_place.")
        for guest in self.readonly:
            if not guest.startswith("/") or ".." in guest.split("/") or guest == "/":
                raise InvalidEnvironment(
                    f"readonly={guest!r}: expected an absolute path of the inside, such as '/data'."
                )
        for part in self.parts:
            first = part.split("/")[1:2]
            if not _PART.fullmatch(part) or first[0] in _TAKEN:
                raise InvalidEnvironment(
                    f"parts={part!r}: expected an absolute path of the inside that nothing of the "
                    "system is at, such as '/testbed'."
                )
