"""The calls that an agent made of a server, for graders."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Calls", "ServerCall"]


@dataclass(frozen=True)
class ServerCall:
    """One call of a tool, as the record has it."""

    tool: str
    arguments: dict[str, Any]
    is_error: bool
    text: str
    seconds: float


class Calls(list[ServerCall]):
    """The calls of one session, in their order. Those that a death of the server undid are not."""

    def called(self, tool: str, **arguments: Any) -> bool:
        """Whether a tool was called with these arguments, and any others."""
        return any(
            call.tool == tool
            and all(n in call.arguments and call.arguments[n] == v for n, v in arguments.items())
            for call in self
        )

    def never(self, *tools: str) -> tuple[str, ...]:
        """Return a sentence for each call of tools that must not be called."""
        return tuple(
            f"{call.tool} was called (call {number})"
            for number, call in enumerate(self, 1)
            if call.tool in tools
        )

    def in_order(self, *tools: str) -> bool:
        """Whether the tools were called in this order, with any others between."""
        rest = iter(call.tool for call in self)
        return all(tool in rest for tool in tools)

    def at_most(self, count: int, tool: str | None = None) -> bool:
        """Whether a tool, or all of them, were called at most so many times."""
        return sum(tool in (None, call.tool) for call in self) <= count

    def errors_at_most(self, count: int) -> bool:
        """Whether at most so many calls were answered with an error."""
        return sum(call.is_error for call in self) <= count

    def after_error(self, tool: str) -> bool:
        """Whether a tool was called after a call that was answered with an error."""
        failed = False
        for call in self:
            if failed and call.tool == tool:
                return True
            failed = failed or call.is_error
        return False
