"""Values in places that no person looks at: files of a sandbox, and the source of pages."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from pydantic import Field

from hud_mcp.rollout.checking.references import Candidate, is_labelled, is_short, occurs
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.values.action import Value

__all__ = ["ADVICE", "UNSEEN", "Exposure", "Trail"]

ADVICE = {
    "file": "Keep it out of the sandbox: in the row, in the template, or in a verifier's `files`.",
    "outside": "Keep it out of the sandbox: in the row, in the template, or in a verifier's "
    "`files`.",
    "hidden": "Leave it out of the page: the grader can read it from the row or from `state`.",
    "open": "Let the site answer without it: the grader can read it from the row or from `state`.",
}
"""The author's remedy, by the kind of a text."""

UNSEEN = frozenset(ADVICE)
"""Kinds of texts that no person is shown."""


class Trail(Value):
    """The oracle's way through a task."""

    said: str = Field(default="", description="Its actions.")
    saw: str = Field(default="", description="What it was shown.")


class Exposure:
    """Judges where values lie that no person is shown.

    A task may have its agent find the answer in a file or on a page. Then the prompt or the
    oracle's way leads there, or the page shows it. A text that calls itself the answer is a leak.

    Args:
        prompt: The task's.
        shown: The texts of the world that anybody sees.
        trail: The oracle's.
    """

    def __init__(self, prompt: str, shown: Iterable[str], trail: Trail) -> None:
        self._prompt = prompt
        self._shown = list(shown)
        self._trail = trail

    def fails(self, candidate: Candidate, each: Seen) -> bool | None:
        """Whether a value may not be in a text; None where it is there by chance."""
        labelled = is_labelled(candidate, each.text, each.named, self._prompt)
        if not labelled and is_short(candidate.value):
            return None
        if not candidate.certain:
            return False
        if each.kind == "outside":
            return not self._leads_to(each.named)
        if each.kind == "file":
            alone = each.text.strip() == candidate.text.strip()
            return (labelled or alone) and not self._leads_to(each.named)
        if any(occurs(candidate.value, text) for text in self._shown):
            return False
        return labelled or each.kind == "hidden" or not occurs(candidate.value, self._trail.saw)

    def _leads_to(self, path: str) -> bool:
        """Whether the prompt or the oracle's actions name a file."""
        name = PurePosixPath(path).name
        return occurs(name, self._prompt) or occurs(name, self._trail.said)
