"""Listeners to changes of a session's record or picture."""

import logging
from collections.abc import Callable, Iterable

logger = logging.getLogger(__name__)

Listener = Callable[[], None]
"""Runs in the turn of the change, so it must be short and raise nothing."""


class Changes:
    """The listeners of one process by session, which go on listening if it is resumed."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Listener]] = {}
        self._at_end: list[Listener] = []
        self._at_replacement: list[Listener] = []

    def watch(self, secret_digest: str, listener: Listener) -> Callable[[], None]:
        """Call a listener whenever a step or an end is recorded; return the end of that."""
        key = object()
        self._listeners.setdefault(secret_digest, {})[key] = listener

        def leave() -> None:
            of_session = self._listeners.get(secret_digest, {})
            of_session.pop(key, None)
            if not of_session:
                self._listeners.pop(secret_digest, None)

        return leave

    def at_end(self, listener: Listener) -> None:
        """Call a listener once, when the process begins to leave its sessions."""
        self._at_end.append(listener)

    def at_replacement(self, listener: Listener) -> None:
        """Call a listener as environments are replaced; its `HudMcpError` refuses the new ones."""
        self._at_replacement.append(listener)

    def tell_replaced(self) -> None:
        """Report that other versions are served; raise a listener's refusal."""
        for listener in list(self._at_replacement):
            listener()

    def tell(self, secret_digest: str) -> None:
        """Report that a step or the end of a session is recorded."""
        if secret_digest in self._listeners:
            _call(self._listeners[secret_digest].values())

    def close(self) -> None:
        """Report that the process leaves its sessions. No listener is called afterwards."""
        ending, self._at_end = self._at_end, []
        self._listeners.clear()
        _call(ending)


def _call(listeners: Iterable[Listener]) -> None:
    for listener in list(listeners):
        try:
            listener()
        except Exception:  # what a session does goes on
            logger.exception("a listener to a session's changes failed")
