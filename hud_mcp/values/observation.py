"""Observations: text, a screenshot, or both, within a budget."""

import base64
import hashlib
import io
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from hud_mcp.base import libraries
from hud_mcp.values.action import Value

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

__all__ = [
    "DEFAULT_FORMAT",
    "IMAGE_FORMATS",
    "JPEG_QUALITY",
    "ImageFormat",
    "Look",
    "Observation",
    "Screenshot",
    "TaskResult",
    "crop_screenshot",
    "encode_picture",
    "fit_screenshot",
    "fitted_size",
    "resize_screenshot",
]

ImageFormat = Literal["png", "jpeg"]

DEFAULT_FORMAT: ImageFormat = "jpeg"
"""The format of agents' pictures, unless another was chosen."""

IMAGE_FORMATS: tuple[ImageFormat, ...] = ("jpeg", "png")
"""The formats to choose from, in their order for people."""

JPEG_QUALITY = 80
"""The quality of JPEG pictures, unless another was chosen."""

_PATCH_PX = 28
"""The side of the squares that Claude reads and counts; docs/pictures.md has every provider's."""

_JPEG_QUALITIES = (JPEG_QUALITY, 65, 50, 35)
"""The qualities that are tried until a picture fits; below 35 small text is gone."""


class Screenshot(Value):
    """One picture of the screen, encoded, with its relation to CSS pixels."""

    data: bytes = Field(description="The encoded picture; base64 in JSON.", repr=False)
    mime_type: Literal["image/png", "image/jpeg"] = "image/png"
    width_px: int = Field(gt=0, description="Pixels of the picture, not of the page.")
    height_px: int = Field(gt=0)
    scale: float = Field(default=1.0, gt=0, description="CSS pixels per pixel of the picture.")

    @field_validator("data", mode="before")
    @classmethod
    def _read_data(cls, given: Any) -> Any:
        return base64.b64decode(given, validate=True) if isinstance(given, str) else given

    @field_serializer("data", when_used="json")
    def _write_data(self, data: bytes) -> str:
        return base64.b64encode(data).decode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes, *, scale: float = 1.0) -> "Screenshot":
        """Read the size and the format from an encoded PNG or JPEG; else raise ValueError."""
        try:
            with libraries.Image.open(io.BytesIO(data)) as image:
                width, height, kind = image.width, image.height, image.format
        except libraries.UnidentifiedImageError:
            raise ValueError("a screenshot is an encoded PNG or JPEG") from None
        except libraries.Image.DecompressionBombError:
            raise ValueError("the picture has too many pixels for a screenshot") from None
        if kind not in ("PNG", "JPEG"):
            raise ValueError(f"a screenshot is a PNG or a JPEG, not {kind}")
        mime = "image/png" if kind == "PNG" else "image/jpeg"
        return cls(data=data, mime_type=mime, width_px=width, height_px=height, scale=scale)

    @property
    def extension(self) -> str:
        """The ending of its file's name, `png` or `jpg`."""
        return "png" if self.mime_type == "image/png" else "jpg"

    @cached_property
    def sha256(self) -> str:
        """The hash of the encoded bytes, 64 hex digits, under which a picture is stored."""
        return hashlib.sha256(self.data).hexdigest()

    def as_base64(self) -> str:
        """The encoded picture as base64 text."""
        return base64.b64encode(self.data).decode("ascii")

    def as_png(self) -> "Screenshot":
        """The same picture as PNG."""
        return self if self.mime_type == "image/png" else _encode(self, "png")


class Observation(Value):
    """The agent's view after acting."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    text: str | None = Field(default=None, description="The world in words, or None.")
    image: Screenshot | None = Field(default=None, description="The picture, or None.")
    values: Any = Field(
        default=None, description="The values for programs, as JSON, in place of the text; or None."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_base64(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        rest = dict(cast("dict[str, Any]", raw))
        text: Any = rest.pop("screenshot", None)
        if text is None or rest.get("image") is not None:
            return rest
        if not isinstance(text, str):
            raise ValueError("a screenshot is a picture as base64 text, or None")  # noqa: TRY004  # pydantic reports ValueErrors by field
        encoded = text.partition("base64,")[2] or text
        return {**rest, "image": Screenshot.from_bytes(base64.b64decode(encoded))}

    @model_serializer(mode="wrap", when_used="json")
    def _as_json(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the HUD SDK's form: `screenshot` is PNG; `image` follows for any other picture."""
        whole: dict[str, Any] = write(self)
        image = whole.pop("image", None)
        if whole.get("values") is None:
            whole.pop("values", None)
        if "screenshot" not in whole:
            whole = {"screenshot": self.screenshot, **whole}
        is_plain = self.image is None or self.image == Screenshot.from_bytes(self.image.data)
        is_plain &= self.image is None or self.image.mime_type == "image/png"
        return whole if is_plain else {**whole, "image": image}

    @cached_property
    def screenshot(self) -> str | None:
        """The picture as base64 PNG, the HUD SDK's form, or None."""
        return self.image.as_png().as_base64() if self.image else None


class TaskResult(Value):
    """The result of one `step`."""

    observation: Observation
    reward: float = Field(default=0.0, description="0 where the step has none.")
    terminated: bool = Field(default=False, description="The task reached its end.")
    truncated: bool = Field(default=False, description="The task was cut off by a limit.")
    info: dict[str, Any] = Field(default_factory=dict)


