"""Lines go to stderr and to the session that they belong to, one line each, and never break."""

import contextvars
import gc
import io
import logging
import sys
import weakref
from collections.abc import Callable

import pytest

from hud_mcp.base.telemetry import current_name
from hud_mcp.session.log import LineStream, configure_logging, current_log, take_rest

logger = logging.getLogger("author")


class Lines:
    """Takes the lines of one session."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def take(self, line: str) -> None:
        """Take one."""
        self.taken.append(line)


def in_session(name: str, lines: Lines, work: Callable[[], object]) -> None:
    """Run as a session's own task does: in a context that has its log."""
    context = contextvars.Context()
    context.run(current_name.set, name)
    context.run(current_log.set, lines.take)
    context.run(work)


def test_what_is_printed_is_passed_on_and_logged_line_by_line() -> None:
    """Half a line waits for its end."""
    target, lines = io.StringIO(), Lines()
    stream = LineStream(target)

    def work() -> None:
        print("one", file=stream)
        print("tw", end="", file=stream)
        print("o\n\nthree", end="", file=stream, flush=True)

    in_session("halves", lines, work)
    assert lines.taken == ["one", "two", ""]
    printed = [line.partition(" ")[2] for line in target.getvalue().splitlines()]
    assert printed == ["print   halves one", "print   halves two", "print   halves "]


def test_half_a_line_can_be_taken_once_its_session_has_ended() -> None:
    """What was printed last is recorded even without its end, and then forgotten."""
    stream, lines = LineStream(io.StringIO()), Lines()
    in_session("ended", lines, lambda: stream.write("one\ntwo"))
    assert take_rest(lines.take) == "two"
    assert take_rest(lines.take) is None
    assert lines.taken == ["one"]


def test_two_sessions_that_print_at_once_do_not_mix_their_lines() -> None:
    """Each has its own half line, also where their short names are the same."""
    stream = LineStream(io.StringIO())
    first, second = Lines(), Lines()
    in_session("a", first, lambda: stream.write("a1 "))
    in_session("a", second, lambda: stream.write("b1\n"))
    in_session("a", first, lambda: stream.write("a2\n"))
    assert (first.taken, second.taken) == (["a1 a2"], ["b1"])


def test_half_a_line_keeps_no_session_that_has_ended() -> None:
    """A thread of an author's may print long after."""
    lines = Lines()
    seen = weakref.ref(lines)
    in_session("late", lines, lambda: LineStream(io.StringIO()).write("half"))
    del lines
    gc.collect()
    assert seen() is None


def test_what_is_printed_outside_of_sessions_is_only_passed_on() -> None:
    """It belongs to nobody's record."""
    target = io.StringIO()
    stream = LineStream(target)
    assert stream.write("starting\n") == 9
    assert stream.writable()
    assert target.getvalue() == "starting\n"


def test_an_endless_line_is_bounded() -> None:
    """A program that never ends its line does not fill the memory."""
    stream, lines = LineStream(io.StringIO()), Lines()

    def work() -> None:
        for _ in range(10):
            stream.write("x" * 3000)
        stream.write("\n")

    in_session("a", lines, work)
    (line,) = lines.taken
    assert len(line) <= 4000


def test_log_records_reach_stderr_with_the_session_s_name_and_its_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A record of a session is in both; one of the server in stderr alone."""
    configure_logging("info")
    lines = Lines()
    in_session("abc123", lines, lambda: logger.warning("took %d s", 3))
    logger.info("listening")
    logger.debug("not shown")
    told = capsys.readouterr()
    assert lines.taken == ["warning author: took 3 s"]
    first, second = told.err.splitlines()
    assert first.endswith("warning abc123 took 3 s")
    assert second.endswith("info    - listening")
    assert told.out == ""


def test_a_record_is_one_line_whatever_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Line ends in a message and a traceback do not break the format, and the place is named."""
    configure_logging("info")
    try:
        int("two\nlines")
    except ValueError:
        logger.exception("it\nfailed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "error   - it failed [ValueError: invalid literal for int() with base 10: '" in line
    assert f"{__file__}:" in line


def test_a_bad_format_string_does_not_break_the_session_that_logs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Python reports it on stderr and goes on, and so it does in a session."""
    configure_logging("info")
    lines = Lines()

    def work() -> None:
        logger.info("%d", "three")
        logger.info("and on")

    in_session("a", lines, work)
    assert lines.taken == ["info author: and on"]
    assert "--- Logging error ---" in capsys.readouterr().err


def test_logging_never_writes_to_standard_output() -> None:
    """It belongs to the protocol."""
    configure_logging("debug")
    streams = [getattr(h, "stream", None) for h in logging.getLogger().handlers]
    assert sys.stdout not in streams
