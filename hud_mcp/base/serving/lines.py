"""A byte stream cut into lines, each within a bound, without I/O."""

import re
from typing import Final, NamedTuple

__all__ = ["LineBuffer", "Overlong"]

_HEAD_BYTES: Final = 1024
_BLANK: Final = re.compile(rb"[\n\r\t ]*")


class Overlong(NamedTuple):
    """What stands for a line over the bound.

    Attributes:
        head: Its first bytes.
    """

    head: bytes


class LineBuffer:
    """What has come of a byte stream, and was not taken yet.

    Blank lines are skipped, and what is blank at the beginning of a line is dropped.

    Args:
        most_bytes: The longest line, without its line feed.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()
        self._searched = 0
        self._is_dropping = False

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._held)

    @property
    def is_dropping(self) -> bool:
        """Whether what comes belongs to a line that is not wanted."""
        return self._is_dropping

    @property
    def has_begun(self) -> bool:
        """Whether a line has come in part; what is blank before it is dropped."""
        self._skip_blank()
        return bool(self._held)

    def feed(self, data: bytes) -> None:
        """Take in a chunk."""
        if self._is_dropping:
            _, newline, data = data.partition(b"\n")
            self._is_dropping = not newline
        self._held += data

    def take(self) -> bytes | Overlong | None:
        """Remove and return the next line, without its line feed.

        Returns:
            The line. An `Overlong`, once, in place of one over the bound, as soon as that is
            known: the rest of it is dropped as it comes. None where no line is complete.
        """
        if self._held and self._held[0] in b"\n\r\t ":
            self._skip_blank()  # not after a line: who takes the stream over is given every byte
        end = self._held.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._held)
            return self._give_up() if len(self._held) > self._most_bytes else None
        is_long = end > self._most_bytes
        line = bytes(self._held[: min(end, _HEAD_BYTES) if is_long else end])
        del self._held[: end + 1]
        self._searched = 0
        return Overlong(line) if is_long else line

    def take_rest(self) -> bytes:
        """Remove and return all that is held: at the end of a stream, a line without a feed."""
        rest = bytes(self._held)
        self._forget()
        return rest

    def drop_line(self) -> None:
        """Drop the line that has come in part, and the rest of it as it comes."""
        self._give_up()

    def _give_up(self) -> Overlong:
        head = bytes(self._held[:_HEAD_BYTES])
        self._forget()
        self._is_dropping = True
        return Overlong(head)

    def _forget(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._held)
        if blank is not None and blank.end():
            del self._held[: blank.end()]
            self._searched = 0
