"""The places of public sets: publisher, version, licence and digests, from `sets.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["PLACE_VARIABLE", "Published", "Token", "published"]

PLACE_VARIABLE = "HUD_MCP_DATASETS"
"""A folder or an address in place of every published one."""


@dataclass(frozen=True)
class Token:
    """The user's token for a gated place.

    Attributes:
        host: The only host that gets it.
        variables: Environment variables that may hold it, the first one first.
        terms: The page where a person accepts the terms.
    """

    host: str
    variables: tuple[str, ...]
    terms: str


@dataclass(frozen=True)
class Published:
    """The place of a set's files; `sets.toml` says what each field is."""

    key: str
    title: str
    about: str
    base: str
    page: str
    licence: str
    parts: str
    token: Token | None = None
    extra: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict[str, str])

    def credit(self, path: str) -> str:
        """Return the origin of a file's rows, with its repository and its licence."""
        return f"{path} of {self.page.rpartition(' of ')[2]} ({self.licence})"


@cache
def _records() -> dict[str, Published]:
    text = Path(__file__).with_name("sets.toml").read_text(encoding="utf-8")
    found: dict[str, Published] = {}
    for row in tomllib.loads(text)["set"]:
        token: dict[str, Any] | None = row.pop("token", None)
        if token is not None:
            token["variables"] = tuple(token["variables"])
            row["token"] = Token(**token)
        found[row["title"]] = Published(**row)
    return found


def published(title: str) -> Published:
    """Return the record of a set in `sets.toml`."""
    return _records()[title]
