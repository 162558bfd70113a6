"""What the search field understands: words, and operators such as `from:` and `before:`."""

import re
from collections.abc import Callable
from datetime import date
from typing import Any

__all__ = ["BadSearch", "find_threads", "is_shown_in", "matches_filter", "read_day"]

_TERM = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))', re.IGNORECASE)
_OF_THREADS = ("in", "label", "is")
_HIDDEN = ("spam", "trash")

Row = dict[str, Any]
Test = Callable[[Row], bool]


class BadSearch(ValueError):  # what a search is, not what went wrong in a program
    """A search that cannot be read; the text says why."""


def read_day(text: str) -> date:
    """A day such as `2026-05-04`.

    Raises:
        BadSearch: It is none.
    """
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise BadSearch(f"{text!r} is no date: write it as YYYY-MM-DD.")


def is_shown_in(thread: Row, folder: str, me: str) -> bool:
    """Whether a folder's list shows a conversation."""
    if folder == "anywhere":
        return True
    if folder == "sent":
        return any(m["from"]["email"] == me for m in thread["messages"])
    if folder == "starred":
        return thread["starred"] and thread["folder"] not in _HIDDEN
    if folder == "snoozed":
        return bool(thread["snoozed"])
    return thread["folder"] == folder and not (folder == "inbox" and thread["snoozed"])


def find_threads(box: Row, query: str) -> list[Row]:
    """The conversations that a search finds: one mail of each fits all that it asks of mails.

    Raises:
        BadSearch: An operator is unknown, or its value is wrong.
    """
    of_threads: list[Test] = []
    of_mails: list[Test] = []
    places = 0
    for sign, name, quoted, plain in _TERM.findall(query):
        value = quoted or plain
        test = _read_term(box, name.lower(), value)
        if sign:
            test = _negate(test)
        places += name.lower() == "in" and not sign
        (of_threads if name.lower() in _OF_THREADS else of_mails).append(test)
    found = [t for t in box["threads"] if places or t["folder"] not in _HIDDEN]
    return [
        t
        for t in found
        if all(test(t) for test in of_threads)
        and any(
            all(test({**m, "subject": t["subject"]}) for test in of_mails) for m in t["messages"]
        )
    ]


def matches_filter(rule: Row, thread: Row) -> bool:
    """Whether a mail of a conversation meets all conditions of a filter."""

    def meets(mail: Row) -> bool:
        return (
            _has(_names([mail["from"]]), rule["from"])
            and _has(_names(mail["to"] + mail["cc"]), rule["to"])
            and _has(thread["subject"], rule["subject"])
            and all(_has(f"{thread['subject']} {mail['body']}", w) for w in rule["words"].split())
            and (bool(mail["attachments"]) or not rule["has_attachment"])
        )

    return thread["folder"] not in ("sent", *_HIDDEN) and any(map(meets, thread["messages"]))


def _read_term(box: Row, name: str, value: str) -> Test:
    if not name:
        return lambda m: _has(
            f"{_names([m['from'], *m['to'], *m['cc']])} {m['subject']} {m['body']}", value
        )
    of_mail: dict[str, Test] = {
        "from": lambda m: _has(_names([m["from"]]), value),
        "to": lambda m: _has(_names(m["to"] + m["cc"]), value),
        "subject": lambda m: _has(m["subject"], value),
        "filename": lambda m: any(_has(a["name"], value) for a in m["attachments"]),
    }
    if name in of_mail:
        return of_mail[name]
    if name in ("before", "after"):
        day = str(read_day(value))
        return lambda m: (m["date"][:10] < day) if name == "before" else (m["date"][:10] >= day)
    if name == "has":
        _demand(value, ("attachment",), "has:")
        return lambda m: bool(m["attachments"])
    return _read_place(box, name, value)


def _read_place(box: Row, name: str, value: str) -> Test:
    if name == "is":
        _demand(value, ("unread", "starred", "snoozed"), "is:")
        tests: dict[str, Test] = {
            "unread": lambda t: t["id"] in box["unread"],
            "starred": lambda t: t["starred"],
            "snoozed": lambda t: bool(t["snoozed"]),
        }
        return tests[value.lower()]
    if name == "label":
        _demand(value, tuple(box["labels"]), "label:")
        return lambda t: value.lower() in [label.lower() for label in t["labels"]]
    if name == "in":
        system = ("inbox", "starred", "snoozed", "sent", "archive", "spam", "trash", "anywhere")
        _demand(value, (*system, *box["folders"]), "in:")
        folder = next((f for f in box["folders"] if f.lower() == value.lower()), value.lower())
        return lambda t: is_shown_in(t, folder, box["user"]["email"])
    raise BadSearch(f"There is no operator {name}: in the search. The help lists all of them.")


def _demand(value: str, known: tuple[str, ...], operator: str) -> None:
    if value.lower() not in [each.lower() for each in known]:
        raise BadSearch(f"{operator} takes {', '.join(known)}; {value!r} is none of them.")


def _negate(test: Test) -> Test:
    return lambda row: not test(row)


def _names(parties: list[dict[str, str]]) -> str:
    return " ".join(f"{p['name']} <{p['email']}>" for p in parties)


def _has(text: str, part: str) -> bool:
    return part.lower() in text.lower()
