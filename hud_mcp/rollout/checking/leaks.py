"""Where what an agent must not read can be read: each value, each place, and how bad that is."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from hud_mcp.base.clipping import clip
from hud_mcp.rollout.checking.exposed import ADVICE, UNSEEN, Exposure, Trail
from hud_mcp.rollout.checking.references import Candidate, is_short, occurs
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.values.action import Value

__all__ = ["Leak", "find_leaks"]

_BAD = frozenset({"default", "schema", "metadata", "error"})
"""Where a reference answer has no business; a prompt or a site may well contain it."""

_ALONE = (": default", ": const")
"""How the place of one value of an argument ends; a list of choices stands elsewhere."""

_MOST_PLACES = 3
"""Named of one value; the others are counted."""

_SHOWN_CHARS = 60
_TELLING_CHARS = 6
"""A text of so many characters does not stand in an error by chance."""


class Leak(Value):
    """A value that an agent can find."""

    value: str
    origin: str = Field(description="What it is, in words.")
    places: tuple[str, ...]
    fails: bool = Field(description="Whether it may not be there; else it is only a note.")
    advice: str = Field(default="", description="What to do, in words; or empty.")

    def __str__(self) -> str:
        """It as a sentence."""
        shown = clip(self.value, _SHOWN_CHARS)
        places = "; ".join(self.places[:_MOST_PLACES])
        more = len(self.places) - _MOST_PLACES
        tail = f"; and {more} more place{'s' if more > 1 else ''}" if more > 0 else ""
        then = f" {self.advice}" if self.advice else ""
        return f"An agent can read {shown!r} ({self.origin}): {places}{tail}.{then}"


def find_leaks(
    found: Sequence[Candidate],
    seen: Iterable[Seen],
    prompt: str,
    listed: Sequence[frozenset[str | int | float]] = (),
    trail: Trail | None = None,
) -> list[Leak]:
    """Search everything that an agent saw for what it must not find.

    Args:
        found: The values, with what is known of each.
        seen: The texts, with their places.
        prompt: The task's; what it tells is told.
        listed: Choices that a schema lists: one of them among others is only a note.
        trail: The oracle's; a file that it names is part of the task.

    Returns:
        A leak for each value that is somewhere, and for how bad that is.
    """
    texts = list(seen)
    shown = [prompt, *(each.text for each in texts if each.kind == "observation")]
    told = {line.strip() for text in shown for line in text.splitlines() if line.strip()}
    rest = [_without(each, told, prompt) for each in texts]
    exposure = Exposure(prompt, shown, trail or Trail())
    leaks: list[Leak] = []
    for candidate in _each_once(found):
        in_prompt = occurs(candidate.value, prompt)
        if in_prompt and not candidate.certain:
            continue
        bad: dict[str, None] = {}
        advice: dict[str, None] = {}
        noted: dict[str, None] = {"the prompt": None} if in_prompt else {}
        shown_to = any(occurs(candidate.value, text) for text in shown)
        for each in rest:
            if not _is_searched(candidate, each) or not occurs(candidate.value, each.text):
                continue
            if each.kind in UNSEEN:
                fails = None if in_prompt else exposure.fails(candidate, each)
                if fails is None:
                    continue
            else:
                fails = each.kind in _BAD and not in_prompt
                fails = fails and not (shown_to and each.place.startswith("the live page"))
                fails = fails and _is_bad(candidate, each, listed)
            if fails:
                advice.setdefault(ADVICE.get(each.kind, ""))
            (bad if fails else noted)[each.place] = None
        for places, fails in ((bad, True), (noted, False)):
            if places:
                leaks.append(
                    Leak(
                        value=candidate.text, origin=candidate.origin, places=tuple(places),
                        fails=fails, advice=" ".join(filter(None, advice)) if fails else "",
                    )
                )  # fmt: skip
    return leaks


def _each_once(found: Sequence[Candidate]) -> list[Candidate]:
    """Each value once: as what it is surely, where that is known."""
    best: dict[str, Candidate] = {}
    for candidate in found:
        if candidate.text not in best or (candidate.certain and not best[candidate.text].certain):
            best[candidate.text] = candidate
    return list(best.values())


def _is_searched(candidate: Candidate, each: Seen) -> bool:
    """Whether finding a value in a text says something: a short one is anywhere by chance."""
    return each.own or not is_short(candidate.value)


def _is_bad(
    candidate: Candidate, each: Seen, listed: Sequence[frozenset[str | int | float]]
) -> bool:
    if each.kind != "metadata" and not each.place.endswith(_ALONE):
        beside = (group - {candidate.value} for group in listed if candidate.value in group)
        is_value = each.text.strip() == candidate.text  # an item of the list itself
        if any(is_value or any(occurs(one, each.text) for one in others) for others in beside):
            return False
    if candidate.certain:
        return True
    telling = isinstance(candidate.value, str) and len(candidate.value) >= _TELLING_CHARS
    return each.kind == "error" and telling


def _without(each: Seen, told: set[str], prompt: str) -> Seen:
    """A text without what the prompt and the world have told already."""
    if each.kind == "observation" or each.kind in UNSEEN:
        return each
    text = each.text.replace(prompt, " ") if prompt else each.text
    lines = [line for line in text.splitlines() if line.strip() not in told]
    return each.model_copy(update={"text": "\n".join(lines)})
