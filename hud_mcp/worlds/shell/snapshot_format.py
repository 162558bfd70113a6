"""A shell's snapshot as bytes: a line of JSON that says what it is, then the packed folder."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hud_mcp.errors import EnvironmentFailed

__all__ = ["missed", "read_snapshot", "write_snapshot"]

_FORM = 1


def write_snapshot(packed: bytes, fields: Mapping[str, Any]) -> bytes:
    """A snapshot of a packed folder, and what else is said of it, as JSON has it."""
    sha256 = hashlib.sha256(packed).hexdigest()
    head = json.dumps({"form": _FORM, **fields, "sha256": sha256})
    return head.encode() + b"\n" + packed


def read_snapshot(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What is said of a snapshot, and the packed folder.

    Raises:
        EnvironmentFailed: It is not a snapshot, or a damaged one.
    """
    head, _, packed = data.partition(b"\n")
    try:
        fields: dict[str, Any] = json.loads(head)
        form, sha256 = fields["form"], fields["sha256"]
        fields["last"] = str(fields["last"])
    except (ValueError, TypeError, KeyError):
        fields, form, sha256 = {}, None, ""
    if form != _FORM:
        raise EnvironmentFailed(
            f"This is not a snapshot of a shell in form {_FORM}. Start a new task."
        )
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise EnvironmentFailed("This snapshot of a shell is damaged. Start a new task.")
    return fields, packed


def missed(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """What a shell is restored without, by what is said of its snapshot."""
    missed = [str(name) for name in fields.get("left_out") or ()]
    for name, one, more in (
        ("processes", "1 process that ran in the back", "processes that ran in the back"),
        ("elsewhere", "1 file outside of it, as in /tmp", "files outside of it, as in /tmp"),
    ):
        if count := int(fields.get(name) or 0):
            missed.append(one if count == 1 else f"{count} {more}")
    return tuple(missed)
