"""The user of a row by a script: what its scenario tells, and what the reference actions agree to.

The script knows the scenario and the reference actions, and nothing of the policy. It tells who it
is and what it wants, agrees to each change that the reference makes once the agent names its
number, and leaves when all of these were agreed to. A user with tools does with them what the agent
names, be it in the reference or not. A model in its place reads the scenario alone.
"""

import re
from collections.abc import Mapping
from inspect import signature
from itertools import product
from typing import Any

from tau2_rows import Case, side_of

from hud_mcp import When

__all__ = ["GREETING", "WRITES", "first_person", "persona_of", "script_of", "wish_of"]

GREETING = "Hi! How can I help you today?"
"""The first words of each conversation, as the benchmark has them."""

ASKS = r"\b(what|which|provide|tell|give|share|need|have|confirm|verify|could|can|may|please)\b"
WHO = rf"{ASKS}[^.?!]*(e-?mail|zip|full name|your name|last name|user id|identity)"
NUMBER = rf"{ASKS}[^.?!]*(order|reservation|confirmation|booking)[^.?!]*(number|id|code)"
PAYMENT = rf"{ASKS}[^?]*(payment|refund|gift card|paypal|credit card)[^?]*\?"
REASON = r"\b(reason|why)\b[^?]*\?"
CONFIRM = r"\bconfirm|proceed|go ahead|\(yes|yes/no|shall i|should i|would you like me|correct\?"
CLOSING = r"anything else|further (help|assist)|something else|is that all|else i can"
TRANSFER = r"transferr(ed|ing)|human agent|please hold"

WRITES = re.compile(
    r"^(cancel|modify|return|exchange|book|update|send|create|refuel|enable|disable|resume|suspend)_"
)
LOOKS = re.compile(r"^(check|run|can)_")
HANDS = "Tell me by its name what I am to use on my side."
SHORT_WORD = 5
NUMBERS = re.compile(r"#W\d{7}\b|\b(?=[A-Z0-9]*\d)[A-Z0-9]{6}\b")
KEYS = ("order_id", "reservation_id", "task_id", "title", "user_id")
"""The arguments by which an agent names what it changes, the first one first."""

_PRONOUNS = (
    (r"\byou are\b", "I am"), (r"\byou're\b", "I'm"), (r"\byou were\b", "I was"),
    (r"\byou've\b", "I've"), (r"\byou'd\b", "I'd"), (r"\byou'll\b", "I'll"),
    (r"\byourself\b", "myself"), (r"\byours\b", "mine"), (r"\byour\b", "my"),
    (r"\b(to|for|with|of|from|at|let|gives?|tells?|asks?|charges?|refunds?) you\b", r"\1 me"),
    (r"\byou\b", "I"),
)  # fmt: skip


def first_person(text: str) -> str:
    """Turn what a user is told about itself into what it says of itself."""
    for pattern, words in _PRONOUNS:
        text = re.sub(pattern, words, text, flags=re.IGNORECASE)
    text = re.sub(r"(^|[.?!]\s+)([a-z])", lambda m: m[1] + m[2].upper(), text.strip())
    # Rules of a script put groups of patterns in place of names in braces.
    return " ".join(text.replace("{", "(").replace("}", ")").split())


def persona_of(case: Case) -> str:
    """The manner of the user, for a model."""
    return str(case.scenario.get("persona") or "")


def wish_of(case: Case) -> str:
    """All that the user is told of its aim, for a model."""
    told = case.instructions
    parts = (told.get("reason_for_call"), told.get("task_instructions"))
    return "\n".join(str(part) for part in parts if part)


def script_of(case: Case) -> tuple[When, ...]:
    """Return the rules of a row's user."""
    told = case.instructions
    wish = first_person(str(told.get("reason_for_call") or "I need help."))
    who = first_person(" ".join(str(told.get(n) or "") for n in ("known_info", "unknown_info")))
    numbers = list(dict.fromkeys(NUMBERS.findall(" ".join(map(str, told.values())))))
    number = f"It is {' and '.join(numbers)}." if numbers else "I do not have the number at hand."
    agreed = _agreements(case)
    deeds = _deeds(case, tuple(str(rule.slot) for rule in agreed))
    wanted = {str(rule.slot) for rule in agreed} | {_slot(step) for step in case.steps}
    slots = tuple(rule.slot for rule in (*agreed, *deeds) if rule.slot in wanted and rule.slot)
    return (
        When(rf"^{re.escape(GREETING)}$", say=wish, once=True),
        When(TRANSFER, say="Thank you.", ends=True),
        *agreed,
        *deeds,
        When(WHO, say=who or wish, slot="who"),
        When(CLOSING, say="No, that is all. Thank you.", after=slots, ends=True),
        When(CLOSING, say=f"Yes, this is not done yet. {wish}"),
        *_details(case),
        When(NUMBER, say=number),
        When(CONFIRM, say=f"Not that. {wish}"),
        When(say=f"{wish} {HANDS}" if any(case.names(name) for name, _ in _calls(case)) else wish),
    )


