"""What an agent is shown fits its budget, and its places still mean the same page."""

import base64
import io
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from hud_mcp.base.text import clip_text
from hud_mcp.values.observation import (
    Look,
    Observation,
    Screenshot,
    crop_screenshot,
    fit_screenshot,
    fitted_size,
    resize_screenshot,
)


def picture(width: int, height: int, *, kind: str = "PNG", noise: bool = False) -> bytes:
    """An encoded picture; noise is what no format compresses."""
    if noise:
        data = random.Random(7).randbytes(width * height * 3)
        image = Image.frombytes("RGB", (width, height), data)
    else:
        image = Image.new("RGB", (width, height), "navy")
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "mime", "extension"), [("PNG", "image/png", "png"), ("JPEG", "image/jpeg", "jpg")]
)
def test_size_and_format_are_read_from_the_bytes(kind: str, mime: str, extension: str) -> None:
    """A world hands over bytes, and need not say what they are."""
    shot = Screenshot.from_bytes(picture(30, 20, kind=kind), scale=2)
    assert (shot.width_px, shot.height_px, shot.scale) == (30, 20, 2)
    assert (shot.mime_type, shot.extension) == (mime, extension)


@pytest.mark.parametrize("data", [b"", b"not a picture", picture(2, 2, kind="GIF")])
def test_bytes_that_are_no_png_or_jpeg_are_refused(data: bytes) -> None:
    """Hosts show PNG and JPEG, so nothing else counts as a screenshot."""
    with pytest.raises(ValueError, match=r"a screenshot is an encoded PNG|not GIF"):
        Screenshot.from_bytes(data)


def test_a_picture_is_named_by_the_hash_of_its_bytes() -> None:
    """Equal bytes have one name of 64 hex digits, and looking at it changes nothing."""
    one, other = Screenshot.from_bytes(picture(4, 4)), Screenshot.from_bytes(picture(4, 4))
    assert one.sha256 == other.sha256
    assert len(one.sha256) == 64
    assert one == Screenshot.from_bytes(picture(4, 4))
    assert Screenshot.from_bytes(picture(4, 5)).sha256 != one.sha256


def test_a_jpeg_becomes_a_png_of_the_same_size() -> None:
    """The HUD SDK's form is PNG, whatever was taken; a PNG stays itself."""
    shot = Screenshot.from_bytes(picture(30, 20, kind="JPEG"), scale=1.5)
    png = shot.as_png()
    assert (png.mime_type, png.width_px, png.height_px, png.scale) == ("image/png", 30, 20, 1.5)
    assert png.as_png() is png


def test_an_observation_reads_and_writes_the_hud_form() -> None:
    """`screenshot` is base64 PNG, with or without a data URL's prefix."""
    encoded = base64.b64encode(picture(8, 6)).decode()
    for text in (encoded, f"data:image/png;base64,{encoded}"):
        seen = Observation.model_validate({"text": "hi", "screenshot": text})
        assert seen.image is not None
        assert (seen.image.width_px, seen.image.height_px) == (8, 6)
        assert seen.screenshot == encoded
    assert Observation(text="hi").screenshot is None


@pytest.mark.parametrize("text", ["%%%", base64.b64encode(b"no picture").decode()])
def test_a_screenshot_that_is_no_picture_is_a_validation_error(text: str) -> None:
    """Neither bad base64 nor other bytes get through as a picture."""
    with pytest.raises(ValidationError):
        Observation.model_validate({"screenshot": text})


def test_a_picture_within_the_budget_is_the_same_object() -> None:
    """Nothing is encoded twice without need."""
    shot = Screenshot.from_bytes(picture(100, 80))
    assert fit_screenshot(shot, Look()) is shot


