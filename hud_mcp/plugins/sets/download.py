"""One file from its published place: resumed where it broke off, and checked by its digest."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from hud_mcp.errors import SourceNotFound

_OK, _PARTIAL, _BEYOND = 200, 206, 416
_REFUSED = frozenset({401, 403})
_GONE = frozenset({404, 410})
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 4
_TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 2 * 1024**3


class NotPublished(SourceNotFound):
    """The place answers, and has no such file."""


class Unreachable(SourceNotFound):
    """The place cannot be reached, or breaks off each time. The part is kept for the next call."""


class TokenNeeded(SourceNotFound):
    """The place wants to know who asks."""


@dataclass
class Download:
    """The download of one file.

    Attributes:
        url: The address of the file.
        target: The path of the file, which is written whole or not at all.
        headers: The headers of each request, such as a token; no error shows them.
        report: A function that gets the progress, as a line for people.
        refused: The advice in the error if the place refuses.
    """

    url: str
    target: Path
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    report: Callable[[str], None] | None = None
    refused: str = "Check the token that this place needs."

    @property
    def part(self) -> Path:
        """The part of the file that has come so far."""
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def _mark(self) -> Path:
        """The file that records the version of the part."""
        return self.target.with_name(f"{self.target.name}.part.json")

    def fetch(self) -> str:
        """Fetch the file, and return its SHA-256: 64 hex digits.

        Raises:
            NotPublished: The place has no such file.
            Unreachable: There is no way to it now. The part is kept, and the next call continues
                it.
            SourceNotFound: The place refuses; the text says what to do.
        """
        self.target.parent.mkdir(parents=True, exist_ok=True)
        why = ""
        # Its own retries: a place that broke off is asked for the rest, not for all.
        with httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S) as client:
            tries = 0
            while tries < _TRIES:
                had = self._had()
                try:
                    self._ask(client, had)
                except httpx.HTTPError as exc:
                    why = f"{type(exc).__name__}: {exc}".rstrip(": ")
                    tries = 1 if self._had() > had else tries + 1  # what moves is not given up
                    continue
                return self._finish()
        raise Unreachable(f"{self.url} cannot be fetched: {why}.")

    def _had(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _ask(self, client: httpx.Client, had: int) -> None:
        """Request the missing part; raise httpx.HTTPError if it broke off, or for a next try."""
        headers = {"accept-encoding": "identity", **self.headers}
        mark = self._read_mark()
        if had and mark:
            headers |= {"range": f"bytes={had}-", "if-range": mark}
        with client.stream("GET", self.url, headers=headers) as reply:
            if reply.status_code == _BEYOND:  # all of it is there, or it has become shorter
                self.part.unlink(missing_ok=True)
                raise httpx.TransportError("the downloaded part does not fit the file")
            self._check(reply)
            goes_on = reply.status_code == _PARTIAL and _begins_at(reply, had)
            is_plain = reply.headers.get("content-encoding", "identity") == "identity"
            self._write_mark(reply.headers.get("etag", "") if is_plain else "")
            self._take(reply, had if goes_on else 0)

    def _take(self, reply: httpx.Response, had: int) -> None:
        length = reply.headers.get("content-length", "")
        total = had + int(length) if length.isdigit() else None
        with self.part.open("ab" if had else "wb") as file:
            for chunk in reply.iter_bytes():  # as it comes: what came before a break counts
                file.write(chunk)
                had += len(chunk)
                if had > _MOST_BYTES:
                    raise SourceNotFound(f"{self.url} has more than {_MOST_BYTES} bytes.")
                if self.report is not None:
                    of = f" of {total}" if total is not None else ""
                    self.report(f"{self.target.name}: {had}{of} bytes")

    def _check(self, reply: httpx.Response) -> None:
        status = reply.status_code
        if status in (_OK, _PARTIAL):
            return
        if status in _REFUSED:
            raise TokenNeeded(f"{self.url} refuses the download (status {status}). {self.refused}")
        if status in _GONE:
            raise NotPublished(f"There is no {self.url} (status {status}).")
        if status in _TRY_AGAIN:
            raise httpx.TransportError(f"status {status}")
        raise NotPublished(f"{self.url} answers with status {status}.")

    def _finish(self) -> str:
        whole = hashlib.sha256()
        with self.part.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                whole.update(chunk)
        self.part.replace(self.target)
        self._mark.unlink(missing_ok=True)
        return whole.hexdigest()

    def _read_mark(self) -> str:
        """Return the version that the part is of, if it is certain: a weak one is not."""
        try:
            mark = str(json.loads(self._mark.read_text())["etag"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return "" if mark.startswith("W/") else mark

    def _write_mark(self, etag: str) -> None:
        self._mark.write_text(json.dumps({"etag": etag}))


def _begins_at(reply: httpx.Response, had: int) -> bool:
    """Whether a part begins there; raise httpx.TransportError if it is another one."""
    if not reply.headers.get("content-range", "").startswith(f"bytes {had}-"):
        raise httpx.TransportError("the server sent another part than the requested one")
    return True
