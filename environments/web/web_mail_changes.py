"""What a person changes in the mailbox beside writing: places, labels, filters, settings.

Each change returns what the page is told, or a sentence that says why it was refused; then
nothing has changed.
"""

from collections.abc import Callable
from typing import Any

from web_mail_search import BadSearch, matches_filter, read_day

__all__ = [
    "act_on_threads",
    "change_filters",
    "change_settings",
    "mark_read",
    "new_id",
    "unsubscribe",
]

_TEXTS = ("from", "to", "subject", "words")
_SWITCHES = ("has_attachment", "archive", "read", "star")
_PLACES = ("inbox", "archive", "spam", "trash")
_MOST_CHARS = 5_000

Row = dict[str, Any]


def new_id(box: Row, letter: str) -> str:
    """An id that nothing has yet."""
    box["next"] += 1
    return f"{letter}{box['next']}"


def _chosen(box: Row, given: Row) -> list[Row] | str:
    ids = given.get("ids")
    if not isinstance(ids, list) or not ids:
        return "Select a conversation first."
    rows = [t for t in box["threads"] if t["id"] in ids]
    return rows if len(rows) == len({*map(str, ids)}) else "One of these conversations is gone."


def mark_read(box: Row, _rest: str, given: Row) -> Any:
    """Mark conversations as read or unread."""
    rows, unread = _chosen(box, given), given.get("unread")
    if isinstance(rows, str):
        return rows
    if not isinstance(unread, bool):
        return "Say whether they are unread."
    ids = [row["id"] for row in rows]
    kept = [key for key in box["unread"] if key not in ids]
    box["unread"] = sorted([*kept, *(ids if unread else [])], key=lambda key: int(key[1:]))
    return {"changed": len(ids)}


def act_on_threads(box: Row, _rest: str, given: Row) -> Any:
    """Move, star, label, unlabel or snooze conversations."""
    rows = _chosen(box, given)
    if isinstance(rows, str):
        return rows
    acts: dict[str, Callable[[Row, str], Callable[[Row], None] | str]] = {
        "move": _move_to,
        "label": _label_with,
        "unlabel": _label_with,
        "star": _star,
        "snooze": _snooze_until,
    }
    action, value = given.get("action"), given.get("value")
    if action not in acts or not isinstance(value, str):
        return "This action is unknown."
    act = acts[action](box, value)
    if isinstance(act, str):
        return act
    if action == "unlabel":
        act = _unlabel(value)
    for row in rows:
        act(row)
    return {"changed": len(rows)}


def _move_to(box: Row, value: str) -> Callable[[Row], None] | str:
    if value not in (*_PLACES, *box["folders"]):
        return "There is no such folder."
    return lambda row: row.update(folder=value, snoozed="")


def _label_with(box: Row, value: str) -> Callable[[Row], None] | str:
    if value not in box["labels"]:
        return "There is no such label."
    return lambda row: row.update(labels=sorted({*row["labels"], value}))


def _unlabel(value: str) -> Callable[[Row], None]:
    return lambda row: row.update(labels=[label for label in row["labels"] if label != value])


def _star(_box: Row, value: str) -> Callable[[Row], None] | str:
    return (
        (lambda row: row.update(starred=value == "on")) if value in ("on", "off") else "On or off?"
    )


def _snooze_until(box: Row, value: str) -> Callable[[Row], None] | str:
    if not value:
        return lambda row: row.update(snoozed="", folder="inbox")
    day = read_day(value)
    if str(day) <= box["today"]:
        return "Choose a day after today."
    return lambda row: row.update(snoozed=value, folder="inbox")


def unsubscribe(box: Row, rest: str, _given: Row) -> Any:
    """Have a list's sender take the owner off the list."""
    thread = next((t for t in box["threads"] if t["id"] == rest), None)
    if thread is None or not thread["bulk"]:
        return "This sender has no list to leave."
    sender = thread["messages"][0]["from"]["email"]
    if sender not in box["unsubscribed"]:
        box["unsubscribed"] = sorted([*box["unsubscribed"], sender])
    return {"sender": sender}


