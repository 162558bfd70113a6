"""How mails are written: drafts are kept and deleted, mails are sent, and taken back.

Each change returns what the page is told, or a sentence that says why it was refused; then
nothing has changed.
"""

from copy import deepcopy
from typing import Any

from web_mail_book_changes import EMAIL
from web_mail_changes import new_id

__all__ = ["change_drafts", "send", "undo_send"]

_PARTIES = ("to", "cc", "bcc")
_MOST_CHARS = 50_000
_MOST_PEOPLE = 50

Row = dict[str, Any]


def change_drafts(box: Row, rest: str, given: Row) -> Any:
    """Keep or delete a draft."""
    key, _, verb = rest.partition("/")
    old = next((d for d in box["drafts"] if d["id"] == key), None)
    if key and old is None:
        return "This draft is gone."
    if verb == "delete":
        box["drafts"].remove(old)
        return {"deleted": key}
    letter = _read_letter(box, given)
    if isinstance(letter, str):
        return letter
    if old is None:
        old = {"id": new_id(box, "D")}
        box["drafts"].append(old)
    old.update(letter, date=_now(box))
    return old


def send(box: Row, _rest: str, given: Row) -> Any:
    """Send a mail into its conversation or a new one; its draft goes."""
    letter = _read_letter(box, given)
    if isinstance(letter, str):
        return letter
    listed = [p["email"] for name in _PARTIES for p in letter[name]]
    wrong = next((each for each in listed if not EMAIL.fullmatch(each)), None)
    if wrong is not None:
        return f"{wrong!r} is no e-mail address."
    if not listed:
        return "Enter who is to get this mail."
    draft = next((d for d in box["drafts"] if d["id"] == given.get("draft")), None)
    if draft is not None:
        box["drafts"].remove(draft)
    thread = next((t for t in box["threads"] if t["id"] == letter["thread"]), None)
    mail = {
        "id": new_id(box, "M"), "from": dict(box["user"]), **{n: letter[n] for n in _PARTIES},
        "date": _now(box), "body": letter["body"].strip(),
        "attachments": [{**each, "id": new_id(box, "A")} for each in letter["attachments"]],
    }  # fmt: skip
    if thread is None:
        thread = {
            "id": new_id(box, "T"), "subject": letter["subject"].strip(), "folder": "sent",
            "labels": [], "starred": False, "snoozed": "", "bulk": False, "messages": [],
        }  # fmt: skip
        box["threads"].append(thread)
    thread["messages"].append(mail)
    box["undo"] = {"thread": thread["id"], "mail": mail["id"], "draft": deepcopy(letter)}
    return {"thread": thread["id"], "mail": mail["id"]}


def undo_send(box: Row, _rest: str, _given: Row) -> Any:
    """Take the mail back that was sent last, and keep it as a draft."""
    last = box["undo"]
    if last is None:
        return "There is no mail to take back."
    thread = next((t for t in box["threads"] if t["id"] == last["thread"]), None)
    if thread is None:  # it was deleted for good meanwhile
        return "There is no mail to take back."
    thread["messages"] = [m for m in thread["messages"] if m["id"] != last["mail"]]
    if not thread["messages"]:
        box["threads"].remove(thread)
    draft = {"id": new_id(box, "D"), **last["draft"], "date": _now(box)}
    box["drafts"].append(draft)
    box["undo"] = None
    return draft


def _read_letter(box: Row, given: Row) -> Row | str:
    texts = [given.get("subject", ""), given.get("body", "")]
    if not all(isinstance(text, str) and len(text) < _MOST_CHARS for text in texts):
        return "Subject and text are texts."
    people: dict[str, list[dict[str, str]]] = {}
    for name in _PARTIES:
        read = _read_people(given.get(name, []))
        if read is None:
            return f"{name.title()} is a list of names with addresses."
        people[name] = read
    key = given.get("thread")
    if key is not None and all(t["id"] != key for t in box["threads"]):
        return "This conversation is gone."
    files = _read_files(box, given.get("attachments", []))
    if isinstance(files, str):
        return files
    return {"thread": key, **people, "subject": texts[0], "body": texts[1], "attachments": files}


def _read_people(value: Any) -> list[dict[str, str]] | None:
    if not isinstance(value, list) or len(value) > _MOST_PEOPLE:
        return None
    found: dict[str, dict[str, str]] = {}
    for each in value:
        parts = [each.get("name", ""), each.get("email")] if isinstance(each, dict) else [None]
        if not all(isinstance(part, str) for part in parts):
            return None
        name, email = (" ".join(part.split()) for part in parts)
        found.setdefault(email.lower(), {"name": name or email, "email": email.lower()})
    return list(found.values())


def _read_files(box: Row, value: Any) -> list[Row] | str:
    """The attachments of some ids: kept files, and those of mails and drafts."""
    if not isinstance(value, list):
        return "Attachments are a list."
    held = [*box["drafts"], *(m for t in box["threads"] for m in t["messages"])]
    known = {a["id"]: a for a in (*box["files"], *(a for h in held for a in h["attachments"]))}
    if not all(isinstance(key, str) and key in known for key in value):
        return "One of these attachments is gone."
    return [dict(known[key]) for key in dict.fromkeys(value)]


def _now(box: Row) -> str:
    """The time of a session never goes on: what is written now comes after all that is there."""
    return f"{box['today']}T18:00"
