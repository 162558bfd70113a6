"""What is on the project board: cards in four columns, and what has been done to them."""

from datetime import date, timedelta
from typing import Any

from site_day import TODAY

__all__ = ["COLUMNS", "LABELS", "PEOPLE", "new_board"]

COLUMNS = ("Ideas", "Doing", "Review", "Done")
LABELS = ("Code", "Design", "Docs", "Ops")
PEOPLE = ("Amal", "Bente", "Chidi", "Dora", "Emre", "Freya")

_CARDS = """
Ideas|Dark colours for the map|Design|Bente|
Ideas|Print tickets on A6|Code||2026-06-12
Ideas|Glossary for new helpers|Docs|Freya|
Ideas|Second backup site|Ops||
Doing|Faster photo upload|Code|Amal|2026-05-08
Doing|Redraw the island icons|Design|Dora|2026-05-15
Doing|Move mail to the new host|Ops|Emre|
Review|Timetable for holidays|Docs|Chidi|2026-05-06
Review|Fix the tide table|Code|Bente|
Done|Welcome page in Danish|Docs|Freya|2026-04-20
Done|Renew the certificates|Ops|Emre|2026-04-28
"""

_PAST = (
    "Harbour webcam",
    "Lost and found form",
    "Season ticket prices",
    "Map of cycle racks",
    "Crew rota export",
    "Newsletter archive",
    "Wind warning banner",
    "Group booking page",
    "Lighthouse open day",
    "Bus connections",
    "Photo credits",
    "Kiosk opening hours",
    "Accessible routes",
)
_VERBS = ("moved", "commented on", "renamed", "archived", "assigned", "labelled")


def new_board() -> dict[str, Any]:
    """The board as a session finds it."""
    cards = [_card(n, row) for n, row in enumerate(_CARDS.strip().splitlines(), 1)]
    return {"cards": cards, "next": len(cards) + 1, "activity": _activity()}


def _card(n: int, row: str) -> dict[str, Any]:
    column, title, label, owner, due = row.split("|")
    return {
        "id": f"K{n}",
        "column": column,
        "title": title,
        "label": label,
        "owner": owner,
        "due": due,
    }


def _activity() -> list[dict[str, str]]:
    """Ten dozen entries, newest first; no card of the past was archived twice."""
    entries: list[dict[str, str]] = []
    archived: set[str] = set()
    for n in range(120):
        card = _PAST[(n * 5 + n // 13) % len(_PAST)]
        verb = _VERBS[(n * 7 + n // 6) % len(_VERBS)]
        if verb == "archived" and (card in archived or n < 20):  # noqa: PLR2004  # the first page
            verb = "commented on"
        if verb == "archived":
            archived.add(card)
        day = date.fromisoformat(TODAY) - timedelta(days=n // 3 + 1)
        who = PEOPLE[(n * 11 + n // 5) % len(PEOPLE)]
        entries.append({"who": who, "verb": verb, "card": card, "day": day.isoformat()})
    return entries
