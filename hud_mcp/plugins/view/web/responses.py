"""The replies of all pages: JSON, HTML, assets, and recorded pictures."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hud_mcp.plugins.view.web.pages import ASSETS, read_asset
from hud_mcp.record.trajectory import ScreenshotRecord
from hud_mcp.store import Store

__all__ = [
    "Json",
    "asset_route",
    "encode",
    "finite",
    "html_answer",
    "is_hash",
    "iso",
    "json_answer",
    "not_found",
    "picture_answer",
    "seconds",
]


_MIME = {"png": "image/png", "jpg": "image/jpeg"}
_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


def json_answer(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(encode(value), status, media_type="application/json")


def html_answer(page: str) -> Response:
    """Return a page."""
    return Response(page, media_type="text/html")


def not_found() -> Response:
    """Return one reply for everything that is missing."""
    return PlainTextResponse("Not found.", 404)


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return not_found()
    tag = {"etag": f'"{hashlib.sha256(read_asset(name).encode()).hexdigest()[:16]}"'}
    if request.headers.get("if-none-match") == tag["etag"]:
        return Response(status_code=304, headers={**tag, "cache-control": "no-cache"})
    headers = {**tag, "cache-control": "no-cache", "content-type": ASSETS[name]}
    return Response(read_asset(name), headers=headers)


asset_route = Route("/{name}", _asset)


async def picture_answer(
    store: Store, known: Mapping[str, ScreenshotRecord], sha256: str
) -> Response:
    """Return a picture, if it is among the `known` ones."""
    record = known.get(sha256)
    if record is None:
        return not_found()
    data = await store.read_screenshot(record)
    if data is None:
        return PlainTextResponse("The picture is missing.", 404)
    if hashlib.sha256(data).hexdigest() != record.sha256:
        return PlainTextResponse("The picture is damaged: it is not what was recorded.", 410)
    return Response(data, headers=_FOR_EVER, media_type=_MIME[record.extension])


Json = dict[str, Any]
_HASH = re.compile(r"[0-9a-f]{64}")


def encode(value: Any) -> bytes:
    """Return a value as JSON, also with half a surrogate pair or a huge integer."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half of a surrogate pair, or an integer beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def is_hash(text: str) -> bool:
    """Whether a text is a SHA-256 as the record writes it."""
    return _HASH.fullmatch(text) is not None


def finite(value: float | None) -> float | None:
    """Return a number that JSON can have; None for any other."""
    return value if value is not None and math.isfinite(value) else None


def seconds(start: datetime, end: datetime) -> float:
    """Return the seconds between two times, to a millisecond."""
    return round((end - start).total_seconds(), 3)


def iso(at: datetime) -> str:
    """Return a time in UTC, to a second."""
    return at.astimezone(UTC).isoformat(timespec="seconds")
