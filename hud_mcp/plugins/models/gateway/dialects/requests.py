"""A request's messages in one form: their digests, their size, and the record's words for them."""

import hashlib
import json
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hud_mcp.base.text import clip
from hud_mcp.plugins.models.gateway.dialects import Asked, Json, Picture, Said
from hud_mcp.plugins.models.gateway.dialects.body import (
    canonical,
    clean,
    dict_of,
    objects_in,
    text_of,
)

__all__ = [
    "Media", "Part", "Spoken", "Stable", "call_of", "measured", "media_at", "read_said",
    "results_of", "role_of", "say", "without",
]  # fmt: skip

_PAGES, _PAGE_BYTES = 100, 2_000
"""The most pages that a document counts for, and the fewest bytes of one."""
_URL_CHARS = 2_000
_MEDIA = re.compile(
    rb'"(?:source|image_url|input_audio|file|input_image|input_file|computer_screenshot|'
    rb'inline_?[dD]ata|file_?[dD]ata)"'
)
"""A name or a type that every item with a picture or a document has."""


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or a document in a message: its bytes in base64, or its address."""

    mime: str
    data: str = ""
    url: str = ""

    @property
    def pages(self) -> int | None:
        """The most pages of a document; None for a picture, and 0 for what counts as text."""
        if self.mime.startswith("image/"):
            return None
        if not self.data:
            return _PAGES
        is_pdf = self.mime == "application/pdf"
        return min(_PAGES, 1 + len(self.data) // _PAGE_BYTES) if is_pdf else 0

    @property
    def bytes_aside(self) -> int:
        """The bytes of its data, if these are no text to a model."""
        return 0 if self.pages == 0 else len(self.data)


Part = Json | Media

Spoken = Callable[[Json], tuple[str, list[Part]]]
"""Returns the role of an item, and its parts."""

Stable = Callable[[Json], Any]
"""Returns what stays of an item when it is sent again, or None if all of it may go."""


def media_at(url: Any, mime: str = "") -> Media:
    """Return what a `data:` URL has, or what another one names."""
    head, comma, data = text_of(url).partition(",")
    if head.startswith("data:") and comma:
        return Media(head[5:].partition(";")[0] or mime, data)
    return Media(mime, url=text_of(url))


def say(text: Any, name: str = "text") -> list[Part]:
    """Return one part of text; none for the empty one."""
    return [{name: text}] if text_of(text) else []


def call_of(name: Any, arguments: Any, call_id: Any) -> Part:
    """Return the part of a tool call; arguments in a text are read."""
    read: Any = objects_in(arguments) if isinstance(arguments, str) else arguments
    return {
        "call": {
            "name": text_of(name),
            "arguments": clean(read if isinstance(read, dict) else arguments),
            "id": text_of(call_id) or None,
        }
    }


def results_of(parts: list[Part], call_id: Any) -> list[Part]:
    """Return the part of a tool's result, with its text in one, and its pictures."""
    texts = [text_of(each.get("text")) for each in parts if not isinstance(each, Media)]
    media = [each for each in parts if isinstance(each, Media)]
    return [{"result": "\n".join(texts), "id": text_of(call_id) or None}, *media]


def role_of(role: Any, parts: list[Part]) -> str:
    """Return a message's role; results alone are a tool's, in whose name they are sent."""
    results = [each for each in parts if isinstance(each, Media) or "result" in each]
    is_tool = len(results) == len(parts) and not all(isinstance(each, Media) for each in parts)
    return "tool" if is_tool else text_of(role) or "user"


def without(item: Json, *names: str) -> Json:
    """Return an object without some of its names."""
    return {name: value for name, value in item.items() if name not in names}


def measured(asked: Asked, spoken: Spoken, stable: Stable, body_bytes: int) -> Asked:
    """Return a request with the digests of its items, and its sizes."""
    digests, media = list[bytes](), list[Media]()
    for item in asked.items:
        text = canonical(item if (kept := stable(item)) is None else kept)
        digests.append(b"" if kept is None else hashlib.blake2b(text, digest_size=16).digest())
        if _MEDIA.search(text):
            media += [part for part in spoken(item)[1] if isinstance(part, Media)]
    pages = [each.pages for each in media]
    return replace(
        asked,
        digests=tuple(digests),
        text_bytes=body_bytes - sum(each.bytes_aside for each in media),
        pictures=pages.count(None),
        pages=sum(each for each in pages if each is not None),
    )


def read_said(asked: Asked, spoken: Spoken, start: int) -> Said:
    """Read the messages from an item on; replies and results in a row are one message."""
    messages, pictures, size = list[Json](), dict[str, Picture](), 0
    for item in asked.items[start:]:
        role, parts = spoken(item)
        aside = sum(part.bytes_aside for part in parts if isinstance(part, Media))
        size += len(json.dumps(item)) - aside
        read = [_read(part, pictures) for part in parts]
        if messages and role == messages[-1]["role"] and role in ("assistant", "tool"):
            messages[-1]["parts"] += read
        elif read:
            messages.append({"role": role, "parts": read})
    return Said(tuple(messages), pictures, size)


def _read(part: Part, pictures: dict[str, Picture]) -> Json:
    if not isinstance(part, Media):
        read = clean(part)
        return dict_of(read) or {"text": read}
    if not part.data:
        return {"image" if part.mime.startswith("image/") else "other": clip(part.url, _URL_CHARS)}
    try:
        data = b64decode(part.data)
    except ValueError:
        return {"other": f"{part.mime} that is not base64"}
    if not part.mime.startswith("image/"):
        return {"other": f"{part.mime} of {len(data):,} bytes"}
    name = hashlib.sha256(data).hexdigest()
    pictures[name] = Picture(part.mime, data)
    return {"image": name, "mime": part.mime, "bytes": len(data)}
