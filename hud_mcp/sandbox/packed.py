"""A folder as a tar, and what is not in it."""

import json
from dataclasses import dataclass
from typing import Any

from hud_mcp.errors import SnapshotFailed

__all__ = ["Packed", "Skipped", "read_report"]


@dataclass(frozen=True)
class Skipped:
    """Something in a folder that its packed form does not have.

    Attributes:
        path: From the folder on, as text; where there was more than can be named, how much.
        why: What it is, or why it could not be read.
        lost: Whether content is missed by it. A socket and a pipe have none.
    """

    path: str
    why: str
    lost: bool

    def __str__(self) -> str:
        """Its name, and why."""
        return f"{self.path} ({self.why})"


@dataclass(frozen=True)
class Packed:
    """A folder as a compressed tar.

    Attributes:
        data: The tar.
        skipped: What it does not have, what is lost first.
    """

    data: bytes
    skipped: tuple[Skipped, ...] = ()

    @property
    def lost(self) -> tuple[Skipped, ...]:
        """What it would have to have, to be the folder."""
        return tuple(each for each in self.skipped if each.lost)


def read_report(told: bytes) -> tuple[Skipped, ...]:
    """What a report from inside says, which is not trusted to be one.

    Raises:
        SnapshotFailed: It is none.
    """
    try:
        report: dict[str, Any] = json.loads(told)
        rows: list[tuple[str, str, bool]] = report["skipped"]
        found = [Skipped(_shown(path), _shown(why), bool(lost)) for path, why, lost in rows]
        more = int(report["count"]) - len(found)
    except (ValueError, TypeError, KeyError) as exc:
        raise SnapshotFailed(
            "The sandbox did not report the packed files. Nothing was stored."
        ) from exc
    if more > 0:
        found.append(Skipped(f"{more} more", "not named here", lost=found[-1].lost))
    return tuple(found)


def _shown(text: str) -> str:
    """A name as it can be shown and stored: on one line, and of real characters."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(sign if sign.isprintable() else "?" for sign in text)
