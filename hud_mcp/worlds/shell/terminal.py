"""The text that a terminal would show for a command's output.

A carriage return, a backspace and the escape sequences of ECMA-48 are obeyed, so a hundred frames
of a progress bar become the last one. The screen has no bottom: nothing scrolls away.
"""

import re

__all__ = ["as_on_terminal"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PART = re.compile(
    r"\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # a title, a link, a picture: not shown
    r"|\x1b[ -/]*(?P<short>[0-~])"
    r"|(?P<control>[\x00-\x08\n-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x08\n-\x1f\x7f]+)"
)
_ROWS, _COLUMNS = 50, 250
"""The furthest place, beyond the text, to which a sequence moves the cursor. Text has no bound."""
_MOST_BLANKS = 1_000_000
"""The most blanks that moves to the right make. A few bytes can ask for many."""


def as_on_terminal(text: str) -> str:
    """Return a text as a terminal shows it."""
    if _CONTROL.search(text) is None:
        return text
    screen = _Screen()
    for part in _PART.finditer(text):
        if (shown := part["text"]) is not None:
            screen.write(shown)
        elif part["final"] is not None:
            screen.obey(part["final"], part["numbers"])
        else:
            screen.control(part["control"] or f"\x1b{part['short']}")
    return screen.text


class _Screen:
    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._saved = 0, 0
        self._blanks = _MOST_BLANKS

    @property
    def text(self) -> str:
        return "\n".join(map("".join, self._lines))

    def write(self, text: str) -> None:
        line = self._line()
        missing = self._column - len(line)
        if missing > 0:
            self._blanks -= missing
            line += " " * missing if self._blanks > 0 else ""
        self._column = min(self._column, len(line))
        line[self._column : self._column + len(text)] = text
        self._column += len(text)

    def control(self, sign: str) -> None:
        if sign in "\n\v\f":
            self._row += 1
            self._column = 0
            self._line()
        elif sign == "\r":
            self._column = 0
        elif sign == "\b":
            self._column = max(0, self._column - 1)
        elif sign == "\x1b7":
            self._saved = self._row, self._column
        elif sign == "\x1b8":
            self._row, self._column = self._saved

    def obey(self, final: str, numbers: str) -> None:
        given = [int(each) if each.isdecimal() else 0 for each in numbers[:40].split(";")]
        count = max(1, given[0])
        if final in "ABCDEF":
            down = {"A": -count, "F": -count, "B": count, "E": count}.get(final, 0)
            right = {"C": count, "D": -count}.get(final, 0)
            self._move(self._row + down, 0 if final in "EF" else self._column + right)
        elif final == "G":
            self._move(self._row, count - 1)
        elif final in "Hf":
            self._move(count - 1, max(1, given[1]) - 1 if len(given) > 1 else 0)
        elif final == "K":
            self._erase_line(given[0])
        elif final == "J":
            self._erase_screen(given[0])
        elif final in "su":
            self.control("\x1b7" if final == "s" else "\x1b8")

    def _move(self, row: int, column: int) -> None:
        self._row = max(0, min(row, max(len(self._lines), _ROWS) - 1))
        self._column = max(0, min(column, max(self._column, _COLUMNS)))

    def _erase_line(self, how: int) -> None:
        line = self._line()
        if how != 1:
            del line[self._column if how == 0 else 0 :]
        else:
            end = min(self._column + 1, len(line))
            line[:end] = " " * end

    def _erase_screen(self, how: int) -> None:
        if how == 0:
            self._erase_line(0)
            del self._lines[self._row + 1 :]
        elif how != 1:  # the screen is empty, and what comes next stands at its top
            self._lines = [[]]
            self._row = 0
            self._saved = 0, 0

    def _line(self) -> list[str]:
        while len(self._lines) <= self._row:
            self._lines.append([])
        return self._lines[self._row]
