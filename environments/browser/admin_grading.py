"""What the desk's tasks expect of its state at their end."""

from datetime import date, timedelta
from typing import Any

from site_grading import Before

from hud_mcp import Grade, grade_checks

__all__ = [
    "differing",
    "find_row",
    "grade_fields",
    "grade_rows",
    "owner_of",
    "renewed",
    "unassigned",
]


def find_row(rows: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The ticket or customer of a number or a name.

    Raises:
        ValueError: There is none.
    """
    found = next((row for row in rows if key in (row["id"], row.get("name"))), None)
    if found is None:
        raise ValueError(f"there is no {key!r} at the desk")
    return found


def owner_of(customers: list[dict[str, Any]], email: str, *, beside: str) -> str:
    """The name of the customer that has an address.

    Raises:
        ValueError: It is the customer `beside`, to whom it cannot be given.
    """
    name = next(c["name"] for c in customers if c["email"] == email)
    if name == beside:
        raise ValueError(f"{email} is the address of {beside} itself")
    return str(name)


def differing(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The fields that are not as wanted yet: what a task asks for, and is graded on.

    Raises:
        ValueError: All are so already, so there is nothing to do.
    """
    found = {name: value for name, value in wanted.items() if row[name] != value}
    if not found:
        raise ValueError(f"everything is as asked already: {wanted}")
    return found


def grade_fields(before: Before, path: str, row: dict[str, Any], wanted: dict[str, Any]) -> Grade:
    """Grade the fields of one row or of the settings; nothing else may differ."""
    checks = {name: row.get(name) == value for name, value in wanted.items()}
    return grade_checks(checks, before.changes(beside=[f"{path}.{name}" for name in wanted]))


def grade_rows(
    before: Before, tickets: list[dict[str, Any]], ids: list[str], field: str, value: str
) -> Grade:
    """Grade how many of some tickets have a value now; no other may have changed."""
    rows = [find_row(tickets, key) for key in ids]
    share = sum(row[field] == value for row in rows) / len(rows)
    effects = before.changes(beside=[f"admin.tickets.{key}.{field}" for key in ids])
    return grade_checks({f"{field} of {len(ids)} tickets": share}, effects)


def unassigned(tickets: list[dict[str, Any]], topic: str) -> list[str]:
    """The open tickets of a topic, or of any, that nobody has.

    Raises:
        ValueError: There is none.
    """
    ids = [
        t["id"]
        for t in tickets
        if t["status"] == "Open" and not t["assignee"] and topic in ("Any", t["topic"])
    ]
    if not ids:
        raise ValueError(f"no open ticket of the topic {topic} is unassigned")
    return ids


def renewed(end: str, years: int) -> dict[str, str]:
    """The contract that follows one that ends on a day: from the next day, for some years."""
    first = date.fromisoformat(end) + timedelta(days=1)
    last = first.replace(year=first.year + years) - timedelta(days=1)
    return {"start": first.isoformat(), "end": last.isoformat()}
