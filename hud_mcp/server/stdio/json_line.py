"""JSON on one line, of whatever a reply may hold."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from hud_mcp.loading.json_lines import escape_separators

__all__ = ["dump_line"]


def dump_line(frame: Mapping[str, Any]) -> bytes:
    """Write a frame, also with what orjson refuses: models, odd keys, big integers.

    A lone surrogate, which is not text in any encoding, becomes a question mark.

    Raises:
        ValueError: Something in it is not JSON.
    """
    try:
        return escape_separators(orjson.dumps(frame, option=orjson.OPT_APPEND_NEWLINE))
    except orjson.JSONEncodeError:
        pass
    try:
        plain = to_jsonable_python(frame, inf_nan_mode="null", bytes_mode="base64")
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not representable as JSON: {error}") from error
    return escape_separators(text.encode(errors="replace")) + b"\n"
