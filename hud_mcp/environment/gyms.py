"""The gyms that tasks name, in the terms of the HUD SDK."""

import hashlib
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import orjson
from pydantic import Field, model_serializer, model_validator

from hud_mcp.values.action import Value

__all__ = ["CustomGym", "Gym", "ServerGym", "why_remote"]

_REMOTE = {
    "OSWorld-Ubuntu": "a desktop with Ubuntu for the tasks of OSWorld, github.com/xlang-ai/OSWorld",
    "hud-ubuntu": "a desktop with Ubuntu",
    "docker": "a container that its taskset named",
}
"""The gyms that only HUD's cloud had, each with a description."""


class CustomGym(Value):
    """Your own environment, which runs in a container.

    Its controller is a package `hud_controller`, whose functions `setup` and `evaluate` name.
    Rows name a folder as `build_context`, because JSON has no paths.
    """

    type: Literal["public"] = Field(default="public", description="HUD's.")
    location: Literal["local", "remote"] = Field(
        default="local", description="`remote` was HUD's cloud; only `local` runs here."
    )
    image_or_build_context: str | Path = Field(
        union_mode="left_to_right",
        description="An image's name as text, or a folder with a Dockerfile as a `Path`.",
    )
    host_config: dict[str, Any] | None = Field(
        default=None, description="Options of the container, as Docker's API names them."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_row(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        row = dict(cast("dict[str, Any]", raw))
        if "build_context" not in row:
            return row
        if "image_or_build_context" in row:
            raise ValueError("give 'build_context' or 'image_or_build_context', not both")
        folder = Path(str(row.pop("build_context")))
        return {**row, "image_or_build_context": folder}

    @model_serializer
    def _as_row(self) -> dict[str, Any]:
        place = self.image_or_build_context
        key = "build_context" if isinstance(place, Path) else "image_or_build_context"
        row: dict[str, Any] = {"type": self.type, "location": self.location, key: str(place)}
        return row if self.host_config is None else {**row, "host_config": self.host_config}

    @property
    def name(self) -> str:
        """The name of its environment; equal gyms have the same."""
        row = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return f"custom-{hashlib.sha256(row).hexdigest()[:8]}"


ServerGym: TypeAlias = str
"""The name of a gym: `hud-browser`, `hud-shell`, `qa`, an environment's, a Gymnasium id."""

Gym: TypeAlias = CustomGym | ServerGym


def why_remote(gym: Gym | None) -> str | None:
    """Return a reason that a gym cannot start here, with an alternative; None if it can."""
    if isinstance(gym, CustomGym):
        if gym.location == "local":
            return None
        return (
            "location='remote' asks for HUD's cloud, and gyms run on this machine; write "
            "location='local'."
        )
    if gym not in _REMOTE:
        return None
    return (
        f"{gym!r} was {_REMOTE[gym]}, and ran in HUD's cloud alone. Here, name an environment of "
        "yours, 'hud-browser', 'hud-shell' or 'qa', or give a CustomGym with an image."
    )
