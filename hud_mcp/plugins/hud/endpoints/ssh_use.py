"""How an ssh server uses sandboxes: a command is one use, and some operations on files are one."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import asyncssh

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.wire.words import in_hud_words
from hud_mcp.sandbox import Sandbox

__all__ = ["OpenUse", "SftpUse", "Use"]

logger = logging.getLogger(__name__)

_PAUSE_S = 0.3
"""An sftp session that asks for nothing for so long has paused, and what it did is recorded."""
_MOST_LINES = 100


class Use(Protocol):
    """One use of a sandbox: a command, or some operations on files."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox.

        Raises:
            HudMcpError: It may not be used any more.
        """
        ...

    def tell(self, text: str, **info: Any) -> None:
        """Say what came of it, for the record."""
        ...


OpenUse = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Use]]
"""Opens a sandbox for one use, which is described for the record; its end may take a moment.

It raises a `HudMcpError`, whose text the agent is told, where there is no sandbox yet or any more.
"""


class SftpUse:
    """The uses of a sandbox by one sftp session: from its first operation to its next pause.

    Args:
        open_use: Opens the sandbox.
    """

    def __init__(self, open_use: OpenUse) -> None:
        self._open_use = open_use
        self._stack: AsyncExitStack | None = None
        self._use: Use | None = None
        self._changing = asyncio.Lock()
        self._under_way = 0
        self._count = 0
        self._lines: list[str] = []
        self._pausing: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def operation(self, words: str | None = None) -> AsyncGenerator[Sandbox]:
        """The sandbox for one operation.

        Args:
            words: What it changes, for the record; None where that is said already, or nothing.

        Raises:
            SFTPFailure: There is no sandbox; the text says why.
        """
        if self._pausing is not None:
            self._pausing.cancel()
        self._under_way += 1
        try:
            yield (await self._begin()).sandbox
            self._count += 1
            if words is not None:
                self._lines.append(words)
        except HudMcpError as exc:
            raise asyncssh.SFTPFailure(in_hud_words(str(exc))) from exc
        finally:
            self._under_way -= 1
            if not self._under_way:
                loop = asyncio.get_running_loop()
                self._pausing = loop.call_later(_PAUSE_S, self._pause)

    async def end(self) -> None:
        """Record what was done since the last pause. Ending twice is not an error."""
        if self._pausing is not None:
            self._pausing.cancel()
        async with self._changing:
            stack, use = self._stack, self._use
            if stack is None or use is None or self._under_way:
                return
            self._stack = self._use = None
            more = len(self._lines) - _MOST_LINES
            lines = [*self._lines[:_MOST_LINES], *([f"… {more} more"] if more > 0 else [])]
            use.tell("\n".join(lines) or "Nothing was changed.", operations=self._count)
            self._lines, self._count = [], 0
            try:
                await stack.aclose()
            except HudMcpError as exc:
                logger.warning("what was done over sftp: %s", exc)

    async def _begin(self) -> Use:
        async with self._changing:
            if self._use is None:
                async with AsyncExitStack() as stack:
                    self._use = await stack.enter_async_context(self._open_use({"files": "sftp"}))
                    self._stack = stack.pop_all()
            return self._use

    def _pause(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.end())
