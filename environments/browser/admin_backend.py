"""The support desk's server side: a login, tickets, customers, settings."""

import re
from datetime import date
from typing import Any

import anyio
from admin_data import AGENTS, LANGUAGES, PASSWORDS, PLANS, PRIORITIES, REGIONS, STATUSES, TOPICS

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["LIST_DELAY_S", "PAGE_SIZE", "admin_api"]

PAGE_SIZE = 10
LIST_DELAY_S = 0.3
"""How long the lists take to load: long enough to see that they are loading."""

_SWITCHES = ("digest", "auto_assign", "status_page", "weekend_cover", "two_step")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_CHOICES = {"status": STATUSES, "priority": PRIORITIES, "topic": TOPICS, "assignee": (*AGENTS, "")}
_OFFERED = {
    **{name: list(values) for name, values in _CHOICES.items()},
    "plan": PLANS,
    "regions": REGIONS,
    "language": LANGUAGES,
}


async def admin_api(path: str, request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer a request for what lies under `/api/admin/`.

    Args:
        path: What follows that prefix.
        request: The request.
        state: The session's state; `state["admin"]` is read and changed.
    """
    desk = state["admin"]
    given = request.json if isinstance(request.json, dict) else {}
    posted = request.method == "POST"
    if path == "login" and posted:
        return _log_in(desk, given)
    if desk["user"] is None:
        return SiteResponse(status=401, json={"error": "Log in first."})
    if posted:
        return _change(path, desk, given)
    return await _read(path, request.query, desk)


def _log_in(desk: dict[str, Any], given: dict[str, Any]) -> Any:
    name, password = str(given.get("user", "")).strip(), given.get("password")
    if name not in PASSWORDS or PASSWORDS[name] != password:
        return SiteResponse(status=403, json={"error": "Name or password is wrong."})
    desk["user"] = name
    return {"user": name}


async def _read(path: str, query: dict[str, str], desk: dict[str, Any]) -> Any:
    if path == "me":
        return {"user": desk["user"], "choices": _OFFERED}
    if path == "settings":
        return desk["settings"]
    if path in ("tickets", "customers"):
        await anyio.sleep(LIST_DELAY_S)
        return _list_rows(desk[path], query)
    kind, _, key = path.partition("/")
    return _find(desk, kind, key)


def _find(desk: dict[str, Any], kind: str, key: str) -> dict[str, Any] | None:
    if kind not in ("tickets", "customers"):
        return None
    return next((row for row in desk[kind] if row["id"] == key), None)


def _list_rows(rows: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    words = query.get("q", "").lower().split()
    kept = [r for r in rows if all(w in " ".join(map(str, r.values())).lower() for w in words)]
    for name in ("status", "topic", "priority", "plan", "country"):
        if wanted := query.get(name):
            kept = [r for r in kept if r.get(name) == wanted]
    if wanted := query.get("assignee"):
        kept = [r for r in kept if r.get("assignee") == ("" if wanted == "nobody" else wanted)]
    sort = query.get("sort", "id")
    if kept and sort in kept[0]:
        kept.sort(key=lambda r: _sort_key(sort, r[sort]), reverse=query.get("order") == "desc")
    asked = query.get("page", "1")
    pages = max(1, -(-len(kept) // PAGE_SIZE))
    page = min(max(int(asked) if asked.isdigit() else 1, 1), pages)
    shown = kept[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return {"rows": shown, "total": len(kept), "page": page, "pages": pages}


def _sort_key(column: str, value: Any) -> Any:
    order = {"priority": PRIORITIES, "status": STATUSES, "plan": PLANS}.get(column)
    return order.index(value) if order else value


def _change(path: str, desk: dict[str, Any], given: dict[str, Any]) -> Any:
    if path == "logout":
        desk["user"] = None
        return {"user": None}
    if path == "settings":
        return _save_settings(desk, given)
    if path == "tickets/bulk":
        return _bulk(desk, given)
    kind, _, key = path.partition("/")
    key, _, verb = key.partition("/")
    row = _find(desk, kind, key)
    change = {
        ("tickets", ""): _save_ticket,
        ("customers", ""): _save_customer,
        ("customers", "delete"): _delete_customer,
    }.get((kind, verb))
    return change(desk, row, given) if row and change else None


def _delete_customer(desk: dict[str, Any], row: dict[str, Any], _given: dict[str, Any]) -> Any:
    desk["customers"].remove(row)
    return {"deleted": row["id"]}


def _save_ticket(_desk: dict[str, Any], ticket: dict[str, Any], given: dict[str, Any]) -> Any:
    errors = {k: "Choose one of the list." for k in _CHOICES if given.get(k) not in _CHOICES[k]}
    if not str(given.get("subject") or "").strip():
        errors["subject"] = "Enter a subject."
    if given.get("status") == "Solved" and not str(given.get("note") or "").strip():
        errors["note"] = "Say how it was solved before you close the ticket."
    if errors:
        return _refuse(errors)
    for name in ("subject", "note"):
        ticket[name] = str(given.get(name) or "").strip()
    ticket.update({k: given[k] for k in _CHOICES})
    return ticket


def _bulk(desk: dict[str, Any], given: dict[str, Any]) -> Any:
    ids = given.get("ids")
    name, value = given.get("field"), given.get("value")
    rows = [t for t in desk["tickets"] if isinstance(ids, list) and t["id"] in ids]
    if not rows or name not in ("assignee", "priority", "status") or value not in _CHOICES[name]:
        return SiteResponse(status=422, json={"error": "Select tickets and what to change."})
    for row in rows:
        row[name] = value
    return {"changed": len(rows)}


def _save_customer(desk: dict[str, Any], row: dict[str, Any], given: dict[str, Any]) -> Any:
    form = {k: str(given.get(k) or "").strip() for k in row if k not in ("id", "spent")}
    errors = _customer_errors(form)
    taken = [c for c in desk["customers"] if c is not row and c["email"] == form["email"].lower()]
    if taken:
        errors["email"] = f"This address belongs to {taken[0]['name']} already."
    if errors:
        return _refuse(errors)
    row.update(form, email=form["email"].lower())
    return row


def _customer_errors(form: dict[str, str]) -> dict[str, str]:
    errors: dict[str, str] = {}
    if not form["name"]:
        errors["name"] = "Enter a name."
    if not _EMAIL.fullmatch(form["email"]):
        errors["email"] = "Enter an e-mail address such as name@example.org."
    if form["plan"] not in PLANS:
        errors["plan"] = "Choose a plan."
    if form["region"] not in REGIONS.get(form["country"], ()):
        errors["region"] = "Choose a region of this country."
    days = {k: _read_date(form[k]) for k in ("start", "end")}
    errors |= {k: "Write the date as YYYY-MM-DD." for k, day in days.items() if day is None}
    start, end = days["start"], days["end"]
    if start and end and end <= start:
        errors["end"] = "The contract ends after it starts."
    return errors


def _read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None
    except ValueError:
        return None


def _save_settings(desk: dict[str, Any], given: dict[str, Any]) -> Any:
    errors = {k: "This is on or off." for k in _SWITCHES if not isinstance(given.get(k), bool)}
    days = given.get("close_after")
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= 90:  # noqa: PLR2004
        errors["close_after"] = "Enter a number of days from 1 to 90."
    if given.get("reply_language") not in LANGUAGES:
        errors["reply_language"] = "Choose a language."
    if errors:
        return _refuse(errors)
    desk["settings"] = {k: given[k] for k in (*_SWITCHES, "close_after", "reply_language")}
    return desk["settings"]


def _refuse(fields: dict[str, str]) -> SiteResponse:
    return SiteResponse(status=422, json={"error": "Please check the form.", "fields": fields})
