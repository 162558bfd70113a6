"""What of a task no agent may read: its reference answers, and arguments that no prompt tells."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from hud_mcp.environment import Environment
from hud_mcp.environment.answers import ANSWER_FUNCTIONS
from hud_mcp.environment.task import Task
from hud_mcp.graders.visible import one_line

__all__ = ["Candidate", "candidates", "choices", "is_labelled", "is_short", "occurs"]

_ANSWER_NAME = re.compile(
    r"(^|_)(answers?|expect(ed|s)?|gold(en)?|solutions?|targets?|truth|references?|correct|secrets?|"
    r"hidden|wanted|passwords?)(_|$)",
    re.IGNORECASE,
)
"""Names that say of a value that it is what an answer is held to."""

_DESCRIBING = frozenset(
    {"difficulty", "steps", "skills", "split", "context", "base_task", "twin", "hud", "source"}
)
"""Metadata that describes a row; a set shows it anywhere."""

_SHORT = 4
"""A value of fewer characters than this is found anywhere by chance; a number always is one."""

_LABEL_CHARS = 40
"""A label stands so closely before what it names."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
"""A text that is a number is searched for as one."""

_ANSWERS = frozenset(function.name for function in ANSWER_FUNCTIONS)


@dataclass(frozen=True)
class Candidate:
    """A value that an agent should not find, but in the prompt.

    Attributes:
        value: A text or a number.
        name: Where it stands, in short: `letter`, `target`.
        origin: The same in words.
        argument: The argument of the template that it is, or None.
        by_default: Whether the argument has it by default, and the row does not say it.
        certain: Whether it is surely what an answer is held to.
        may_answer: Whether it is worth trying as the answer.
    """

    value: str | int | float
    name: str
    origin: str
    argument: str | None = None
    by_default: bool = False
    certain: bool = False
    may_answer: bool = True

    @property
    def text(self) -> str:
        """It as an answer."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value)

    def proven(self, why: str) -> "Candidate":
        """It, once it is known to be an answer."""
        return replace(self, certain=True, origin=f"{self.origin}, {why}")


def candidates(task: Task, environment: Environment) -> list[Candidate]:
    """Every value of a task that may have to stay hidden, in order.

    Args:
        task: It fits its environment.
        environment: Its own.
    """
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
    """The values among which each argument of a server's templates is chosen: a list tells none."""
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
            nodes += cast("Mapping[str, Any]", node).values()
        elif isinstance(node, list):
            nodes += cast("list[Any]", node)
    return [group for group in found if len(group) > 1]


def occurs(value: str | float, text: str) -> bool:
    """Whether a text has a value in it as a word or a number of its own, however it is escaped."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value.strip()):
        number = value.strip() if isinstance(value, str) else json.dumps(value)
        number = re.escape(number.removesuffix(".0")) + r"(?:\.0+)?"
        return bool(re.search(rf"(?<![\w.]){number}(?!\w|\.\d)", text.replace(",", "")))
    wanted = _plain(value)
    if not wanted:
        return False
    plain = _plain(text)
    escaped = (json.dumps(value, ensure_ascii=only)[1:-1] for only in (True, False))
    forms = {wanted, _plain(_html(value)), *map(_plain, escaped)}
    return any(
        form in plain and re.search(_edge(form[0], before=True) + re.escape(form)
                                    + _edge(form[-1], before=False), plain)
        for form in forms
    )  # fmt: skip


def is_short(value: str | float) -> bool:
    """Whether a value is found in any text by chance."""
    if not isinstance(value, str):
        return True
    return len(value.strip()) < _SHORT or bool(_NUMBER.fullmatch(value.strip()))


def is_labelled(candidate: Candidate, text: str, named: str, prompt: str) -> bool:
    """Whether a text says of a value that it is an answer, in words that its prompt has not.

    Args:
        candidate: The value.
        text: Where it is found.
        named: What the author calls that text.
        prompt: The task's; what it asks for by such a word is the task.
    """
    before = text[: max(0, text.lower().find(candidate.text.lower()))][-_LABEL_CHARS:]
    before = before.rpartition("\n")[2]
    asked = _words(prompt)
    return any(_ANSWER_NAME.search(word) for word in _words(f"{named} {before}") - asked)


def _words(text: str) -> set[str]:
    """The words of a text or of a name, which may be joined by case or by hyphens."""
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
                continue  # every value that it can have is told anyway
            yield Candidate(leaf, name, origin, name, by_default=by_default, certain=certain)


def _of_metadata(task: Task) -> Iterator[Candidate]:
    for name, value in task.metadata.items():
        if name in _DESCRIBING or "/" in name:
            continue
        certain = bool(_ANSWER_NAME.search(name))
        for leaf in _leaves(value):
            yield Candidate(
                leaf, name, f"`{name}` of the row's metadata", certain=certain, may_answer=certain
            )


def _leaves(value: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a JSON value; true, false, null and empty texts are none."""
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


def _html(text: str) -> str:
    return html.escape(text)


def _edge(sign: str, *, before: bool) -> str:
    """What keeps a word from being found within another one."""
    if not sign.isalnum():
        return ""
    return r"(?<!\w)" if before else r"(?!\w)"
