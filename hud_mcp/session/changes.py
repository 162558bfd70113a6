"""Who is to be told that a session's record or picture has changed."""

import logging
from collections.abc import Callable, Iterable

__all__ = ["Changes", "Listener"]

logger = logging.getLogger(__name__)

Listener = Callable[[], None]
"""Called in the turn of what changed: it is short, and raises nothing."""


class Changes:
    """The listeners of one process, by the digest of a session's id.

    One that listens to a session hears of it also once the session was let go of and resumed.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Listener]] = {}
        self._at_end: list[Listener] = []
        self._at_replacement: list[Listener] = []

    def watch(self, secret_digest: str, listener: Listener) -> Callable[[], None]:
        """Have a listener called whenever a step or the end of a session is recorded.

        Returns:
            What ends that; calling it twice is not an error.
        """
        key = object()
        self._listeners.setdefault(secret_digest, {})[key] = listener

        def leave() -> None:
            of_session = self._listeners.get(secret_digest, {})
            of_session.pop(key, None)
            if not of_session:
                self._listeners.pop(secret_digest, None)

        return leave

    def at_end(self, listener: Listener) -> None:
        """Have a listener called once, when the process begins to leave its sessions."""
        self._at_end.append(listener)

    def at_replacement(self, listener: Listener) -> None:
        """Have a listener called each time that other versions of environments are served.

        Args:
            listener: It may refuse them by raising a `HudMcpError`.
        """
        self._at_replacement.append(listener)

    def tell_replaced(self) -> None:
        """Say that other versions of environments are served.

        Raises:
            HudMcpError: A listener refuses them.
        """
        for listener in list(self._at_replacement):
            listener()

    def tell(self, secret_digest: str) -> None:
        """Say that something of a session is recorded."""
        if secret_digest in self._listeners:
            _call(self._listeners[secret_digest].values())

    def close(self) -> None:
        """Say that the process leaves its sessions; nobody listens any more."""
        ending, self._at_end = self._at_end, []
        self._listeners.clear()
        _call(ending)


def _call(listeners: Iterable[Listener]) -> None:
    for listener in list(listeners):
        try:
            listener()
        except Exception:  # what a session does goes on
            logger.exception("a listener to a session's changes failed")
