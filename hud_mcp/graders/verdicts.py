"""A judge's verdict: read out of a reply, and kept so that nobody asks the same twice."""

import hashlib
import json
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import orjson

from hud_mcp.graders.endpoint import Unreadable

__all__ = ["Verdict", "VerdictCache", "read_verdict"]

_MOST_OBJECTS = 200
_MOST_CHARS = 100_000
_MOST_KEPT = 4_096
_SHOWN_CHARS = 300
_WORD = re.compile(r"\b(?P<no>UN[_-]?|(?i:not)[\s_-]+)?MET\b")


@dataclass(frozen=True)
class Verdict:
    """Whether what a criterion describes is there.

    Attributes:
        met: Whether it is.
        reason: Why, in the judge's words.
        cached: Whether nobody was asked for it this time.
    """

    met: bool
    reason: str
    cached: bool = False


def read_verdict(reply: str) -> Verdict:
    """Read a JSON object with a `criterion_status`, or else the bare word MET or UNMET.

    Raises:
        Unreadable: There is no verdict in it, or two that differ: an answer that is quoted in a
            reply may have one of its own.
    """
    text = reply[:_MOST_CHARS]
    found = [each for each in _objects(text) if "criterion_status" in each]
    if found:
        said = {str(each["criterion_status"]).strip().upper() for each in found}
        if len(said) == 1 and said <= {"MET", "UNMET"}:
            return Verdict("MET" in said, str(found[-1].get("explanation") or ""))
        raise Unreadable(
            "it does not have exactly one criterion_status of MET or UNMET: "
            f"{text[:_SHOWN_CHARS]!r}"
        )
    words = {word["no"] is None for word in _WORD.finditer(text)}
    if len(words) != 1:
        raise Unreadable(
            f"it does not have exactly one verdict of MET or UNMET: {text[:_SHOWN_CHARS]!r}"
        )
    return Verdict(words.pop(), text.strip()[:_SHOWN_CHARS])


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands in a text, apart from those inside of others."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        end = start + 1
        with suppress(ValueError, RecursionError):
            value, end = decoder.raw_decode(text, start)
            yield cast("dict[str, Any]", value)
        start = text.find("{", end)


class VerdictCache:
    """Verdicts by everything that was asked. The newest few thousand are in memory.

    Args:
        folder: Where they are kept for other processes too; None for nowhere.
    """

    _kept: ClassVar[OrderedDict[str, Verdict]] = OrderedDict()

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @staticmethod
    def key(asked: Mapping[str, Any]) -> str:
        """What stands for everything that was asked."""
        return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def get(self, key: str) -> Verdict | None:
        """The verdict of before; None where there is none, or its file is damaged."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if self._folder is None:
            return None
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept: Any = orjson.loads(self._file(self._folder, key).read_bytes())
            if isinstance(kept["met"], bool) and isinstance(kept["reason"], str):
                return self._keep(key, Verdict(kept["met"], kept["reason"], cached=True))
        return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict; a folder that cannot be written to is left alone."""
        self._keep(key, Verdict(verdict.met, verdict.reason, cached=True))
        if self._folder is None:
            return
        file = self._file(self._folder, key)
        data = orjson.dumps({"met": verdict.met, "reason": verdict.reason})
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=file.parent)
            try:
                with os.fdopen(handle, "wb") as written:
                    written.write(data)
                Path(name).replace(file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    @classmethod
    def forget(cls) -> None:
        """Drop what is in memory."""
        cls._kept.clear()

    def _keep(self, key: str, verdict: Verdict) -> Verdict:
        self._kept[key] = verdict
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return verdict

    @staticmethod
    def _file(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key}.json"
