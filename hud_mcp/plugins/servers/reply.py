"""A server's result as a `ToolReply`: masked, bounded, and otherwise as the server wrote it."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import quote

import anyio.to_thread
import orjson

from hud_mcp.base.text import clip
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.peer import Json, as_list, as_object
from hud_mcp.values.observation import Look, Screenshot, fit_screenshot
from hud_mcp.values.reply import ToolReply

__all__ = ["MASKED", "NOTICE", "PICTURES", "Masker", "kept_reply", "read_reply"]

NOTICE = "hud-mcp/notice"
"""In the metadata of a block that is not the server's."""
MASKED = "[masked]"
LEAST_SECRET_CHARS = 6
"""The shortest secret: replies are full of shorter texts."""

_BLOCKS = 100
_BLOB_BYTES, _BLOBS_BYTES = 700_000, 4 * 1024 * 1024
"""The bytes of one blob in base64, and of all: hosts cut longer messages."""
_STRUCTURED_BYTES = 256 * 1024
_META_BYTES = 64 * 1024
_BESIDE_BYTES = 16 * 1024
_KEPT_CHARS = 64 * 1024
_ODD_CHARS = 2000
_TOO_LARGE = "[too large for the record]"
PICTURES = ("image/png", "image/jpeg")

_REQUIRED: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""The texts that a block of each type has; clients refuse a whole result for one that lacks it."""


class Masker:
    """The replacement of secrets in everything that a server says.

    A secret is found as it is, in JSON, in a URL, in hexadecimal digits, and within base64.

    Args:
        secrets: The secrets' values, by the names that errors may show.

    Raises:
        InvalidEnvironment: A value is too short to be told from other text.
    """

    def __init__(self, secrets: Iterable[tuple[str, str]] = ()) -> None:
        forms: set[str] = set()
        for name, value in secrets:
            if len(value) < LEAST_SECRET_CHARS:
                raise InvalidEnvironment(
                    f"The secret {name} has {len(value)} characters; a secret of fewer than "
                    f"{LEAST_SECRET_CHARS} cannot be masked. Pass it with env=, or take a longer."
                )
            forms |= _forms(value)
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return text if self._pattern is None else self._pattern.sub(MASKED, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in names too."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = cast("Json", value).items()
            return {self.text(name): self.value(each) for name, each in items}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in cast("Sequence[Any]", value)]
        return value


def _forms(secret: str) -> set[str]:
    data = secret.encode()
    plain = {secret, quote(secret, safe=""), quote(secret), data.hex(), data.hex().upper()}
    in_json = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    coded: set[str] = set()
    for before in range(3):  # the bytes before it move its digits
        digits = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        whole = (before + len(data)) // 3 * 4  # the digits after these depend on what follows
        inner = digits[(before * 8 + 5) // 6 : whole]
        if len(inner) >= LEAST_SECRET_CHARS:
            coded |= {inner, inner.replace("+", "-").replace("/", "_")}
    return plain | in_json | coded


async def read_reply(result: Json, look: Look, masker: Masker | None = None) -> ToolReply:
    """Return the result of `tools/call` as a reply.

    Everything is as the server wrote it, but secrets, and what exceeds a bound: a text block says
    so in its place. A block that no client would take becomes a text.
    """
    if masker is not None:
        result = masker.value(result)
    blocks = as_list(result.get("content"))
    content = [_block(each) for each in blocks[:_BLOCKS]]
    if len(blocks) > _BLOCKS:
        content.append(_text(f"[{len(blocks) - _BLOCKS} more blocks are left out.]"))
    content = _bounded_blobs([await _fitted(each, look) for each in content])
    structured, problem = _structured(result.get("structuredContent"))
    if problem is not None:
        return ToolReply(content=(_text(problem),), is_error=True)
    if structured is None and not content and result.get("structuredContent") is not None:
        content.append(_text(_dumped(result["structuredContent"])))
    meta = {  # ours are in the record
        k: v for k, v in as_object(result.get("_meta")).items() if not k.startswith("hud-mcp/")
    }
    return ToolReply(
        content=tuple(_bounded_texts(content, look.max_text_chars)),
        structured=structured,
        is_error=result.get("isError") is True,
        meta=meta if len(_dumped(meta)) <= _META_BYTES else {},
    )


def kept_reply(reply: ToolReply) -> Json:
    """Return what the record keeps of a reply: texts within a bound, and the digests of blobs."""
    blocks = [_without_blob(block) for block in reply.content]
    kept: Json = {"content": _bounded_texts(blocks, _KEPT_CHARS)}
    if reply.structured is not None:
        fits = len(_dumped(reply.structured)) <= _KEPT_CHARS
        kept["structured"] = reply.structured if fits else _TOO_LARGE
    if reply.meta:
        kept["meta"] = dict(reply.meta)
    if reply.asked:
        kept["asked"] = [dict(each) for each in reply.asked]
    return {**kept, "is_error": reply.is_error}


def _block(given: Any) -> Json:
    block = as_object(given)
    kind = block.get("type")
    if kind == "resource":
        found = as_object(block.get("resource"))
        texts = [found.get("uri"), found.get("text", found.get("blob"))]
        is_right = all(isinstance(each, str) for each in texts)
    else:
        required = _REQUIRED.get(kind) if isinstance(kind, str) else None
        is_right = required is not None and all(isinstance(block.get(n), str) for n in required)
    if not is_right:
        return _text(clip(_dumped(given), _ODD_CHARS))
    beside = len(_dumped(given)) - len(_payload(block))
    # What stands beside a text or a blob has no bound of its own.
    return (
        block
        if beside <= _BESIDE_BYTES
        else _text(f"[{kind} with {beside} bytes of metadata is left out.]")
    )


async def _fitted(block: Json, look: Look) -> Json:
    """Return a block with a picture that hosts take; it is encoded anew only if it is too large."""
    if block["type"] != "image" or block["mimeType"] not in PICTURES:
        return block
    data: str = block["data"]
    if len(data) * 3 // 4 <= look.max_image_bytes:
        return block
    try:
        shot = await anyio.to_thread.run_sync(_smaller, data, look)
    except (ValueError, OSError, SyntaxError, binascii.Error):
        return block  # no picture; its size decides
    coded = base64.b64encode(shot.data).decode()
    return {**block, "data": coded, "mimeType": shot.mime_type}


def _smaller(data: str, look: Look) -> Screenshot:
    return fit_screenshot(Screenshot.from_bytes(base64.b64decode(data)), look)


def _payload(block: Json) -> str:
    return (
        block["text"]
        if block["type"] == "text"
        else _blob(block)[0] or block.get("resource", {}).get("text", "")
    )


def _blob(block: Json) -> tuple[str, Json]:
    """Return a block's data in base64, and the object that holds it; empty without data."""
    if block["type"] in ("image", "audio"):
        return block["data"], block
    if block["type"] == "resource" and "text" not in block["resource"]:
        return block["resource"]["blob"], block["resource"]
    return "", block


