"""How mails, conversations and dates are written down, before they have ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from web_mail_cast import Person

__all__ = ["Story", "Thread", "letter", "long_day", "money", "plain_day"]


@dataclass(frozen=True)
class Thread:
    """A conversation: its mails in order of time.

    Attributes:
        key: What tasks call it; empty where none needs it. No state holds it.
        subject: Of all its mails.
        messages: What `letter` makes.
        folder: `inbox`, `archive`, `spam`, `trash`, `sent`, or one of the owner's.
        labels: The owner's.
        unread: Whether its last mail was not opened yet.
        bulk: Whether it comes from a list that one can unsubscribe from.
    """

    key: str
    subject: str
    messages: Sequence[dict[str, Any]]
    folder: str = "inbox"
    labels: tuple[str, ...] = ()
    unread: bool = False
    bulk: bool = False


@dataclass(frozen=True)
class Story:
    """Conversations that belong together, and what a task's grader knows of them."""

    threads: Sequence[Thread]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def letter(
    sender: Person,
    to: Sequence[Person],
    when: str,
    body: str,
    *,
    cc: Sequence[Person] = (),
    files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One mail; `files` are its attachments' texts by their names."""
    return {
        "from": _party(sender),
        "to": [_party(each) for each in to],
        "cc": [_party(each) for each in cc],
        "bcc": [],
        "date": when,
        "body": body.strip(),
        "attachments": [{"name": name, "text": text} for name, text in (files or {}).items()],
    }


def money(pence: int) -> str:
    """An amount as people write it: `£1,240.50`."""
    return f"£{pence // 100:,}.{pence % 100:02}"


def long_day(day: date) -> str:
    """A day with its weekday: `Tuesday 14 April`."""
    return f"{day:%A} {day.day} {day:%B}"


def plain_day(day: date) -> str:
    """A day without its weekday: `14 April 2026`."""
    return f"{day.day} {day:%B} {day.year}"


def _party(person: Person) -> dict[str, str]:
    return {"name": person.name, "email": person.email}
