"""The key of a run: random, good for the model alone, and dead when the run is over."""

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, unquote_plus

__all__ = ["PREFIX", "RunKeys", "new_key", "without_key"]

PREFIX = "hmk-"

_HEADERS = ("x-api-key", "x-goog-api-key", "authorization")
_IN_QUERY = "key"

RunT = TypeVar("RunT")


def new_key() -> str:
    """Make a key that nobody can guess."""
    return f"{PREFIX}{secrets.token_hex(32)}"


def without_key(query: str) -> str:
    """Return a query without its keys; the rest stays as it was written."""
    kept = [
        part
        for part in query.split("&")
        if unquote_plus(part.partition("=")[0]) != _IN_QUERY and PREFIX not in unquote_plus(part)
    ]
    return "&".join(kept)


class RunKeys(Generic[RunT]):
    """The keys of a job's runs, those of runs that are over too.

    Keys are looked up by their digest, so the time of a look says nothing about them.
    """

    def __init__(self) -> None:
        self._runs: dict[bytes, RunT | None] = {}

    def add(self, key: str, run: RunT) -> None:
        """Open a run's turns by its key."""
        self._runs[_digest(key)] = run

    def end(self, key: str) -> None:
        """Open nothing by a key any more."""
        self._runs[_digest(key)] = None

    def find(self, headers: Mapping[str, str], query: str) -> tuple[RunT | None, bool]:
        """Return the run whose key a request has in any of its places, and whether one is over."""
        was_one = False
        for given in _given(headers, query):
            digest = _digest(given)
            was_one = was_one or digest in self._runs
            if (run := self._runs.get(digest)) is not None:
                return run, False
        return None, was_one


def _given(headers: Mapping[str, str], query: str) -> Iterator[str]:
    """Return all that may be a key: a program may send two, of which one is its own."""
    for name in _HEADERS:
        for value in headers.get(name, "").split(","):
            words = value.split()
            if words:
                yield words[-1]
    yield from (value for name, value in parse_qsl(query) if name == _IN_QUERY)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