def _bounded_blobs(blocks: list[Json]) -> list[Json]:
    left = _BLOBS_BYTES
    found: list[Json] = []
    for block in blocks:
        data, holder = _blob(block)
        if len(data) > min(_BLOB_BYTES, left):
            kind, size = holder.get("mimeType", "data"), len(data) * 3 // 4
            found.append(_text(f"[{kind} of {size} bytes is left out: it is too large.]"))
        else:
            left -= len(data)
            found.append(block)
    return found


def _bounded_texts(blocks: list[Json], most_chars: int) -> list[Json]:
    """Cut the texts of all blocks to a length together; the first ones have the room."""
    left = most_chars
    found: list[Json] = []
    for block in blocks:
        if block["type"] == "text":
            text = block["text"] if len(block["text"]) <= left else _cut(block["text"], left)
            found.append(block if text is block["text"] else {**block, "text": text})
        elif block["type"] == "resource" and "text" in block["resource"]:
            inner: Json = block["resource"]
            text = inner["text"] if len(inner["text"]) <= left else _cut(inner["text"], left)
            is_whole = text is inner["text"]
            found.append(block if is_whole else {**block, "resource": {**inner, "text": text}})
        else:
            found.append(block)
            continue
        left = max(0, left - len(text))
    return found


def _cut(text: str, most_chars: int) -> str:
    cut = text.rfind("\n", most_chars // 2, most_chars)
    kept = text[: cut if cut > 0 else most_chars]
    left = len(text) - len(kept)
    return f"{kept}\n… {left} more characters of {len(text)} are left out. Ask for a part."


def _structured(given: Any) -> tuple[Json | None, str | None]:
    """Return structured content, or the reason why the whole reply is an error."""
    if not isinstance(given, dict):
        return None, None
    if (size := len(_dumped(given))) > _STRUCTURED_BYTES:
        # A part of it would contradict the output schema.
        return None, (
            f"The tool's structured content has {size} characters; the limit is "
            f"{_STRUCTURED_BYTES}. Ask it for less."
        )
    return cast("Json", given), None


def _without_blob(block: Json) -> Json:
    data, holder = _blob(block)
    if not data:
        return block
    digest = hashlib.sha256(data.encode()).hexdigest()
    kept: Json = {"type": block["type"], "bytes": len(data) * 3 // 4, "sha256": digest}
    return kept | {name: holder[name] for name in ("mimeType", "uri") if name in holder}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _dumped(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):
        return json.dumps(value, default=str)
