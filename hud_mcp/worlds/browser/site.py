"""The task's own site: a folder of files, and an author's function behind `/api/`.

This module owns the answers to requests for the site. `proxy.py` owns the socket, and decides
which requests are for the site.
"""

import json
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl

import anyio
import orjson

from hud_mcp.worlds.browser import libraries

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["MAX_BODY_BYTES", "Backend", "Site", "SiteRequest", "SiteResponse"]

MAX_BODY_BYTES = 1024 * 1024
"""The longest request body that a backend gets."""

BACKEND_BOUND_S = 30.0
"""The longest time of a backend for one request."""

MAX_WATCHED_BYTES = 4 * 1024 * 1024
"""The largest state, as JSON, that is watched for changes by a GET. 1 MB costs 2 ms."""

MAX_READ_BYTES = 1024 * 1024
"""The largest file that is read at once. Others go in pieces, each read on a thread."""

MAX_NOTED = 100

_SAFE = ("GET", "HEAD")
"""The methods that must not change a state, by HTTP's own rule (RFC 9110, 9.2.1)."""

_MIME_TYPES = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".html": "text/html",
    ".htm": "text/html",
    ".ico": "image/x-icon",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".mp4": "video/mp4",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xml": "text/xml",
}
"""The types that pages need to load right, before those of the machine's own table."""

FRESH_S = 60
"""The time for which a page that serves several sessions may keep files of its site."""

_PARTS = ("font", "image", "script", "style")
_NO_STORE = {"cache-control": "no-store"}
_FRESH = {"cache-control": f"max-age={FRESH_S}"}


@dataclass(frozen=True, kw_only=True)
class SiteRequest:
    """A request that a page sent to the backend.

    Attributes:
        method: Upper case, such as `POST`.
        path: Decoded, with its leading `/api/`.
        query: The query's first value for each name.
        headers: Lower-case names.
        body: At most `MAX_BODY_BYTES`.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None if it is empty or is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @cached_property
    def form(self) -> dict[str, str]:
        """The fields of an HTML form that was posted the default way; the last of a name wins."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class SiteResponse:
    """The reply of a backend, if JSON with status 200 is not enough.

    Attributes:
        json: The body as JSON, unless `text` is given.
        text: The body as text, `text/html` unless a header says otherwise.
        status: The HTTP status.
        headers: Added to the response's own.
    """

    json: Any = None
    text: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def redirect(cls, path: str) -> "SiteResponse":
        """Send the page to another path, with GET."""
        return cls(text="", status=303, headers={"location": path})


Backend = Callable[
    [SiteRequest, dict[str, Any]], Awaitable[SiteResponse | dict[str, Any] | list[Any] | None]
]
"""The author's function behind `/api/`; a dict or list is JSON, None is a 404."""