class Look(Value):
    """The parts to observe, and their largest size."""

    text: bool = True
    values: bool = Field(
        default=False, description="Whether to include values for programs, if the world has any."
    )
    changes: bool = Field(
        default=False, description="Only what changed in the text since the last observation."
    )
    part: str = Field(
        default="", description="The ref of the one element to read, such as `e29`, or `e29:40`."
    )
    form: int = Field(
        default=1, description="The form of the world's text. A replay compares texts of one form."
    )
    image: ImageFormat | None = Field(default=None, description="Its format; None for no picture.")
    quality: int = Field(default=JPEG_QUALITY, ge=1, le=100, description="JPEG quality.")
    max_edge_px: int = Field(
        default=1568, ge=64, description="The longest edge of a picture; many models see no more."
    )
    max_patches: int = Field(
        default=1568, ge=1, description="The most squares of 28 px that cover it; the same."
    )
    max_image_bytes: int = Field(default=700_000, ge=10_000, description="Before base64.")
    max_text_chars: int = Field(default=10_000, ge=200)

    def takes(self, shot: Screenshot) -> bool:
        """Whether a picture is within the budget."""
        size = shot.width_px, shot.height_px
        return fitted_size(*size, self) == size and len(shot.data) <= self.max_image_bytes


def fit_screenshot(shot: Screenshot, look: Look) -> Screenshot:
    """Bring a picture within a budget: smaller first, then JPEG, then lower quality.

    Its `scale` maps its pixels back to CSS pixels. Hosts that rescale pictures move the places that
    a model clicks, so nothing larger may leave.
    """
    if look.takes(shot):
        return shot
    edge = max(fitted_size(shot.width_px, shot.height_px, look))
    smaller = edge < max(shot.width_px, shot.height_px)
    fitted = _encode(shot, _kind(shot), edge, look.quality) if smaller else shot
    while len(fitted.data) > look.max_image_bytes:
        for quality in _JPEG_QUALITIES:
            fitted = _encode(shot, "jpeg", edge, quality)
            if len(fitted.data) <= look.max_image_bytes:
                return fitted
        edge = edge * 3 // 4
    return fitted


def fitted_size(width_px: int, height_px: int, look: Look) -> tuple[int, int]:
    """Return the size of a picture that a look makes of one of this size."""
    longest = max(width_px, height_px)
    # No larger one fits, and few smaller ones do not: their last patches are not full.
    most = longest * math.sqrt(look.max_patches * _PATCH_PX**2 / (width_px * height_px))
    edge = min(longest, look.max_edge_px, math.ceil(most))
    size = _scaled(width_px, height_px, edge)
    while math.prod(math.ceil(side / _PATCH_PX) for side in size) > look.max_patches:
        edge -= 1
        size = _scaled(width_px, height_px, edge)
    return size


def _scaled(width_px: int, height_px: int, edge_px: int) -> tuple[int, int]:
    longest = max(width_px, height_px)
    width, height = (max(1, round(side * edge_px / longest)) for side in (width_px, height_px))
    return width, height


def crop_screenshot(shot: Screenshot, box: tuple[float, float, float, float]) -> Screenshot:
    """Return a part of a picture: left, top, right and bottom in its pixels."""
    with libraries.Image.open(io.BytesIO(shot.data)) as opened:
        left, top, right, bottom = (round(side) for side in box)
        image = opened.convert("RGB").crop((left, top, right, bottom))
    return encode_picture(image, _kind(shot), scale=shot.scale)


def resize_screenshot(shot: Screenshot, width_px: int, height_px: int) -> Screenshot:
    """Return a picture in another size, of any shape."""
    with libraries.Image.open(io.BytesIO(shot.data)) as opened:
        image = opened.convert("RGB")
    lanczos = libraries.Image.Resampling.LANCZOS
    resized = image.resize((max(1, width_px), max(1, height_px)), lanczos)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names NumPy arrays
    scale = shot.scale * shot.width_px / max(1, width_px)
    return encode_picture(resized, _kind(shot), scale=scale)


def _kind(shot: Screenshot) -> ImageFormat:
    return "png" if shot.mime_type == "image/png" else "jpeg"


def encode_picture(
    picture: "PillowImage", kind: ImageFormat, *, quality: int = JPEG_QUALITY, scale: float = 1.0
) -> Screenshot:
    """Encode a Pillow picture, quickly rather than small."""
    out = io.BytesIO()
    if kind == "png":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, "JPEG", quality=quality)
    return Screenshot(
        data=out.getvalue(),
        mime_type="image/png" if kind == "png" else "image/jpeg",
        width_px=picture.width,
        height_px=picture.height,
        scale=scale,
    )


def _encode(
    shot: Screenshot, kind: ImageFormat, edge: int | None = None, quality: int = JPEG_QUALITY
) -> Screenshot:
    with libraries.Image.open(io.BytesIO(shot.data)) as opened:
        image = opened.convert("RGB")
    longest = max(image.size)
    if edge is not None and edge < longest:
        size = _scaled(image.width, image.height, edge)
        image = image.resize(size, libraries.Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names NumPy arrays
    # Of the longer side: the shorter one is rounded to whole pixels, which is far off at the end of
    # a long page.
    scale = shot.scale * max(shot.width_px, shot.height_px) / max(image.size)
    return encode_picture(image, kind, quality=quality, scale=scale)
