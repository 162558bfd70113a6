"""The user of a row by a script: what its scenario tells, and what the reference actions agree to.

The script knows the scenario and the reference actions, and nothing of the policy. It tells who it
is and what it wants, agrees to each change that the reference makes once the agent names its
number, and leaves when all of these were agreed to. A model in its place reads the scenario alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from tau2_rows import Case

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

WRITES = re.compile(r"^(cancel|modify|return|exchange|book|update|send|create)_")
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
    slots = tuple(rule.slot for rule in agreed if rule.slot)
    return (
        When(rf"^{re.escape(GREETING)}$", say=wish, once=True),
        When(TRANSFER, say="Thank you.", ends=True),
        *agreed,
        When(WHO, say=who or wish, slot="who"),
        When(CLOSING, say="No, that is all. Thank you.", after=slots, ends=True),
        When(CLOSING, say=f"Yes, this is not done yet. {wish}"),
        *_details(case),
        When(NUMBER, say=number),
        When(CONFIRM, say=f"Not that. {wish}"),
        When(say=wish),
    )


def _writes(case: Case) -> list[Mapping[str, Any]]:
    mine = [each for each in case.actions if (each.get("requestor") or "assistant") != "user"]
    return [each for each in mine if WRITES.match(each["name"])]


def _agreements(case: Case) -> list[When]:
    """A rule for each number that the reference actions change."""
    keys: dict[str, None] = {}
    for action in _writes(case):
        named = (action["arguments"].get(key) for key in KEYS)
        keys.setdefault(str(next((key for key in named if key), action["name"])))
    return [
        When(
            rf"(?=.*{re.escape(key)}(?!\w)).*({CONFIRM})",
            say=f"Yes, please go ahead with {key}.".replace("{", "(").replace("}", ")"),
            slot=f"agreed {key}",
        )
        for key in keys
    ]


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