class Site:
    """One session's site: files that never change, and a backend with its own state.

    Args:
        root: The folder to serve, or None for a site that is all backend.
        backend: Called for paths under `/api/`, one request at a time.
        state: This session's own; the backend changes it in place.
        log: Takes a line when the backend fails, and when a GET changes the state.
        caches: Whether a page may keep scripts, styles, pictures and fonts for `FRESH_S`.

    Attributes:
        changed_by_get: The GET and HEAD requests that changed the state, such as `GET /api/add`.
    """

    def __init__(
        self,
        root: Path | None,
        backend: Backend | None,
        state: dict[str, Any],
        log: Callable[[str], None],
        *,
        caches: bool = False,
    ) -> None:
        self._caches = caches
        self.state = state
        self._root = root.resolve() if root else None
        self._backend = backend
        self._log = log
        self._turn = anyio.Lock()
        self.changed_by_get: list[str] = []

    async def respond(
        self, request: "Request", path: str, changed: list[str] | None = None
    ) -> "Response":
        """Answer one request for a decoded path that starts with a slash.

        Args:
            request: The request.
            path: The decoded path.
            changed: The asker's own list. It takes a request that should only read but changed
                the state.
        """
        if self._backend and (path == "/api" or path.startswith("/api/")):
            return await self._ask_backend(request, path, changed)
        if request.method not in ("GET", "HEAD"):
            return _plain(405, f"{request.method} is not possible here: {path} is a file.")
        asked = request.headers
        is_whole = request.method == "GET" and "range" not in asked
        is_part = self._caches and asked.get("sec-fetch-dest") in _PARTS
        headers = _FRESH if is_part else _NO_STORE
        return await anyio.to_thread.run_sync(self._file, path, is_whole, headers)

    @property
    def leaves_cache(self) -> bool:
        """Whether the caches of its pages hold only files, which are the same in each session."""
        return self._caches and self._backend is None

    def _file(self, path: str, is_whole: bool, headers: Mapping[str, str]) -> "Response":  # noqa: FBT001  # called on a thread
        found = self._locate(path)
        if found is None:
            return _plain(404, f"There is no {path} on this site.")
        if found.is_dir():
            if not path.endswith("/"):
                return libraries.RedirectResponse(path + "/", 308, headers=_NO_STORE)
            found = self._locate(path + "index.html")
        if found is None or not found.is_file():
            return _plain(404, f"There is no {path} on this site.")
        mime = _MIME_TYPES.get(found.suffix.lower()) or guess_type(found.name)[0]
        known = found.stat()
        file = libraries.FileResponse(found, media_type=mime, headers=headers, stat_result=known)
        if not is_whole or known.st_size > MAX_READ_BYTES:
            return file
        return libraries.Response(found.read_bytes(), headers=dict(file.headers))

    def _locate(self, path: str) -> Path | None:
        """Return the file or folder under the root, with its links followed; None outside of it."""
        if self._root is None or "\0" in path or "\\" in path:
            return None
        try:
            found = (self._root / path.lstrip("/")).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # missing, a loop of links, unencodable
            return None
        return found if found.is_relative_to(self._root) else None

    async def _ask_backend(
        self, request: "Request", path: str, changed: list[str] | None
    ) -> "Response":
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return _plain(413, f"The body is over the limit of {MAX_BODY_BYTES} bytes.")
        query = parse_qs(request.url.query, keep_blank_values=True)
        asked = SiteRequest(
            method=request.method,
            path=path,
            query={name: values[0] for name, values in query.items()},
            headers=dict(request.headers),
            body=bytes(body),
        )
        return await self._call(asked, changed)

    async def _call(self, asked: SiteRequest, changed: list[str] | None) -> "Response":
        backend = self._backend
        if backend is None:
            return _plain(404, "This site has no backend.")
        try:
            async with self._turn:
                before = self._digest() if asked.method in _SAFE else None
                try:
                    with anyio.fail_after(BACKEND_BOUND_S):
                        answer = await backend(asked, self.state)
                finally:
                    if before is not None and self._digest() != before:
                        self._note_change(asked, changed)
                return _as_response(answer, asked.path)
        except TimeoutError:
            self._log(f"backend: {asked.method} {asked.path} took over {BACKEND_BOUND_S:g} s")
            return _plain(504, "The site took too long to answer.")
        except Exception:  # noqa: BLE001  # the author's code; the page gets a 500 as on any site
            self._log(f"backend: {asked.method} {asked.path} raised\n{traceback.format_exc()}")
            return _plain(500, "The site failed to answer.")

    def _digest(self) -> bytes | None:
        """Return the state as JSON; None if JSON cannot hold it, or it is very large."""
        try:
            told = orjson.dumps(self.state, option=orjson.OPT_NON_STR_KEYS)
        except (TypeError, ValueError):
            return None
        return told if len(told) <= MAX_WATCHED_BYTES else None

    def _note_change(self, asked: SiteRequest, changed: list[str] | None) -> None:
        """Report a reading request that changed the state: to the asker always, to the log once."""
        named = f"{asked.method} {asked.path}"
        if changed is not None and len(changed) < MAX_NOTED:
            changed.append(named)
        if named in self.changed_by_get or len(self.changed_by_get) >= MAX_NOTED:
            return
        self.changed_by_get.append(named)
        self._log(
            f"backend: {named} changed the site's state. Only POST, PUT, PATCH and DELETE may: "
            "pages, graders and resumed sessions repeat a GET."
        )


def _as_response(answer: Any, path: str) -> "Response":
    if answer is None:
        return libraries.JSONResponse({"error": f"there is no {path}"}, 404, headers=_NO_STORE)
    if not isinstance(answer, SiteResponse):
        return libraries.JSONResponse(answer, headers=_NO_STORE)
    headers = {**_NO_STORE, **answer.headers}
    if answer.text is None:
        return libraries.JSONResponse(answer.json, answer.status, headers=headers)
    named = any(name.lower() == "content-type" for name in answer.headers)
    return libraries.Response(
        answer.text, answer.status, headers=headers, media_type=None if named else "text/html"
    )


def _plain(status: int, text: str) -> "Response":
    return libraries.PlainTextResponse(text, status, headers=_NO_STORE)
