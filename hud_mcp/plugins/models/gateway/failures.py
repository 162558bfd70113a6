"""The failures that providers report by HTTP, and the waits that they ask for."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from hud_mcp.base.text import clip
from hud_mcp.plugins.models.computer_use.frame import objects_in
from hud_mcp.plugins.models.replies import (
    STATUSES,
    Failure,
    NotAReply,
    error_in,
    failure_said,
    read_json,
    sentence_in,
)

__all__ = ["failure_of_reply"]

_TOO_MANY, _SERVER_ERRORS = 429, 500
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SAID_CHARS = 600
"""The length of a provider's text about a refusal."""


def failure_of_reply(
    status: int, body: bytes, headers: Mapping[str, str]
) -> tuple[Failure, str, float | None]:
    """Return the failure in a reply of HTTP, its sentence, and the seconds that it asks to wait.

    The names of headers are in lower case.
    """
    try:
        told = read_json(body)
    except NotAReply:
        told = {}
    error = error_in(told)
    text = sentence_in(error) or clip(
        " ".join(body.decode("utf-8", "replace").split()), _SAID_CHARS
    )
    asked_s = _asked_s(headers, error)
    failure = failure_said(error, text) or STATUSES.get(status)
    if failure is None and status == _TOO_MANY and "PerDay" in str(error.get("details")):
        failure = Failure.EVERY_RUN  # Google's daily quota, which no minute brings back
    if failure is None and "API_KEY_INVALID" in str(error.get("details")):
        failure = Failure.EVERY_RUN  # Google sends it with status 400
    if failure is None:
        is_passing = status == _TOO_MANY or status >= _SERVER_ERRORS
        failure = Failure.PASSING if is_passing else Failure.REFUSED
    return failure, text or f"status {status}", asked_s


def _asked_s(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    """Return the seconds that a provider asks to wait, in whichever of the ways it says so."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if _NUMBER.fullmatch(given := headers.get(name, "")):
            return float(given) * unit_s
    with suppress(ValueError, TypeError, OverflowError):
        at = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, at.timestamp() - time.time())
    for detail in objects_in(error.get("details")):  # Google
        if found := _SECONDS.fullmatch(str(detail.get("retryDelay"))):
            return float(found[1])
    resets = [
        _duration_s(headers.get(f"x-ratelimit-reset-{of}", ""))
        for of in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{of}") == "0"
    ]
    return max((each for each in resets if each is not None), default=None)


def _duration_s(text: str) -> float | None:
    """Read `6m0s`, `1.5s` or `20ms`, as OpenAI and Groq write it."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
