"""The end of a server's process, by one deadline: hosts kill it 2 s after they have left it."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable

__all__ = ["Deadline"]

logger = logging.getLogger(__name__)

_WITHIN_S = 1.85
"""How long an end takes at most; the rest of two seconds is for the system to clean up."""
_LAST_S = 0.1
"""How long the last words and the end of other processes may take."""
_TIDY_S = 0.4
"""After so long, the machine is busy, and the interpreter is not left time to tidy up either."""


class Deadline:
    """Ends a process in order where that is quick enough, and at once where it is not.

    What is recorded by then stands: the store writes whole steps. A session whose end is not
    recorded goes on in the next server, as after a kill.

    Args:
        kill: Ends the processes that are this one's, at once; called on another thread.
        within_s: How long the end takes at most.
    """

    def __init__(self, kill: Callable[[], None], *, within_s: float = _WITHIN_S) -> None:
        self._kill = kill
        self._within_s = within_s
        self._began_s: float | None = None
        self._code = 0

    def begin(self, code: int) -> None:
        """Set the deadline, once: a second call changes nothing.

        Args:
            code: The status that the process ends with.
        """
        if self._began_s is not None:
            return
        self._began_s, self._code = time.monotonic(), code
        timer = threading.Timer(self._within_s, self._expire)
        timer.name, timer.daemon = "end of the process", True
        timer.start()

    def finish(self) -> None:
        """Say that everything is closed: where little time is left, the process ends here."""
        if self._began_s is not None and time.monotonic() - self._began_s > _TIDY_S:
            self._leave()

    def _expire(self) -> None:
        # Writing may wait for a lock that a thread which is not scheduled holds.
        threading.Timer(_LAST_S, self._leave).start()
        logger.warning("the process ends after %.2f s, although not all is closed", self._within_s)
        try:
            self._kill()
        finally:
            self._leave()

    def _leave(self) -> None:
        sys.stderr.flush()
        os._exit(self._code)
