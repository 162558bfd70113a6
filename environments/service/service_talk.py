"""Cases of a desk: a user by a script, what is right in the end, and the solution's steps."""

import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from service_desk import Row, Rule, Tables, money

from hud_mcp import Agent, User, When

__all__ = [
    "CLOSING", "CONFIRM", "Case", "Do", "Event", "agree", "amount", "asked", "euros", "finds",
    "is_by_script", "script_of", "solve", "spelled", "user_of",
]  # fmt: skip

ASKS = (
    r"\b(what|which|provide|tell|give|share|need|have|confirm|verify|could|can|may|please|would|"
    r"when|where|how)\b"
)
CONFIRM = (
    r"(\bconfirm|proceed|go ahead|\(yes|shall i|should i|may i|can i|would you like|"
    r"do you want|do you agree|is (that|this) (ok|okay|fine|right|all right|correct)|sounds? good|"
    r"(all right|okay|ok|works?) (with|for) you|(like|want) me to|correct\?|"
    r"your (permission|consent)|yes\W{0,3}(/|or)\W{0,3}no\b|(reply|answer|say|type) \W?yes\b)"
)
CLOSING = (
    r"anything (else|more)|further (help|assist|question)|other (question|request)|something else|"
    r"is that all|else (that )?i can"
)
LAST = "No, that is all. Thank you, goodbye."
CLOSE = "Is there anything else that I can do for you?"
FEW_AMOUNTS = r"\A(?!(?:.*?\d[.,]\d\d\b){6})"
"""A message that lists amounts asks for nothing in particular."""


@dataclass(frozen=True)
class Do:
    """A call of a tool."""

    name: str
    arguments: Row


@dataclass(frozen=True)
class Event:
    """A change of the tables while the agent works, after these words of the user."""

    words: str
    change: Callable[[Tables], Any]
    note: str


@dataclass(frozen=True)
class Case:
    """One user's case.

    Attributes:
        tables: The tables as it begins; each session has a copy.
        goal: The user's aim, and what it knows.
        script: The user's rules.
        plan: The solution: words for the user, and calls. Its changes are the right ones.
        identity: The words by which the user says who it is; empty where nobody needs to ask.
        agreed: The tools that change something, each with the user's words that agree to it.
        told: Patterns of what the user must hear, by name.
        secrets: Patterns of what the user must not hear.
        event: The change under way.
    """

    tables: Tables
    goal: str
    script: tuple[When, ...]
    plan: tuple[str | Do, ...]
    identity: str = ""
    agreed: Mapping[str, str] = field(default_factory=dict[str, str])
    told: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: tuple[str, ...] = ()
    event: Event | None = None

    def begin(self) -> Tables:
        """Return the tables as the case begins."""
        return deepcopy(self.tables)

    def end(self, writes: Mapping[str, Rule]) -> Tables:
        """Return the tables as they have to be in the end."""
        tables = self.begin()
        if self.event is not None:
            self.event.change(tables)
        for step in self.plan:
            if isinstance(step, Do) and step.name in writes:
                writes[step.name](tables, **step.arguments)
        return tables


def user_of(case: Case) -> User:
    """Return the user of a case."""
    return User(goal=case.goal, script=case.script)


def amount(cents: int) -> str:
    """Return a pattern that finds an amount, in its usual forms."""
    whole, rest = divmod(abs(cents), 100)
    part = rf"[.,]{rest:02}" if rest else r"([.,]00)?(?![.,]\d)"
    return rf"(?<![\d.,]){whole}{part}(?!\d)"


def spelled(day: str) -> str:
    """Return a pattern that finds a day, in its usual forms."""
    found = date.fromisoformat(day)
    month, number = found.strftime("%B"), rf"(?<!\d)0?{found.day}"
    return (
        rf"{day}|{number}(st|nd|rd|th|\.)?( of)? {month}|{month} 0?{found.day}(?!\d)|"
        rf"{number}[./]0?{found.month}(?!\d)"
    )


def asked(words: str) -> str:
    """Return a pattern of a question for something, within one sentence."""
    return rf"{ASKS}[^.?!]*({words})"


def agree(keys: str | Iterable[str], say: str, slot: str = "agreed", *, after: str = "") -> When:
    """Return a rule that agrees to a question which names what is to be done."""
    each = [keys] if isinstance(keys, str) else keys
    found = "".join(f"(?=.*({key}))" for key in each)
    before = (after,) if after else ()
    return When(rf"{FEW_AMOUNTS}{found}(?=.*{CONFIRM})", say=say, slot=slot, after=before)


def script_of(
    *rules: When,
    wish: str,
    who: tuple[str, str],
    needs: tuple[str, ...] = ("agreed",),
    then: tuple[tuple[str, str], ...] = (),
) -> tuple[When, ...]:
    """Return a user's rules.

    Args:
        rules: What it answers in this case; these come first.
        wish: Its first words, and what it says where nothing else fits.
        who: A pattern of the question who it is, and the answer.
        needs: The slots that it must have said before it leaves.
        then: Further wishes, each with the slot after which it comes up, at a question for
            anything else.
    """
    later = [
        When(CLOSING, say=words, slot=f"wish {i}", after=slot, once=True)
        for i, (slot, words) in enumerate(then)
    ]
    wishes = tuple(f"wish {i}" for i in range(len(then)))
    return (
        *rules,
        When(who[0], say=who[1], slot="who"),
        *later,
        When(CLOSING, say=LAST, after=(*needs, *wishes), ends=True),
        When(CLOSING, say=f"Yes, we are not done yet. {wish}"),
        When(r"\btransfer|\bput(ting)? you through\b", say="All right, thank you."),
        When(CONFIRM, say=f"I am not sure about that. {wish}"),
        When(say="All right.", after=(*needs, *wishes)),
        When(say=wish),
    )


async def solve(agent: Agent, plan: Iterable[str | Do]) -> str:
    """Do the steps of a solution, and take leave."""
    for step in (*plan, CLOSE):
        if isinstance(step, Do):
            await agent.tool(step.name, **step.arguments)
            continue
        await agent.say(step)
        if agent.answered:
            return ""
    return "done"


def euros(cents: int) -> float:
    """Return an amount as a tool takes it."""
    return float(money(cents))


def is_by_script(case: Case, words: str) -> bool:
    """Whether words of the user are its script's, and not those of a person in its place."""
    for say in sorted({rule.say for rule in case.script}, key=len, reverse=True):
        words = words.replace(say, "")
    return not words.strip()


def finds(pattern: str, texts: Iterable[str]) -> bool:
    """Whether a pattern is in one of several texts, in any case."""
    found = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return any(found.search(text) for text in texts)
