"""A server of tasks, for programs with an event loop."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from typing_extensions import Self

from hud_mcp_client.held import begin, listed, resumed
from hud_mcp_client.session import Session
from hud_mcp_client.transport import AsyncTransport
from hud_mcp_client.wire import Protocol, Wire

__all__ = ["Server", "connect"]


class Server:
    """A server that runs somewhere. Made by `connect`; nothing is sent before the first call."""

    def __init__(
        self, url: str, *, token: str | None, protocol: Protocol, retry_s: float, silence_s: float
    ) -> None:
        self.url = url
        self._wire = Wire(url, token=token, protocol=protocol, retry_s=retry_s)
        self._transport = AsyncTransport(url, silence_s=silence_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def protocol(self) -> str | None:
        """The era of MCP in use; None before the first call."""
        return self._wire.era

    async def start(
        self,
        task: str | None = None,
        *,
        template: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        environment: str | None = None,
        context: Mapping[str, Any] | None = None,
        seed: int | None = None,
        session: str | None = None,
        job: str | None = None,
    ) -> Session:
        """Start a task.

        Args:
            task: The id of a task that the server lists.
            template: Or a template, with its `arguments`.
            arguments: The template's.
            environment: The template's environment, if several have a template of that name.
            context: Features in which the world differs from its defaults.
            seed: The seed of random choices.
            session: An id for the session, `sess-` and 32 random hex digits. The same start with
                the same id returns the same session. One is drawn by default.
            job: The name of your own job for the session.

        Raises:
            InvalidTask: There is no such task, or an argument is wrong. Nothing was started.
            CallRefused: The server starts no session; the text says why.
            Unauthorized: The server does not take the token.
            ConnectionFailed: No reply came.
        """
        asked = {
            "task": task,
            "template": template,
            "arguments": arguments,
            "environment": environment,
            "context": context,
            "seed": seed,
            "job": job,
        }
        once = {**asked, "session": session}
        begun, named = await self._transport.perform(begin(self._wire, once))
        return Session(self._transport, self._wire, begun, job=named, asked=asked)

    async def resume(self, session: str) -> Session:
        """Continue a session that was started before, here or elsewhere.

        Args:
            session: Its id.

        Returns:
            The session. One that has ended has its `receipt`.

        Raises:
            SessionNotFound: There is no such session, or it is another caller's.
            ConnectionFailed: No reply came.
        """
        begun = await self._transport.perform(resumed(self._wire, session))
        return Session(self._transport, self._wire, begun, job=None, asked=None)

    async def tasks(self, like: str | None = None) -> list[dict[str, Any]]:
        """Return the tasks and templates that the server lists.

        Args:
            like: Only tasks whose id, environment or template matches this.

        Raises:
            ConnectionFailed: No reply came.
        """
        return await self._transport.perform(listed(self._wire, like))

    async def close(self) -> None:
        """Close the connections. Sessions live on. It may be called twice."""
        try:
            await self._transport.perform(self._wire.leave())
        finally:
            await self._transport.close()


def connect(
    url: str,
    *,
    token: str | None = None,
    protocol: Protocol = "auto",
    retry_s: float = 60.0,
    silence_s: float = 60.0,
) -> Server:
    """Name a server; nothing is sent before the first call.

    Args:
        url: Its address, with its `/mcp`.
        token: The token that the server requires, or None.
        protocol: The era of MCP to speak: `2026-07-28`, `2025-11-25`, or `auto` for the newest
            that the server knows.
        retry_s: The longest time of repeated calls without a reply, if repeating is harmless.
        silence_s: After this many silent seconds, a call counts as lost.
    """
    return Server(url, token=token, protocol=protocol, retry_s=retry_s, silence_s=silence_s)
