"""Runs HUD's own graders on cases from stdin, and prints what they give. For HUD's interpreter."""

import asyncio
import json
import sys
import warnings
from typing import Any

from hud import graders  # pyright: ignore[reportMissingImports]  # only where HUD is installed

warnings.simplefilter("ignore")


def call(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """One call of one grader, and what it gave as JSON."""
    if name.startswith("combine"):
        parts = [[graders.SubScore(**part) for part in given] for given in args]
        if name == "combine":
            return asyncio.run(graders.combine(*parts[0])).model_dump(mode="json")
        combined = getattr(graders, name)(kwargs.pop("weight"), parts[0], **kwargs)
        return combined.model_dump(mode="json")
    return getattr(graders, name)(*args, **kwargs)


def give(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a call gave, or the name of what it raised."""
    try:
        return call(name, args, kwargs)
    except Exception as exc:  # noqa: BLE001  # whatever HUD raises is a fact about it
        return type(exc).__name__


print(json.dumps([give(*case) for case in json.load(sys.stdin)]))
