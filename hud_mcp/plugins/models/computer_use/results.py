"""What is read out of an observation for a provider's reply."""

import re
from typing import Any

from hud_mcp.values.action import Point
from hud_mcp.values.observation import Observation, Screenshot

__all__ = ["block_of", "data_url", "matching_lines", "pointer_in"]

_POINTER = re.compile(r"The pointer is at \((-?[\d.]+), (-?[\d.]+)\)")
_MOST_LINES = 20


def block_of(shot: Screenshot) -> dict[str, Any]:
    """A picture as Anthropic's content block."""
    source = {"type": "base64", "media_type": shot.mime_type, "data": shot.as_base64()}
    return {"type": "image", "source": source}


def data_url(shot: Screenshot) -> str:
    """A picture as a data URL."""
    return f"data:{shot.mime_type};base64,{shot.as_base64()}"


def pointer_in(observation: Observation) -> Point | None:
    """Where a text says that the pointer is, in pixels of our picture; None where it does not."""
    found = _POINTER.search(observation.text or "")
    return Point(x=float(found[1]), y=float(found[2])) if found else None


def matching_lines(text: str, query: str) -> str:
    """The lines of a text with refs that have a word of a query, those with most words first."""
    words = set(re.findall(r"\w+", query.lower()))
    scored = [
        (len(words & set(re.findall(r"\w+", line.lower()))), line.strip())
        for line in text.splitlines()
        if "[ref=" in line
    ]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
    return "\n".join(line for _, line in best[:_MOST_LINES]) or f"Nothing matches {query!r}."