def _writes(case: Case) -> list[Mapping[str, Any]]:
    mine = [each for each in case.steps if side_of(each) != "user"]
    return [each for each in mine if WRITES.match(each["name"])]


def _agreements(case: Case) -> list[When]:
    """A rule for each number that the reference changes, or for the words of a call without one."""
    keys: dict[str, str] = {}
    for action in _writes(case):
        named = (action["arguments"].get(key) for key in KEYS)
        number = next((str(key) for key in named if key), None)
        words = "|".join(word for word in action["name"].split("_") if len(word) > SHORT_WORD)
        keys[number or action["name"]] = rf"{re.escape(number)}(?!\w)" if number else words
    return [
        When(
            rf"(?=.*({pattern})).*({CONFIRM})",
            say=f"Yes, please go ahead with {key}.".replace("{", "(").replace("}", ")"),
            slot=f"agreed {key}",
        )
        for key, pattern in keys.items()
    ]


def _deeds(case: Case, agreed: tuple[str, ...]) -> list[When]:
    """A rule for each call of the user's own.

    The user makes those that the policy names where the agent names them, with their arguments, and
    the others of the reference once it has agreed to all changes.
    """
    rules: list[When] = []
    names = [rule.__name__ for rule in case.domain.user_calls]
    for name, arguments in _calls(case):
        slot = _slot({"name": name, "arguments": arguments})
        calls = ((name, arguments),)
        if case.names(name):
            longer = [each.removeprefix(name) for each in names if each.startswith(f"{name}_")]
            end = rf"(?!{'|'.join(longer)})" if longer else ""
            given = "".join(rf"(?=.*{_loose(value)})" for value in arguments.values())
            pattern = given + r".*\b" + f"{name}{end}".replace("_", "[_ ]") + r"\b"
            rules.append(When(pattern, say="Done.", slot=slot, calls=calls))
        elif any(_slot(step) == slot for step in case.steps):
            rules.append(When(CLOSING, "One moment.", slot, agreed, once=True, calls=calls))
    return rules


def _calls(case: Case) -> list[tuple[str, dict[str, str]]]:
    """Each call of the user's tools with values that the row has for their arguments.

    Those that only look come last, so that they tell the state after the others.
    """
    known: dict[str, dict[str, None]] = {}
    for each in (*case.steps, *case.preparation):
        for name, value in each["arguments"].items():
            if isinstance(value, str):
                known.setdefault(name, {})[value] = None
    rules = {rule.__name__: [*signature(rule).parameters][1:] for rule in case.domain.user_calls}
    return [
        (call, dict(zip(names, values, strict=True)))
        for call, names in sorted(rules.items(), key=lambda each: bool(LOOKS.match(each[0])))
        for values in product(*(known.get(name, {}) for name in names))
    ]


def _slot(call: Mapping[str, Any]) -> str:
    return f"{call['name']} {sorted(call['arguments'].items())}"


def _loose(value: str) -> str:
    """Return the pattern of a value, whatever stands between its words."""
    return r"[\W_]*".join(map(re.escape, re.split(r"[\W_]+", value)))


def _details(case: Case) -> list[When]:
    """The user's words to questions for a way to pay, and for a reason."""
    rules: list[When] = []
    writes = [action["arguments"] for action in _writes(case)]
    names = ("payment_method_id", "payment_id")
    paid = dict.fromkeys(str(each[name]) for each in writes for name in names if each.get(name))
    if paid:
        kinds = [f"my {key.rpartition('_')[0].replace('_', ' ')} ({key})" for key in paid]
        rules.append(When(PAYMENT, say=f"Please use {' or '.join(kinds)}."))
    if reasons := list(dict.fromkeys(str(each["reason"]) for each in writes if each.get("reason"))):
        rules.append(When(REASON, say=f"It is {' or '.join(reasons)}."))
    return rules
