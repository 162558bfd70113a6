"""A sandbox, the SSH server in front of it, and a client."""

from collections.abc import AsyncIterator

import asyncssh
import pytest
from ssh_server import MIB, admit, connect

from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer
from hud_mcp.sandbox import Sandbox, SandboxLimits, SandboxOptions


@pytest.fixture
async def sandbox(machine: None) -> AsyncIterator[Sandbox]:
    """A sandbox of its own."""
    limits = SandboxLimits(disk_bytes=32 * MIB, output_bytes=8 * MIB)
    opened = await Sandbox.open(SandboxOptions(limits=limits))
    yield opened
    await opened.close()


@pytest.fixture
async def server() -> AsyncIterator[SshServer]:
    """A server on a loopback port."""
    opened = await SshServer.open()
    yield opened
    await opened.close()


@pytest.fixture
async def client(
    server: SshServer, sandbox: Sandbox
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection to the sandbox, which checks the server's key."""
    async with connect(admit(server, sandbox).capability) as connection:
        yield connection
