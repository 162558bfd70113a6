"""A server's result: unchanged within its bounds, without secrets, and fit for every client."""

import base64
import io
import json
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image
from tables import each_of

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.reply import MASKED, Masker, kept_reply, read_reply
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

SECRET = "s3cr+t/Käse?"  # of a test


def picture(size: int, kind: str = "png") -> str:
    """A picture in base64."""
    out = io.BytesIO()
    Image.effect_noise((size, size), 100).save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


async def read(result: dict[str, Any], **look: Any) -> Any:
    """Read a result."""
    return await read_reply(result, Look(**look))


async def test_every_kind_of_block_passes_unchanged() -> None:
    """Unknown fields too, and structured content with nulls."""
    content = [
        {"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "foo": 1},
        {"type": "image", "data": picture(8), "mimeType": "image/png"},
        {"type": "image", "data": picture(9), "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
    ]
    result = {
        "content": content,
        "structuredContent": {"n": None},
        "isError": True,
        "_meta": {"x": 1},
    }
    reply = await read(result)
    assert list(reply.content) == content
    assert (reply.structured, reply.is_error, reply.meta) == ({"n": None}, True, {"x": 1})
    assert reply.text == "a\na: file:///a\nfile:///b:\nb"
    assert reply.image is not None
    assert reply.image.width_px == 8


ODD: dict[str, Any] = {
    "no list": {"content": "text"},
    "no object": {"content": ["text", 3, None]},
    "no type": {"content": [{"text": "x"}]},
    "a strange type": {"content": [{"type": "video", "data": "x"}]},
    "a type that is no text": {"content": [{"type": ["text"], "text": "x"}]},
    "a text that is none": {"content": [{"type": "text", "text": 3}]},
    "an empty resource": {"content": [{"type": "resource", "resource": {}}]},
    "a resource that is none": {"content": [{"type": "resource", "resource": "x"}]},
    "a picture without a type": {"content": [{"type": "image", "data": "x"}]},
    "a picture that is none": {
        "content": [{"type": "image", "data": "x" * 600_000, "mimeType": "image/png"}]
    },
    "structured content that is a list": {"structuredContent": [1]},
    "odd fields": {"content": [], "isError": "yes", "_meta": [1]},
}


@each_of("odd", ODD)
async def test_an_odd_result_becomes_blocks_that_clients_take(odd: str) -> None:
    """Each block has its type's required texts."""
    reply = await read(ODD[odd], max_image_bytes=400_000)
    for block in reply.content:
        assert block["type"] in ("text", "image")
        assert isinstance(block.get("text", block.get("data")), str)
    assert not reply.is_error
    assert reply.meta == {}


async def test_texts_share_one_bound() -> None:
    """The first blocks have the room, and the text says how much is left out."""
    blocks = [{"type": "text", "text": "a" * 900}, {"type": "text", "text": "b" * 5000}]
    reply = await read({"content": blocks}, max_text_chars=1000)
    assert reply.content[0] == blocks[0]
    assert reply.content[1]["text"].startswith("b" * 100)
    assert "4900 more characters" in reply.content[1]["text"]


async def test_blobs_and_structured_content_have_bounds() -> None:
    """A blob that is too large becomes a text, and structured content an error, not a part."""
    blob = {"type": "audio", "data": "A" * 800_000, "mimeType": "audio/wav"}
    small = {**blob, "data": "A" * 600_000}
    reply = await read({"content": [blob, *[small] * 8]})
    assert "audio/wav of 600000 bytes" in reply.content[0]["text"]
    assert sum(block["type"] == "audio" for block in reply.content) == 6
    large = await read({"content": [], "structuredContent": {"x": "y" * 300_000}})
    assert large.is_error
    assert large.structured is None
    many = await read({"content": [{"type": "text", "text": "x"}] * 300})
    assert "200 more blocks" in many.content[-1]["text"]


async def test_a_picture_above_the_limit_is_encoded_anew() -> None:
    """A smaller one passes byte for byte."""
    data = picture(700)
    block = {"type": "image", "data": data, "mimeType": "image/png"}
    reply = await read({"content": [block]}, max_image_bytes=100_000)
    (seen,) = reply.content
    assert len(seen["data"]) < 140_000
    assert reply.image is not None


FORMS = {
    "itself": SECRET,
    "in JSON": json.dumps({"a": SECRET}),
    "in a URL": f"https://x/?q={quote(SECRET, safe='')}",
    "in hexadecimal": SECRET.encode().hex(),
    "in base64 0": base64.b64encode(SECRET.encode()).decode(),
    "in base64 1": base64.b64encode(f"u:{SECRET}:and more".encode()).decode(),
    "in base64 2": base64.urlsafe_b64encode(f"Basic{SECRET}".encode()).decode(),
}


@each_of("form", FORMS)
async def test_a_secret_is_masked_wherever_a_server_prints_it(form: str) -> None:
    """In texts, structured content, names and metadata."""
    text = FORMS[form]
    result = {
        "content": [
            {"type": "text", "text": f"env: {text}."},
            {"type": "resource", "resource": {"uri": f"x:{text}", "text": text}},
        ],
        "structuredContent": {"a": [{text: text}]},
        "_meta": {"t": text},
    }
    reply = await read_reply(result, Look(), Masker([("TOKEN", SECRET)]))
    said = json.dumps(asdict(reply), ensure_ascii=False)
    assert text not in said
    assert SECRET not in said
    assert said.count(MASKED) >= 6


def test_a_secret_that_is_too_short_to_be_masked_is_refused() -> None:
    """The text names the variable, and not its value."""
    with pytest.raises(InvalidEnvironment, match="TOKEN") as caught:
        Masker([("TOKEN", "q7")])
    assert "q7" not in str(caught.value)


async def test_the_record_keeps_texts_and_the_digests_of_blobs() -> None:
    """Within its own bound."""
    content = [
        {"type": "image", "data": picture(8), "mimeType": "image/png"},
        {"type": "text", "text": "x" * 100_000},
    ]
    look = {"max_text_chars": 200_000}
    kept = kept_reply(await read({"content": content, "structuredContent": {"a": 1}}, **look))
    assert set(kept["content"][0]) == {"type", "bytes", "sha256", "mimeType"}
    assert len(kept["content"][1]["text"]) < 66_000
    assert kept["structured"] == {"a": 1}