@settings(max_examples=25, deadline=None)
@given(
    width=st.integers(1, 700),
    height=st.integers(1, 700),
    kind=st.sampled_from(["PNG", "JPEG"]),
    noise=st.booleans(),
    edge=st.integers(64, 800),
    patches=st.integers(4, 700),
    size=st.integers(10_000, 60_000),
    scale=st.floats(0.25, 4),
)
def test_a_fitted_picture_is_within_its_budget_and_its_corners_are_the_page_s(
    *,
    width: int,
    height: int,
    kind: str,
    noise: bool,
    edge: int,
    patches: int,
    size: int,
    scale: float,
) -> None:
    """Nothing exceeds the budget, and each corner maps back to the same corner."""
    shot = Screenshot.from_bytes(picture(width, height, kind=kind, noise=noise), scale=scale)
    look = Look(max_edge_px=edge, max_patches=patches, max_image_bytes=size)
    fitted = fit_screenshot(shot, look)

    assert max(fitted.width_px, fitted.height_px) <= edge
    assert patches_of(fitted.width_px, fitted.height_px) <= patches
    assert look.takes(fitted)
    assert len(fitted.data) <= size
    assert Screenshot.from_bytes(fitted.data, scale=fitted.scale) == fitted
    for before, after in ((width, fitted.width_px), (height, fitted.height_px)):
        # Half a pixel of the fitted picture is lost to rounding, and a whole one at least kept.
        assert abs(after * fitted.scale - before * scale) <= fitted.scale * 1.001


def test_the_far_end_of_a_long_page_is_where_it_was() -> None:
    """A tall picture's rows map back to the rows that they show, not forty pixels above."""
    shot = Screenshot.from_bytes(picture(400, 10_000))
    fitted = fit_screenshot(shot, Look())
    assert fitted.height_px == 1568
    assert fitted.height_px * fitted.scale == pytest.approx(10_000)


def test_a_png_that_is_only_too_wide_stays_a_png() -> None:
    """Small text keeps its edges where the budget allows it."""
    fitted = fit_screenshot(Screenshot.from_bytes(picture(3000, 500)), Look())
    assert (fitted.mime_type, fitted.width_px) == ("image/png", 1568)


@given(st.text(alphabet="ab \n", max_size=2000), st.integers(200, 600))
def test_clipped_text_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    """What is kept is the text's own beginning, and the count of the rest is right."""
    clipped = clip_text(text, limit)
    assert len(clipped) <= limit
    if clipped != text:
        kept, _, notice = clipped.rpartition("\n… ")
        assert text.startswith(kept)
        assert notice == f"{len(text) - len(kept)} more characters; scroll to see the rest."
    else:
        assert len(text) <= limit


def test_a_text_is_cut_at_a_line_s_end() -> None:
    """No element's line is shown by half, where lines are of usual length."""
    text = "\n".join(f"- button {i} [ref=e{i}]" for i in range(100))
    kept = clip_text(text, 1000).rpartition("\n… ")[0]
    assert kept.splitlines() == text.splitlines()[: len(kept.splitlines())]


def test_one_very_long_line_is_cut_within() -> None:
    """A long line after a short one is shown as far as there is room."""
    clipped = clip_text("title\n" + "x" * 5000, 1000)
    assert len(clipped) > 800


def patches_of(width: int, height: int) -> int:
    """The squares of 28 px that cover a picture, as Claude counts them."""
    return math.ceil(width / 28) * math.ceil(height / 28)


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_no_picture_is_larger_than_models_read_and_none_is_smaller_than_need_be(
    wide: int, high: int
) -> None:
    """Claude's smaller models resize what has an edge above 1568 px, or more patches than that."""
    size = fitted_size(wide, high, Look())
    assert max(size) <= 1568
    assert patches_of(*size) <= 1568
    assert math.ceil(size[0] / 32) * math.ceil(size[1] / 32) <= 1536, "as GPT reads at most"
    if size != (wide, high):
        longest = max(wide, high)
        larger = [max(1, round(side * (max(size) + 1) / longest)) for side in (wide, high)]
        assert max(larger) > 1568 or patches_of(*larger) > 1568


def test_the_size_of_a_picture_is_known_before_it_is_taken() -> None:
    """As `fit_screenshot` makes it, of any shape."""
    for wide, high in ((1280, 800), (1440, 900), (1920, 1080), (900, 3200), (5000, 10)):
        shot = Screenshot.from_bytes(picture(wide, high))
        fitted = fit_screenshot(shot, Look())
        assert fitted_size(wide, high, Look()) == (fitted.width_px, fitted.height_px)


def test_a_part_of_a_picture_is_cut_out_and_made_larger() -> None:
    """Its scale says what one of its pixels is of the page."""
    shot = Screenshot.from_bytes(picture(100, 50), scale=2.0)
    part = crop_screenshot(shot, (10, 10, 30, 20))
    assert (part.width_px, part.height_px, part.scale) == (20, 10, 2.0)
    large = resize_screenshot(part, 200, 100)
    assert (large.width_px, large.height_px, large.scale) == (200, 100, 0.2)
