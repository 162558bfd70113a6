"""Leaks: values that an agent must not read, the places where it can, and how bad each is."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, cast

from pydantic import Field

from hud_mcp.base.text import clip
from hud_mcp.environment import Environment
from hud_mcp.environment.function import REGISTERED
from hud_mcp.environment.task import Task
from hud_mcp.graders.reading import one_line
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.values.action import Value

_ANSWER_NAME = re.compile(
    r"(^|_)(answers?|expect(ed|s)?|gold(en)?|solutions?|targets?|truth|references?|correct|secrets?|"
    r"hidden|wanted|passwords?)(_|$)",
    re.IGNORECASE,
)
"""Names by which a value calls itself the expected answer."""

_DESCRIBING = frozenset({
    "difficulty", "steps", "skills", "split", "parts", "needs", "context", "base_task", "twin",
    "hud", "source",
})  # fmt: skip
"""Metadata that describes a row, and that any set shows."""

_SHORT = 4
"""A value with fewer characters stands anywhere by chance. So does any number."""

_LABEL_CHARS = 40
"""The most characters between a label and the value that it names."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
"""A text that is searched for as a number."""

_ANSWERS = frozenset(REGISTERED)


@dataclass(frozen=True)
class Candidate:
    """A value that an agent should find nowhere but in the prompt, and its place in words.

    `by_default` marks an argument's default that the row leaves out. Schemas show an argument's
    default as `told`. A `certain` value surely is the expected answer. A probe tries a value that
    `may_answer`.
    """

    value: str | int | float
    name: str
    origin: str
    argument: str | None = None
    by_default: bool = False
    told: bool = False
    certain: bool = False
    may_answer: bool = True

    @property
    def text(self) -> str:
        """The value as an answer."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value)

    def proven(self, why: str) -> "Candidate":
        """Return the candidate, marked as a known answer, with the reason added to its origin."""
        return replace(self, certain=True, origin=f"{self.origin}, {why}")


def candidates(task: Task, environment: Environment) -> list[Candidate]:
    """Return every value of a bound task that may have to stay hidden, in order."""
    found = [*_of_metadata(task)]
    if task.target is not None:
        found += [
            Candidate(value, "target", "the row's `target`", certain=True)
            for value in _leaves(task.target)
        ]
    if task.prompt is None:
        return [*_of_arguments(task, environment), *found]
    for call in task.evaluate:
        held = call.function in _ANSWERS
        origin = f"an argument of `{call.function}` in `evaluate`"
        found += [
            Candidate(value, call.function, origin, certain=held) for value in _leaves(call.args)
        ]
    return found


def choices(environments: Iterable[Environment]) -> list[frozenset[str | int | float]]:
    """Return the choices of each argument of all templates: a list of choices tells no answer."""
    found: set[frozenset[str | int | float]] = set()
    nodes: list[Any] = [
        template.arguments.schema
        for environment in environments
        for template in environment.templates.values()
    ]
    while nodes:
        node: Any = nodes.pop()
        if isinstance(node, Mapping):
            found.add(frozenset(_leaves(cast("Mapping[str, Any]", node).get("enum"))))
            nodes += cast("Mapping[str, Any]", node).values()  # schemas nest
        elif isinstance(node, list):
            nodes += cast("list[Any]", node)
    return [group for group in found if len(group) > 1]


def occurs(value: str | float, text: str) -> bool:
    """Whether a text contains a value as a whole word or number, in any escaped form."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value.strip()):
        number = value.strip() if isinstance(value, str) else json.dumps(value)
        number = re.escape(number.removesuffix(".0")) + r"(?:\.0+)?"  # 3 and 3.0 are one number
        # The 5 of 2.5 is another number.
        return bool(re.search(rf"(?<![\w.]){number}(?!\w|\.\d)", text.replace(",", "")))
    wanted = _plain(value)
    if not wanted:
        return False
    plain = _plain(text)
    # As scripts and replies may have it.
    escaped = (json.dumps(value, ensure_ascii=only)[1:-1] for only in (True, False))
    forms = {wanted, _plain(html.escape(value)), *map(_plain, escaped)}
    return any(
        # The plain test is quick, and rules out most texts.
        form in plain and re.search(_edge(form[0], before=True) + re.escape(form)
                                    + _edge(form[-1], before=False), plain)
        for form in forms
    )  # fmt: skip


