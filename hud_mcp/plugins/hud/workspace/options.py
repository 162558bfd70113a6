"""HUD's types for workspaces, and its options translated into those of a shell.

If a sandbox works differently, the option is refused with the alternative.
"""

import ipaddress
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from hud_mcp.errors import InvalidEnvironment, did_you_mean

__all__ = [
    "DEFAULT_SYSTEM_MOUNTS",
    "Mount",
    "MountKind",
    "Peer",
    "WorkspaceOptions",
    "WorkspaceRoute",
    "read_options",
]

MountKind = Literal["ro", "rw", "tmpfs", "symlink", "proc", "dev"]
"""The kind of a `Mount`."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or a file system inside a workspace.

    Attributes:
        kind: `ro` for read-only; the other kinds are refused.
        src: A path of the machine.
        dst: Its path inside.
        optional: Whether it may be missing.
        mode: The mode of a `tmpfs`.
    """

    kind: MountKind
    src: str = ""
    dst: str = ""
    optional: bool = False
    mode: int | None = None


DEFAULT_SYSTEM_MOUNTS: tuple[Mount, ...] = (
    Mount("ro", "/usr", "/usr"),
    Mount("ro", "/etc", "/etc"),
    Mount("symlink", "usr/lib", "/lib"),
    Mount("symlink", "usr/lib64", "/lib64"),
    Mount("symlink", "usr/bin", "/bin"),
    Mount("symlink", "usr/sbin", "/sbin"),
    Mount("proc", dst="/proc"),
    Mount("dev", dst="/dev"),
    Mount("tmpfs", dst="/tmp", mode=0o1777),  # noqa: S108  # a workspace's own
)
"""The parts of the machine in HUD's workspaces. A sandbox here has less of /etc."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A service of the environment that HUD's workspaces may reach.

    Attributes:
        name: Its name inside the workspace.
        port: Its port inside.
        target: Its address; None for this port of the loopback.
    """

    name: str
    port: int
    target: tuple[str, int] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Its address."""
        return self.target or ("127.0.0.1", self.port)


@dataclass(frozen=True, slots=True)
class WorkspaceRoute:
    """A host and a port that one capability of HUD's leads to.

    Raises:
        InvalidEnvironment: The capability, the host or the port is malformed.
    """

    capability: str
    host: str
    port: int

    def __post_init__(self) -> None:
        if not self.capability or self.capability != self.capability.strip():
            raise InvalidEnvironment(f"capability={self.capability!r} names no capability.")
        if not self.host or any(sign.isspace() for sign in self.host) or _is_address(self.host):
            raise InvalidEnvironment(f"host={self.host!r} is not a host's name.")
        if not 1 <= self.port <= 65535:  # noqa: PLR2004  # the range of TCP
            raise InvalidEnvironment(f"port={self.port!r} is not between 1 and 65535.")

    def to_wire(self) -> dict[str, str | int]:
        """The same as JSON."""
        return {"capability": self.capability, "host": self.host, "port": self.port}

    @classmethod
    def from_url(cls, capability: str, url: str) -> "WorkspaceRoute":
        """Return the route to the host of an HTTP URL.

        Raises:
            InvalidEnvironment: The URL is not of HTTP, or has a user.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidEnvironment(f"{url!r} is no http or https URL of a host.")
        return cls(capability, parts.hostname, parts.port or (443 if parts.scheme[4:] else 80))


@dataclass(frozen=True, kw_only=True)
class WorkspaceOptions:
    """HUD's options, as a shell takes them.

    Attributes:
        allow: The hosts that may be reached.
        readonly: Paths of the machine that are seen inside, by their paths there.
        require_isolation: Whether a session fails if no sandbox can be made.
        needs_other_user: Whether no command may run as the server's user.
        track_files: Whether changes of files are published.
        hand_over_root: Whether files that a template makes become the agent's.
    """

    allow: tuple[str, ...]
    readonly: Mapping[str, Path]
    require_isolation: bool
    needs_other_user: bool
    track_files: bool
    hand_over_root: bool


_IN_BINDING = "keys are made for each session, kept in memory, and given in its binding"
_SAME = {
    "host": ("127.0.0.1", "ssh is reached through the channel's own address; see its --host"),
    "port": (0, "ssh is reached through the channel's own port; see its --port"),
    "user": ("agent", "commands run as 'agent'"),
    "host_key_path": (None, _IN_BINDING),
    "authorized_client_keys": ((), _IN_BINDING),
    "credentials_dir": (None, _IN_BINDING),
    "hosts_path": (None, "names are looked up outside, by the proxy of allow="),
    "peers": ((), "publish the service as a Capability, or declare its calls by @env.tool"),
    "local_aliases": ((), "inside, localhost is the sandbox's own"),
    "ports": ((), "a session has a loopback of its own, on which every port is free"),
}
"""HUD's options with only one possible value here, and the alternative to other values."""

_READ = frozenset(
    {
        "mounts", "network", "allowed_hosts", "system_mounts", "shell_uid", "shell_gid",
        "require_isolation", "track_files", "hand_over_root", *_SAME,
    }
)  # fmt: skip


def read_options(given: Mapping[str, Any], known: Collection[str]) -> WorkspaceOptions:
    """Read HUD's options of `env.workspace`; `known` are those of a shell, for the error.

    InvalidEnvironment says that one is unknown or not supported, and names an alternative.
    """
    for name in given:
        if name not in _READ:
            hint = did_you_mean(name, [*_READ, *known])
            raise InvalidEnvironment(f"workspace: there is no option {name!r}.{hint}")
    for name, (only, instead) in _SAME.items():
        value = given.get(name, only)
        if value != only and (value or only):
            raise InvalidEnvironment(
                f"workspace: {name}={value!r} is not supported: {instead}. Leave it out."
            )
    system: Sequence[Mount] | None = given.get("system_mounts")
    if system is not None and tuple(system) != DEFAULT_SYSTEM_MOUNTS:
        raise InvalidEnvironment(
            "workspace: system_mounts= is not supported: a sandbox sees the machine's /usr and "
            "parts of /etc. Show more by readonly={'/data': '/path/of/data'}."
        )
    other_user = given.get("shell_uid") is not None or given.get("shell_gid") is not None
    tracked = given.get("track_files")
    return WorkspaceOptions(
        allow=_allowed(given.get("network", False), given.get("allowed_hosts")),
        readonly=_read_mounts(given.get("mounts") or ()),
        require_isolation=bool(given.get("require_isolation", False)),
        needs_other_user=other_user,
        track_files=_tracks_by_default() if tracked is None else bool(tracked),
        hand_over_root=bool(given.get("hand_over_root", True)),
    )


def _allowed(network: Any, hosts: Any) -> tuple[str, ...]:
    if isinstance(hosts, str):
        raise InvalidEnvironment(f"allowed_hosts: expected a set of hosts; write {{{hosts!r}}}.")
    if hosts is not None:
        return tuple(sorted(hosts))
    return ("*",) if network else ()


def _read_mounts(mounts: Sequence[Mount]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for mount in mounts:
        if mount.kind != "ro":
            raise InvalidEnvironment(
                f"workspace: a mount of kind {mount.kind!r} is not supported: nothing of the "
                "machine can be written in a sandbox, and /tmp is its own. Use Mount('ro', …), or "
                "copy what is to be written into the root."
            )
        source = Path(mount.src)
        if not mount.optional or source.exists():
            found[mount.dst or mount.src] = source
    return found


def _tracks_by_default() -> bool:
    return os.environ.get("HUD_FILE_TRACKING_ENABLED", "").lower() in ("1", "true", "yes", "on")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
