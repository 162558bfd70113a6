"""What one connection may take up."""

from dataclasses import dataclass, fields

__all__ = ["StdioLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioLimits:
    """The bounds of one connection. Every value is positive.

    Attributes:
        max_frame_bytes: The longest message that is read; a longer one is refused.
        max_in_flight: How many messages are handled at once; further ones wait, and once 4 MiB
            of them do, the input waits, too. As many `subscriptions/listen` streams may be open
            beside them.
        max_outgoing_bytes: How much output may wait for a slow reader before new messages wait
            for it, too. Replies of requests already in flight come on top.
        finish_s: How long requests in flight may still finish after the end of the input.
        lifespan_exit_s: How long the server's lifespan may take to exit.
    """

    max_frame_bytes: int = 16 * 1024 * 1024
    max_in_flight: int = 256
    max_outgoing_bytes: int = 8 * 1024 * 1024
    finish_s: float = 0.15
    lifespan_exit_s: float = 1.5

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value <= 0:
                raise ValueError(f"{field.name} must be positive, got {value!r}")