def is_short(value: str | float) -> bool:
    """Whether a value stands in any text by chance."""
    if not isinstance(value, str):
        return True
    return len(value.strip()) < _SHORT or bool(_NUMBER.fullmatch(value.strip()))


def is_labelled(candidate: Candidate, text: str, named: str, prompt: str) -> bool:
    """Whether a text calls a value an answer, in words that the prompt does not use."""
    before = text[: max(0, text.lower().find(candidate.text.lower()))][-_LABEL_CHARS:]
    before = before.rpartition("\n")[2]
    asked = _words(prompt)
    return any(_ANSWER_NAME.search(word) for word in _words(f"{named} {before}") - asked)


def _words(text: str) -> set[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return set(re.sub(r"[\W\d_]+", " ", apart).lower().split())


def _of_arguments(task: Task, environment: Environment) -> Iterator[Candidate]:
    template = environment.find_template(task.template)
    properties: Mapping[str, Any] = template.arguments.schema["properties"]
    defaults = template.arguments.defaults
    for name in template.arguments.names:
        schema: Mapping[str, Any] = properties.get(name, {})
        by_default = name not in task.args
        value = defaults.get(name) if by_default else task.args[name]
        origin = f"the default of the argument `{name}`" if by_default else f"the argument `{name}`"
        grading = schema.get("x-hud-hint") == "grading"
        certain = grading or bool(_ANSWER_NAME.search(name))
        known: Any = schema.get("enum") or ()
        for leaf in _leaves(value):
            if leaf in known and not certain:
                continue  # the schema shows every possible value anyway
            told = leaf in _leaves(schema.get("default"))
            yield Candidate(
                leaf, name, origin, name, by_default=by_default, told=told, certain=certain
            )


def _of_metadata(task: Task) -> Iterator[Candidate]:
    for name, value in task.metadata.items():
        if name in _DESCRIBING or "/" in name:  # a slash marks keys of programs
            continue
        certain = bool(_ANSWER_NAME.search(name))
        for leaf in _leaves(value):
            yield Candidate(
                leaf, name, f"`{name}` of the row's metadata", certain=certain, may_answer=certain
            )


def _leaves(value: Any) -> Iterator[str | int | float]:
    """Yield the texts and numbers of a JSON value, without true, false, null and empty texts."""
    if isinstance(value, Mapping):
        for each in cast("Mapping[str, Any]", value).values():
            yield from _leaves(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[Any]", value):
            yield from _leaves(each)
    elif isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _plain(text: str) -> str:
    return one_line(text, ignore_case=True)


def _edge(sign: str, *, before: bool) -> str:
    """Return the pattern that keeps a word from matching within another one."""
    if not sign.isalnum():
        return ""
    return r"(?<!\w)" if before else r"(?!\w)"


ADVICE = {
    "file": "Keep it out of the sandbox: in the row, in the template, or in a verifier's `files`.",
    "outside": "Keep it out of the sandbox: in the row, in the template, or in a verifier's "
    "`files`.",
    "hidden": "Leave it out of the page: the grader can read it from the row or from `state`.",
    "open": "Let the site answer without it: the grader can read it from the row or from `state`.",
}
"""The author's remedy, by the kind of a text."""

UNSEEN = frozenset(ADVICE)
"""Kinds of texts that no person sees."""


class Trail(Value):
    """The oracle's way through a task."""

    said: str = Field(default="", description="The actions.")
    saw: str = Field(default="", description="The texts that it saw.")


class Exposure:
    """The rules for values in places that no person sees.

    A task may have its agent find the answer: then the prompt or the oracle's way leads there, or
    the page shows it. A text that calls itself the answer is a leak.
    """

    def __init__(self, prompt: str, shown: Iterable[str], trail: Trail) -> None:
        self._prompt = prompt
        self._shown = list(shown)
        self._trail = trail

    def fails(self, candidate: Candidate, each: Seen) -> bool | None:
        """Whether a value may not be in a text; None if it is there by chance."""
        labelled = is_labelled(candidate, each.text, each.named, self._prompt)
        if not labelled and is_short(candidate.value):
            return None
        if not candidate.certain:
            return False
        if each.kind == "outside":  # the agent's task can hardly need it, unless something names it
            return not self._leads_to(each.named)
        if each.kind == "file":
            alone = each.text.strip() == candidate.text.strip()
            return (labelled or alone) and not self._leads_to(each.named)
        if any(occurs(candidate.value, text) for text in self._shown):  # a person sees it anyway
            return False
        # A text that the oracle saw is part of the task.
        return labelled or each.kind == "hidden" or not occurs(candidate.value, self._trail.saw)

    def _leads_to(self, path: str) -> bool:
        name = PurePosixPath(path).name
        return occurs(name, self._prompt) or occurs(name, self._trail.said)


_BAD = frozenset({"default", "schema", "metadata", "error"})
"""Kinds of texts that may hold no reference answer. A prompt or a site may well contain it."""

_ALONE = (": default", ": const")
"""The ends of the places of a single value; a list of choices has others."""

_MOST_PLACES = 3
"""The most places that are named of one value; the others are counted."""

_SHOWN_CHARS = 60
_TELLING_CHARS = 6
"""A text of so many characters stands in no error by chance."""


class Leak(Value):
    """A value that an agent can find."""

    value: str
    origin: str = Field(description="What it is, in words.")
    places: tuple[str, ...]
    fails: bool = Field(description="Whether it may not be there; else it is only a note.")
    advice: str = Field(default="", description="What to do, in words; or empty.")

    def __str__(self) -> str:
        """Return the leak as a sentence."""
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
    listed: Sequence[frozenset[str | int | float]],
    trail: Trail,
) -> list[Leak]:
    """Search all texts that an agent saw for values that it must not find.

    A choice that a schema lists among others is only a note. A file on the oracle's way is part of
    the task. Each value has at most one leak of the bad places, and one of the others.
    """
    texts = list(seen)
    shown = [prompt, *(each.text for each in texts if each.kind == "observation")]
    told = {line.strip() for text in shown for line in text.splitlines() if line.strip()}
    rest = [_without(each, told, prompt) for each in texts]
    exposure = Exposure(prompt, shown, trail)
    leaks: list[Leak] = []
    for candidate in _each_once(found):
        in_prompt = occurs(candidate.value, prompt)
        if in_prompt and not candidate.certain:  # the prompt tells it, so it need not stay hidden
            continue
        bad: dict[str, None] = {}
        advice: dict[str, None] = {}
        noted: dict[str, None] = {"the prompt": None} if in_prompt else {}
        shown_to = any(occurs(candidate.value, text) for text in shown)
        for each in rest:
            # A short value means something in an author's own text alone.
            if (is_short(candidate.value) and not each.own) or not occurs(
                candidate.value, each.text
            ):
                continue
            if each.kind in UNSEEN:
                fails = None if in_prompt else exposure.fails(candidate, each)
            else:
                fails = each.kind in _BAD and not in_prompt
                fails = fails and not (shown_to and each.place.startswith("the live page"))
                fails = fails and _is_bad(candidate, each, listed)
            if fails is None:
                continue
            if fails:
                advice.setdefault(ADVICE.get(each.kind, ""))
            (bad if fails else noted)[each.place] = None
        leaks += _leaks_of(candidate, bad, noted, " ".join(filter(None, advice)))
    return leaks


def _leaks_of(
    candidate: Candidate, bad: Iterable[str], noted: Iterable[str], advice: str
) -> Iterator[Leak]:
    for places, fails in ((tuple(bad), True), (tuple(noted), False)):
        if places:
            yield Leak(
                value=candidate.text, origin=candidate.origin, places=places,
                fails=fails, advice=advice if fails else "",
            )  # fmt: skip


def _each_once(found: Sequence[Candidate]) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for candidate in found:
        if candidate.text not in best or (candidate.certain and not best[candidate.text].certain):
            best[candidate.text] = candidate
    return list(best.values())


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
    return each.kind == "error" and telling and not candidate.told


def _without(each: Seen, told: set[str], prompt: str) -> Seen:
    """Return a text without the parts that the prompt and the world show anyway."""
    if each.kind == "observation" or each.kind in UNSEEN:
        return each
    text = each.text.replace(prompt, " ") if prompt else each.text
    lines = [line for line in text.splitlines() if line.strip() not in told]
    return each.model_copy(update={"text": "\n".join(lines)})
