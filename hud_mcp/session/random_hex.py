"""Random digits of ids and tokens, from the operating system's source, many at a time.

Each read of that source lets the thread go on that writes the record, and waits for its turn
after it: where sessions begin fast, that takes longer than all else that is drawn for one.
"""

import os
import threading

__all__ = ["random_hex"]

_POOL_BYTES = 4096


class _Pool:
    """Bytes that were read and not given out; each is given out once."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._bytes, self._next = b"", 0

    def take(self, count: int) -> bytes:
        """So many bytes."""
        with self._lock:
            if self._next + count > len(self._bytes):
                self._bytes, self._next = os.urandom(max(count, _POOL_BYTES)), 0
            taken = self._bytes[self._next : self._next + count]
            self._next += count
            return taken

    def renew_after_fork(self) -> None:
        """Forget what the parent gives out too."""
        self._begin()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.renew_after_fork)


def random_hex(count: int) -> str:
    """So many random bytes as hex digits, as `secrets.token_hex` gives them."""
    return _pool.take(count).hex()
