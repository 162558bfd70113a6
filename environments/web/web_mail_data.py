"""The mailbox of a seed: its state, and what its tasks know of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from web_mail_book import list_contacts, new_settings, tell_drafts
from web_mail_cast import Cast, draw_cast
from web_mail_letters import Story, Thread
from web_mail_meetings import tell_leave, tell_offsite, tell_plan, tell_review
from web_mail_money import tell_expenses, tell_invoices, tell_offer, tell_order, tell_receipts
from web_mail_senders import tell_bank, tell_boss, tell_monitor, tell_newsletters
from web_mail_talk import tell_talk

__all__ = ["FOLDERS", "LABELS", "Mailbox", "new_mailbox"]

FOLDERS = ("Projects", "Receipts")
LABELS = ("Clients", "Finance", "Reports", "Team", "Travel")

_STORIES = {
    "invoices": tell_invoices,
    "offer": tell_offer,
    "expenses": tell_expenses,
    "receipts": tell_receipts,
    "order": tell_order,
    "plan": tell_plan,
    "offsite": tell_offsite,
    "review": tell_review,
    "leave": tell_leave,
    "monitor": tell_monitor,
    "bank": tell_bank,
    "boss": tell_boss,
    "newsletters": tell_newsletters,
}


@dataclass(frozen=True)
class Mailbox:
    """What a seed gives.

    Attributes:
        cast: Everybody in it.
        state: The site's state, as a session finds it.
        facts: What a story's tasks ask and expect, by the story's name. No state holds it.
        ids: The conversations' ids, by what tasks call them.
    """

    cast: Cast
    state: dict[str, Any]
    facts: Mapping[str, Mapping[str, Any]]
    ids: Mapping[str, str]


def new_mailbox(seed: int) -> Mailbox:
    """Draw the mailbox of a seed."""
    cast = draw_cast(seed)
    stories: dict[str, Story] = {name: tell(cast) for name, tell in _STORIES.items()}
    stories["drafts"], drafts = tell_drafts(cast)
    contacts, known = list_contacts(cast)
    threads = [thread for story in stories.values() for thread in story.threads]
    threads += tell_talk(cast)
    threads.sort(key=lambda thread: (thread.messages[0]["date"], thread.subject))
    rows, ids = _number(threads)
    state = {
        "today": str(cast.today),
        "user": {"name": cast.me.name, "email": cast.me.email},
        "folders": list(FOLDERS),
        "labels": list(LABELS),
        "threads": rows,
        "unread": [row["id"] for row, t in zip(rows, threads, strict=True) if t.unread],
        "drafts": drafts,
        "contacts": contacts,
        "filters": [_first_filter(cast)],
        "settings": new_settings(cast),
        "unsubscribed": [],
        "files": _files(cast),
        "undo": None,
        "next": 1000,
    }
    facts = {name: story.facts for name, story in stories.items()}
    return Mailbox(cast, state, {**facts, "contacts": known}, ids)


def _number(threads: list[Thread]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Give ids to conversations, mails and attachments, in order of time."""
    rows: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    mails = files = 0
    for number, thread in enumerate(threads, 1):
        key = f"T{number}"
        if thread.key:
            ids[thread.key] = key
        messages: list[dict[str, Any]] = []
        for message in thread.messages:
            mails += 1
            listed: list[dict[str, Any]] = []
            for each in message["attachments"]:
                files += 1
                listed.append({"id": f"A{files}", **each})
            messages.append({"id": f"M{mails}", **message, "attachments": listed})
        rows.append(
            {
                "id": key,
                "subject": thread.subject,
                "folder": thread.folder,
                "labels": list(thread.labels),
                "starred": False,
                "snoozed": "",
                "bulk": thread.bulk,
                "messages": messages,
            }
        )
    return rows, ids


def _first_filter(cast: Cast) -> dict[str, Any]:
    firm = cast.firms[7]
    return {
        "id": "F1",
        "from": firm.person.email,
        "to": "",
        "subject": "",
        "words": "",
        "has_attachment": False,
        "label": "Clients",
        "move": "",
        "archive": False,
        "read": False,
        "star": False,
    }


def _files(cast: Cast) -> list[dict[str, Any]]:
    """What the owner keeps at hand to attach."""
    price = cast.draw("files").randint(40, 90)
    return [
        {
            "id": "A901",
            "name": "directions.txt",
            "text": "From the station: bus 4 to the market, then two minutes on foot.\n",
        },
        {
            "id": "A902",
            "name": "rates.csv",
            "text": f"Service,Hour\nDrawing,{price}\nPrinting,{price - 12}\n",
        },
        {
            "id": "A903",
            "name": "logo-note.txt",
            "text": "Use the dark logo on pale paper, and the pale one on dark paper.\n",
        },
    ]
