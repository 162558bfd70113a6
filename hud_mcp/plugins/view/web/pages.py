"""The pages' sources, HTML, styles and JavaScript modules, joined for a single file; and replies.

A server sends the files as they are; the single file holds the same modules one after the other.
For that, each module's names are its own, and imports and exports stand at the start of a line.
"""

import base64
import hashlib
import json
import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.values.outcome import outcome_classes

ASSETS = {
    "across.css": "text/css; charset=utf-8",
    "job.css": "text/css; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "trajectory.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        (
            f"{name}.js"
            for name in (
                "across", "align", "app", "compare", "contexts", "conversation", "desk", "dom",
                "download", "embedded", "fetched", "film", "grade", "groups", "inline", "jobs",
                "lines", "live", "marks", "notebook", "outline", "overview", "paged", "panel",
                "pixels", "place", "player", "plot", "run", "spending", "stage", "table", "tabs",
                "text", "tools", "trajectory", "turns", "user", "words", "zoom",
            )
        ),
        "text/javascript; charset=utf-8",
    ),
}  # fmt: skip
"""The files that a server sends beside its pages, by media type; it reads no others."""

_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
_HASH = re.compile(r"[0-9a-f]{64}")
_IMPORT = re.compile(r"^import [^;]*? from '\./([a-z]+\.js)';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |async function |class )", re.MULTILINE)


@cache
def read_asset(name: str) -> str:
    """Return one of the pages' source files."""
    return files("hud_mcp.plugins.view.web").joinpath("assets", name).read_text(encoding="utf-8")


def viewer_page() -> str:
    """Return the page of `hud-mcp view`."""
    return Template(read_asset("viewer.html")).substitute(
        jobs=read_asset("jobs.html") + read_asset("across.html"),
        pages=_pages(),
        outcomes=_outcomes(),
    )


def live_page(*, takes_replies: bool = False) -> str:
    """Return the page of a running session; it finds its session by its own address."""
    replies = "yes" if takes_replies else "no"
    return Template(read_asset("live.html")).substitute(
        player=read_asset("player.html"), outcomes=_outcomes(), replies=replies
    )


def desk_page() -> str:
    """Return the page on which a person works on a task."""
    return read_asset("desk.html")


def report_page(data: Mapping[str, Any], pictures: Iterable[str]) -> str:
    """Return the viewer's page of one job as one file."""
    return _single_file("report", "inline.js", ("style", "job", "trajectory"), data, pictures)


def notebook_page(data: Mapping[str, Any], pictures: Iterable[str]) -> str:
    """Return the player of one trajectory as one file, for a frame."""
    return _single_file("notebook", "notebook.js", ("style", "trajectory"), data, pictures)


def _single_file(
    page: str, entry: str, styles: Iterable[str], data: Mapping[str, Any], pictures: Iterable[str]
) -> str:
    style = "\n".join(read_asset(f"{name}.css") for name in styles)
    script = joined(entry)
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    template = Template(read_asset(f"{page}.html"))
    return template.substitute(
        policy=policy,
        style=style,
        script=script,
        pages=_pages() if page == "report" else "",
        player=read_asset("player.html"),
        data=_inert(data),
        outcomes=_outcomes(),
        pictures="\n".join(pictures),
    )


def modules_of(entry: str) -> list[str]:
    """Return the modules that one needs, each after its own imports, itself last."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for imported in _IMPORT.findall(read_asset(name)):
            visit(imported)
        order.append(name)

    visit(entry)
    return order


@cache
def joined(entry: str) -> str:
    """Return a module and all that it imports as one script, which runs where it stands."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", read_asset(name))) for name in modules_of(entry)]
    return "'use strict';\n(() => {\n" + "\n".join(parts) + "})();\n"


def _pages() -> str:
    return Template(read_asset("pages.html")).substitute(player=read_asset("player.html"))


def _outcomes() -> str:
    return _inert(
        [
            {"name": each.value, "words": each.words, "letter": each.letter, "tone": each.tone}
            for each in outcome_classes()
        ]
    )


def _inert(data: Any) -> str:
    """Return JSON in ASCII, without a tag, a comment or an entity for an HTML parser."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _csp_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


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
    return Response(data, headers=_FOR_EVER, media_type=record.mime_type)


Json = dict[str, Any]
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


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


def keep(cache: OrderedDict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    """Keep a value as the newest one, and drop the oldest beyond `most`."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
