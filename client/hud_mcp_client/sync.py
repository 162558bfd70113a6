"""The names for programs without an event loop: `connect`, `Server`, `Session` that block."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from hud_mcp_client.held import HeldSession, begin, listed, resumed
from hud_mcp_client.transport import SyncTransport
from hud_mcp_client.values import Observation, Row, Screenshot, Step, ToolReply
from hud_mcp_client.wire import Protocol, Wire

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["Server", "Session", "connect"]


class Session(HeldSession):
    """One task, driven step by step, as `hud_mcp_client.Session` documents it."""

    def __init__(
        self,
        transport: SyncTransport,
        wire: Wire,
        begun: Row,
        *,
        job: str | None,
        asked: Row | None,
    ) -> None:
        super().__init__(wire, begun, job=job, asked=asked)
        self._transport = transport

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def step(
        self,
        actions: Any = None,
        *,
        look: "Literal['text', 'image'] | None" = None,
        changes: bool = False,
    ) -> Step:
        """Perform actions in order, and look."""
        return self._transport.perform(self.work_step(actions, look, changes=changes))

    def answer(self, answer: Any) -> float | None:
        """Submit the final answer, and wait for its grade."""
        return self._transport.perform(self.work_answer(answer))

    def reset(self) -> tuple[Observation, dict[str, Any]]:
        """Start the task again in a new session, and cancel an open one."""
        return self._transport.perform(self.work_reset())

    def screenshot(self, kind: "Literal['png', 'jpeg']" = "png") -> Screenshot:
        """Take a picture. It is not recorded as a step."""
        return self._transport.perform(self.work_screenshot(kind))

    def tool(self, name: str, /, **arguments: Any) -> ToolReply:
        """Call an own tool of the environment."""
        return self._transport.perform(self.work_tool(name, arguments))

    def close(self) -> None:
        """Cancel the session, unless it was answered. It may be called twice."""
        self._transport.perform(self.work_close())


class Server:
    """A server that runs somewhere, as `hud_mcp_client.Server` documents it."""

    def __init__(
        self, url: str, *, token: str | None, protocol: Protocol, retry_s: float, silence_s: float
    ) -> None:
        self.url = url
        self._wire = Wire(url, token=token, protocol=protocol, retry_s=retry_s)
        self._transport = SyncTransport(url, silence_s=silence_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def protocol(self) -> str | None:
        """The era of MCP in use; None before the first call."""
        return self._wire.era

    def start(
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
        """Start a task."""
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
        begun, named = self._transport.perform(begin(self._wire, once))
        return Session(self._transport, self._wire, begun, job=named, asked=asked)

    def resume(self, session: str) -> Session:
        """Continue a session that was started before, here or elsewhere."""
        begun = self._transport.perform(resumed(self._wire, session))
        return Session(self._transport, self._wire, begun, job=None, asked=None)

    def tasks(self, like: str | None = None) -> list[dict[str, Any]]:
        """Return the tasks and templates that the server lists."""
        return self._transport.perform(listed(self._wire, like))

    def close(self) -> None:
        """Close the connections. Sessions live on. It may be called twice."""
        try:
            self._transport.perform(self._wire.leave())
        finally:
            self._transport.close()


def connect(
    url: str,
    *,
    token: str | None = None,
    protocol: Protocol = "auto",
    retry_s: float = 60.0,
    silence_s: float = 60.0,
) -> Server:
    """Name a server, with the arguments of `hud_mcp_client.connect`."""
    return Server(url, token=token, protocol=protocol, retry_s=retry_s, silence_s=silence_s)