def change_filters(box: Row, rest: str, given: Row) -> Any:
    """Make, change, delete or apply a filter."""
    key, _, verb = rest.partition("/")
    old = next((rule for rule in box["filters"] if rule["id"] == key), None)
    if key and old is None:
        return "This filter is gone."
    if verb == "delete":
        box["filters"].remove(old)
        return {"deleted": key}
    rule = _read_filter(box, given)
    if isinstance(rule, str):
        return rule
    if old is None:
        old = {"id": new_id(box, "F")}
        box["filters"].append(old)
    old.update(rule)
    found = [t for t in box["threads"] if matches_filter(old, t)] if given.get("apply") else []
    for thread in found:
        _apply(box, old, thread)
    return {"filter": old, "applied": len(found)}


def _read_filter(box: Row, given: Row) -> Row | str:  # noqa: PLR0911  # one for each mistake
    texts = {name: given.get(name, "") for name in (*_TEXTS, "label", "move")}
    switches = {name: given.get(name, False) for name in _SWITCHES}
    if not all(isinstance(value, str) and len(value) < _MOST_CHARS for value in texts.values()):
        return "A condition is a text."
    if not all(
        isinstance(value, bool) for value in (*switches.values(), given.get("apply", False))
    ):
        return "A switch is on or off."
    texts = {name: " ".join(value.split()) for name, value in texts.items()}
    if not any(texts[name] for name in _TEXTS) and not switches["has_attachment"]:
        return "Enter a condition: a filter for every mail would be too much."
    if texts["label"] not in ("", *box["labels"]) or texts["move"] not in (
        "",
        "trash",
        *box["folders"],
    ):
        return "There is no such label or folder."
    if texts["move"] and switches["archive"]:
        return "A mail is archived or moved to a folder, not both."
    if not (
        texts["label"] or texts["move"] or any(switches[n] for n in ("archive", "read", "star"))
    ):
        return "Choose what the filter does."
    return {**texts, **switches}


def _apply(box: Row, rule: Row, thread: Row) -> None:
    if rule["label"]:
        thread["labels"] = sorted({*thread["labels"], rule["label"]})
    if rule["archive"] and thread["folder"] == "inbox":
        thread.update(folder="archive", snoozed="")
    if rule["move"]:
        thread.update(folder=rule["move"], snoozed="")
    if rule["star"]:
        thread["starred"] = True
    if rule["read"]:
        box["unread"] = [key for key in box["unread"] if key != thread["id"]]


def change_settings(box: Row, rest: str, given: Row) -> Any:
    """Save the signature or the vacation reply."""
    known: dict[str, Callable[[Row], Row | str]] = {
        "signature": _read_signature,
        "vacation": _read_vacation,
    }
    if rest not in known:
        return "There is no such setting."
    read = known[rest](given)
    if isinstance(read, str):
        return read
    box["settings"][rest] = read
    return read


def _read_signature(given: Row) -> Row | str:
    is_on, text = given.get("on"), given.get("text")
    if not isinstance(is_on, bool) or not isinstance(text, str) or len(text) > _MOST_CHARS:
        return "A signature has a text, and is on or off."
    if is_on and not text.strip():
        return "Write the signature that is added."
    return {"on": is_on, "text": text.strip()}


def _read_vacation(given: Row) -> Row | str:
    switches = [given.get("on"), given.get("contacts_only")]
    texts = {name: given.get(name) for name in ("first", "last", "subject", "text")}
    if not all(isinstance(each, bool) for each in switches):
        return "A switch is on or off."
    if not all(isinstance(each, str) and len(each) < _MOST_CHARS for each in texts.values()):
        return "Fill in texts."
    texts = {name: str(value).strip() for name, value in texts.items()}
    try:
        first, last = (str(read_day(texts[n])) if texts[n] else "" for n in ("first", "last"))
    except BadSearch as exc:
        return str(exc)
    if switches[0] and not (first and texts["text"]):
        return "Enter the first day, and what the reply says."
    if first and last and last < first:
        return "The last day is not before the first."
    return {"on": switches[0], **texts, "contacts_only": switches[1]}
