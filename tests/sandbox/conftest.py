"""Sandboxes that close themselves; where the machine makes none, these tests are skipped aloud."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from hud_mcp.base.egress import AllowList
from hud_mcp.sandbox import Sandbox, SandboxLimits, SandboxOptions

OpenSandbox = Callable[..., Awaitable[Sandbox]]


@pytest.fixture
async def open_sandbox(machine: None) -> AsyncIterator[OpenSandbox]:
    """Open a sandbox; it is closed after the test."""
    opened: list[Sandbox] = []

    async def open_it(
        *, allow: Iterable[str] = (), isolation: Any = "bwrap", **limits: Any
    ) -> Sandbox:
        options = SandboxOptions(
            isolation=isolation, hosts=AllowList(allow), limits=SandboxLimits(**limits)
        )
        opened.append(await Sandbox.open(options))
        return opened[-1]

    yield open_it
    for sandbox in opened:
        await sandbox.close()


@pytest.fixture
async def sandbox(open_sandbox: OpenSandbox) -> Sandbox:
    """One with the bounds that are the default."""
    return await open_sandbox()
