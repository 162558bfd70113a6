"""What a task wants, and the grade: the database in the end, and what was said and when."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from statistics import fmean
from typing import Any, Literal

from office_customer import Persona
from office_deeds import perform
from office_speech import (
    dates_in,
    has_day,
    has_name,
    ids_in,
    money_in,
    points_in,
    times_in,
)
from office_tables import copy_of, read_tables
from office_world import OfficeWorld

from hud_mcp import Grade, SubScore

__all__ = ["Case", "Consent", "Fact", "grade_case"]

Kind = Literal["money", "day", "time", "points", "name", "id"]

_READ: dict[str, tuple[Callable[[str], set[Any]], int]] = {
    "money": (money_in, 12),
    "day": (dates_in, 10),
    "time": (times_in, 8),
    "points": (points_in, 8),
    "id": (ids_in, 12),
}
"""How many different values of a kind a desk may name; whoever names more does not know it."""


@dataclass(frozen=True)
class Fact:
    """Something that is told, or must not be.

    Attributes:
        kind: How it is recognised.
        value: Cents, a day as `2025-03-14`, a time as `16:30`, a number, or a text.
    """

    kind: Kind
    value: int | str

    def is_in(self, text: str) -> bool:
        """Whether a message has it, in a usual form."""
        match self.kind:
            case "day":
                return has_day(text, date.fromisoformat(str(self.value)))
            case "name":
                return has_name(text, str(self.value))
            case kind:
                return self.value in _READ[kind][0](text)

    def is_guessed(self, messages: list[str]) -> bool:
        """Whether so many values of its kind were named that one of them had to be right."""
        if self.kind not in _READ:
            return False
        read, most = _READ[self.kind]
        return len({value for message in messages for value in read(message)}) > most


@dataclass(frozen=True, kw_only=True)
class Consent:
    """A yes that the policy demands before some changes.

    Attributes:
        offer: What the customer says yes to.
        facts: What the question tells.
        deeds: The tools that need it.
    """

    offer: str
    facts: tuple[Fact, ...]
    deeds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One customer's case.

    Attributes:
        persona: The customer.
        deeds: What is right to do, in order: tools of `office_deeds`, with their arguments.
        told: What the customer has to be told, by a name for it.
        consents: What they have to agree to first.
        secrets: What must not be said.
        proof: The topics of which one has to be asked before all else.
        refuses: Whether the desk has to refuse something.
    """

    persona: Persona
    deeds: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    told: dict[str, Fact] = field(default_factory=dict)
    consents: tuple[Consent, ...] = ()
    secrets: tuple[Fact, ...] = ()
    proof: tuple[str, ...] = ("email",)
    refuses: bool = False


def grade_case(office: OfficeWorld, case: Case) -> Grade:
    """Grade a session: what the policy wants was done, told, and asked for before.

    What was said counts as far as it is true of the database: who only claims gets nothing.
    """
    messages = [said for said, _, _ in office.messages]
    done, extra = compare(office, case)
    checks = {f"told: {name}": _is_told(fact, messages) for name, fact in case.told.items()}
    checks |= {f"agreed: {each.offer}": _was_agreed(office, each) for each in case.consents}
    if case.refuses:
        checks["refused"] = any("refused" in marks for _, _, marks in office.messages)
    earned = done if case.deeds else fmean(map(float, checks.values()))
    if case.proof:
        checks["identity asked first"] = _was_proven(office, case)
    values = {name: float(value) * earned for name, value in checks.items()}
    if case.deeds:
        values = {"database": done, **values}
    wrong = [*extra]
    wrong += ["what had to stay secret" for each in case.secrets if _is_said(each, messages)]
    return _grade(values, wrong)


def compare(office: OfficeWorld, case: Case) -> tuple[float, list[str]]:
    """How much of what was wanted stands in the database, and which tables have more than that."""
    before = read_tables(copy_of(office.opening))
    wanted = copy_of(office.opening)
    for tool, args in case.deeds:
        perform(wanted, tool, args)
    goal, now = read_tables(wanted), read_tables(office.db)
    changes = _difference(before, goal)
    made = _difference(before, now)
    share = sum((changes & made).values()) / max(1, sum(changes.values()))
    extra = made - changes
    return share, sorted({str(row[0]) for _, row in extra})


def _difference(
    old: Counter[tuple[object, ...]], new: Counter[tuple[object, ...]]
) -> Counter[tuple[str, tuple[object, ...]]]:
    """The rows that are gone, and those that are there for the first time."""
    gone = Counter({("gone", row): count for row, count in (old - new).items()})
    return gone + Counter({("new", row): count for row, count in (new - old).items()})


def _grade(values: dict[str, float], wrong: list[str]) -> Grade:
    share = fmean(values.values())
    parts = [
        SubScore(name=name, value=value, weight=1 / len(values)) for name, value in values.items()
    ]
    if wrong:
        parts.append(SubScore(name="more than was right", value=1, weight=-share / 2))
    missing = [name for name, value in values.items() if value < 1]
    text = f"Not as the policy wants: {', '.join(missing)}" if missing else "All is as it should be"
    text += f"; more than was right: {', '.join(wrong[:3])}." if wrong else "."
    reward = share / 2 if wrong else share
    return Grade(reward=reward, subscores=tuple(parts), content=text)


def _is_said(fact: Fact, messages: list[str]) -> bool:
    return any(fact.is_in(message) for message in messages)


def _is_told(fact: Fact, messages: list[str]) -> bool:
    return _is_said(fact, messages) and not fact.is_guessed(messages)


def _deeds(db: sqlite3.Connection) -> list[tuple[str, int]]:
    rows = db.execute("SELECT tool, messages FROM deeds ORDER BY rowid").fetchall()
    return [(row["tool"], row["messages"]) for row in rows]


def _was_agreed(office: OfficeWorld, consent: Consent) -> bool:
    """Whether the customer said yes to the right thing before each change that needs it."""
    messages = [said for said, _, _ in office.messages]
    yes = [
        number
        for number, (said, _, marks) in enumerate(office.messages, 1)
        if f"yes:{consent.offer}" in marks and all(fact.is_in(said) for fact in consent.facts)
    ]
    done = [number for tool, number in _deeds(office.db) if tool in consent.deeds]
    guessed = any(fact.is_guessed(messages) for fact in consent.facts)
    return bool(yes) and bool(done) and min(done) >= min(yes) and not guessed


def _was_proven(office: OfficeWorld, case: Case) -> bool:
    """Whether the customer had said who they are before anything was changed or told."""
    marks = {f"told:{topic}" for topic in case.proof}
    asked = [n for n, (_, _, each) in enumerate(office.messages, 1) if marks & set(each)]
    changed = [number for tool, number in _deeds(office.db) if tool != "write_note"]
    told = [
        number - 1
        for number, (said, _, _) in enumerate(office.messages, 1)
        if any(fact.is_in(said) for fact in case.told.values())
    ]
    return bool(asked) and min(asked) <= min([*changed, *told], default=len(office.messages))
