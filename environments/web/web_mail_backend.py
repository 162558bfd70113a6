"""The mail client's server side: what it shows, and where each change goes."""

from collections.abc import Callable
from typing import Any

from web_mail_book_changes import change_contacts
from web_mail_changes import act_on_threads, change_filters, change_settings, mark_read, unsubscribe
from web_mail_search import BadSearch, find_threads, is_shown_in, matches_filter
from web_mail_sending import change_drafts, send, undo_send

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["PAGE_SIZE", "mail_api"]

PAGE_SIZE = 15
_COUNTED = ("inbox", "starred", "snoozed", "sent", "archive", "spam", "trash")
_CONDITIONS = ("from", "to", "subject", "words")

Row = dict[str, Any]


async def mail_api(path: str, request: SiteRequest, box: Row) -> Any:
    """Answer a request for what lies under `/api/mail/`.

    Args:
        path: What follows that prefix.
        request: The request.
        box: The mailbox; it is read and changed.
    """
    try:
        if request.method == "POST":
            if not isinstance(request.json, dict):
                return _refuse("Send an object.")
            return _change(path, box, request.json)
        return _read(path, request.query, box)
    except BadSearch as exc:
        return _refuse(str(exc))


def _change(path: str, box: Row, given: Row) -> Any:
    kind, _, rest = path.partition("/")
    changes: dict[str, Callable[[Row, str, Row], Any]] = {
        "read": mark_read,
        "act": act_on_threads,
        "drafts": change_drafts,
        "send": send,
        "undo": undo_send,
        "contacts": change_contacts,
        "filters": change_filters,
        "settings": change_settings,
        "unsubscribe": unsubscribe,
    }
    change = changes.get(kind)
    if change is None:
        return None
    done = change(box, rest, given)
    return _refuse(done) if isinstance(done, str) else done


def _read(path: str, query: Row, box: Row) -> Any:
    kind, _, key = path.partition("/")
    if kind == "threads" and key:
        return _open_thread(box, key)
    if kind == "attachments":
        return next((each for each in _all_files(box) if each["id"] == key), None)
    if kind == "threads":
        return _list_threads(box, query)
    if path == "contacts":
        words = query.get("q", "").lower()
        kept = [c for c in box["contacts"] if words in _words_of(c)]
        return {"rows": sorted(kept, key=lambda c: (c["name"], c["id"]))}
    if path == "filters/preview":
        rule = {name: query.get(name, "") for name in _CONDITIONS}
        rule["has_attachment"] = query.get("has_attachment") == "1"
        return {"count": sum(matches_filter(rule, t) for t in box["threads"])}
    shown = {
        "me": _overview,
        "drafts": lambda b: {"rows": sorted(b["drafts"], key=lambda d: d["date"], reverse=True)},
        "filters": lambda b: {"rows": b["filters"]},
        "settings": lambda b: b["settings"],
        "files": lambda b: {"rows": [_without_text(each) for each in b["files"]]},
    }.get(path)
    return shown(box) if shown else None


def _overview(box: Row) -> Row:
    me = box["user"]["email"]
    counts: Row = {"drafts": {"total": len(box["drafts"]), "unread": 0}}
    for folder in (*_COUNTED, *box["folders"]):
        inside = [t["id"] for t in box["threads"] if is_shown_in(t, folder, me)]
        unread = box["unread"] if folder != "sent" else ()
        counts[folder] = {
            "total": len(inside),
            "unread": sum(key in unread for key in inside),
        }
    return {
        "today": box["today"], "user": box["user"], "folders": box["folders"],
        "labels": box["labels"], "counts": counts, "settings": box["settings"],
        "undo": box["undo"] is not None,
    }  # fmt: skip


def _list_threads(box: Row, query: Row) -> Row:
    folder, label = query.get("folder", ""), query.get("label", "")
    if "q" in query:
        found = find_threads(box, query["q"])
    elif label:
        found = [t for t in box["threads"] if label in t["labels"] and t["folder"] != "trash"]
    else:
        found = [t for t in box["threads"] if is_shown_in(t, folder, box["user"]["email"])]
    found = sorted(found, key=lambda t: (t["messages"][-1]["date"], t["id"]), reverse=True)
    asked = query.get("page", "1")
    pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(max(int(asked) if asked.isdecimal() else 1, 1), pages)
    shown = found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    rows = [_summary(box, t) for t in shown]
    return {"rows": rows, "total": len(found), "page": page, "pages": pages, "size": PAGE_SIZE}


def _summary(box: Row, thread: Row) -> Row:
    last = thread["messages"][-1]
    me = box["user"]["email"]
    senders = ["me" if m["from"]["email"] == me else m["from"]["name"] for m in thread["messages"]]
    body = " ".join(last["body"].split())
    return {
        "id": thread["id"], "subject": thread["subject"], "folder": thread["folder"],
        "labels": thread["labels"], "starred": thread["starred"], "snoozed": thread["snoozed"],
        "senders": list(dict.fromkeys(senders)), "count": len(thread["messages"]),
        "date": last["date"], "snippet": body[:90], "unread": thread["id"] in box["unread"],
        "files": any(m["attachments"] for m in thread["messages"]),
    }  # fmt: skip


def _open_thread(box: Row, key: str) -> Row | None:
    thread = next((t for t in box["threads"] if t["id"] == key), None)
    if thread is None:
        return None
    messages = [
        {**m, "attachments": [_without_text(each) for each in m["attachments"]]}
        for m in thread["messages"]
    ]
    sender = messages[0]["from"]["email"]
    drafts = [d["id"] for d in box["drafts"] if d["thread"] == key]
    return {
        **thread, "messages": messages, "unread": key in box["unread"], "drafts": drafts,
        "unsubscribed": sender in box["unsubscribed"],
    }  # fmt: skip


def _all_files(box: Row) -> list[Row]:
    kept = [a for t in box["threads"] for m in t["messages"] for a in m["attachments"]]
    return [*box["files"], *kept, *(a for d in box["drafts"] for a in d["attachments"])]


def _without_text(attachment: Row) -> Row:
    return {
        "id": attachment["id"],
        "name": attachment["name"],
        "bytes": len(attachment["text"].encode()),
    }


def _words_of(contact: Row) -> str:
    listed = (contact["name"], contact["company"], *contact["emails"], *contact["phones"])
    return " ".join(listed).lower()


def _refuse(text: str) -> SiteResponse:
    return SiteResponse(status=400, json={"error": text})
