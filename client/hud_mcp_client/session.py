"""A held task, for programs with an event loop."""

from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from hud_mcp_client.held import HeldSession
from hud_mcp_client.transport import AsyncTransport
from hud_mcp_client.values import Observation, Row, Screenshot, Step, ToolReply
from hud_mcp_client.wire import Wire

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["Session"]


class Session(HeldSession):
    """One task, driven step by step. Made by `Server.start` and `Server.resume`.

    If a reply was lost, the client sends the call again, and the server does not perform it twice.
    The attributes describe the session and its progress.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        wire: Wire,
        begun: Row,
        *,
        job: str | None,
        asked: Row | None,
    ) -> None:
        super().__init__(wire, begun, job=job, asked=asked)
        self._transport = transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def step(
        self,
        actions: Any = None,
        *,
        look: "Literal['text', 'image'] | None" = None,
        changes: bool = False,
    ) -> Step:
        """Perform actions in order, and look.

        Args:
            actions: One action or several, as dicts; None only looks. A `response` must be the
                last: it sets `final_response`, and does not end the session.
            look: `text` or `image`, to get only that; both by default.
            changes: Whether the text has only the changes since the last observation.

        Returns:
            `(observation, reward, terminated, info)`, with `truncated` beside them. The reward is
            the world's own for this step, or 0.0. If the world refused an action, `info["error"]`
            says which and why, and earlier actions stay.

        Raises:
            InvalidAction: An action is malformed. None was performed.
            OutOfStep: Another caller has stepped the session meanwhile. Nothing was done.
            SessionEnded, EnvironmentFailed: The session is over.
            ConnectionFailed: No reply came. `Server.resume` continues, here or elsewhere.
        """
        return await self._transport.perform(self.work_step(actions, look, changes=changes))

    async def answer(self, answer: Any) -> float | None:
        """Submit the final answer, and wait for its grade.

        Args:
            answer: A text unchanged; any other value as JSON.

        Returns:
            The reward; None if it is hidden. `receipt` has the rest.

        Raises:
            GradingFailed, EnvironmentFailed: There is no grade; the session has ended.
            AlreadyAnswered: Another answer was given before. The first one counts.
            SessionEnded: The session is over.
            ConnectionFailed: As for `step`.
        """
        return await self._transport.perform(self.work_answer(answer))

    async def reset(self) -> tuple[Observation, dict[str, Any]]:
        """Start the task again in a new session, and cancel an open one.

        Returns:
            The observation, whose text begins with the prompt, and its info.

        Raises:
            SessionEnded: The session was resumed, so this client does not know its start.
            InvalidTask, ConnectionFailed: As for `Server.start`.
        """
        return await self._transport.perform(self.work_reset())

    async def screenshot(self, kind: "Literal['png', 'jpeg']" = "png") -> Screenshot:
        """Take a picture. It is not recorded as a step.

        Raises:
            ActionFailed: The world has no screen.
            SessionEnded, ConnectionFailed: As for `step`.
        """
        return await self._transport.perform(self.work_screenshot(kind))

    async def tool(self, name: str, /, **arguments: Any) -> ToolReply:
        """Call an own tool of the environment.

        A repeated call may act twice, so the client does not repeat it after a lost reply.

        Raises:
            ConnectionFailed: No reply came; the tool may have been called.
        """
        return await self._transport.perform(self.work_tool(name, arguments))

    async def close(self) -> None:
        """Cancel the session, unless it was answered. It may be called twice.

        Raises:
            ConnectionFailed: No reply came. The session ends at its time limit.
        """
        await self._transport.perform(self.work_close())
