"""An SSH server of sandboxes, and keys to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh
from waiting import until

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.endpoints.ssh_server import SshAccess, SshServer
from hud_mcp.sandbox import Sandbox
from hud_mcp.values.capability import Capability

MIB = 1024 * 1024


@dataclass
class Opened:
    """A use of a sandbox that nobody records."""

    sandbox: Sandbox

    def tell(self, text: str, **info: object) -> None:
        """Nothing is recorded."""


@asynccontextmanager
async def opened(sandbox: Sandbox | None) -> AsyncIterator[Opened]:
    """A use of a sandbox; None is one that is not there."""
    if sandbox is None:
        raise EnvironmentFailed("No task is in progress; start one.")
    yield Opened(sandbox)


def admit(server: SshServer, sandbox: Sandbox) -> SshAccess:
    """A way into a sandbox."""
    return server.admit(
        "shell", lambda _what: opened(sandbox), cwd=sandbox.root, isolation=sandbox.isolation
    )


def connect(capability: Capability, **changes: object) -> object:
    """What connects as an agent does: with what the capability says, and nothing else."""
    params = capability.params
    host, port = capability.url.removeprefix("ssh://").split(":")
    known = asyncssh.import_known_hosts(f"[{host}]:{port} {params['host_pubkey']}\n")
    options: dict[str, object] = {
        "username": params["user"],
        "client_keys": [asyncssh.import_private_key(params["client_key"])],
        "known_hosts": known,
        "config": None,
        "agent_path": None,
    }
    return asyncssh.connect(host, int(port), **(options | changes))


async def idle(sandbox: Sandbox) -> None:
    """Wait until nothing runs in a sandbox."""

    async def is_idle() -> bool:
        return not (await sandbox.usage()).processes

    await until(is_idle)
