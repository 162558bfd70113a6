"""What the mail tasks expect of the mailbox at their end."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hud_mcp import Before, BrowserWorld, Grade, grade_checks

__all__ = ["Start"]

Row = dict[str, Any]

_FREE = ("mail.unread", "mail.undo", "mail.next")
"""What looking around and sending change beside what was asked for."""


class Start:
    """The mailbox when a task began, and what its end is compared with."""

    def __init__(self, browser: BrowserWorld) -> None:
        self.box: Row = browser.state["mail"]
        self._before = Before(browser.state, allowed=_FREE)
        self._mails = {m["id"] for t in self.box["threads"] for m in t["messages"]}
        self._rules = {rule["id"] for rule in self.box["filters"]}

    def changes(self, *beside: str) -> list[str]:
        """What else has changed in the mailbox than these paths below `mail`."""
        return self._before.changes(beside=[f"mail.{path}" for path in beside])

    def sent(self) -> list[tuple[Row, Row]]:
        """The mails that were sent since, each with its conversation."""
        return [
            (thread, mail)
            for thread in self.box["threads"]
            for mail in thread["messages"]
            if mail["id"] not in self._mails
        ]

    def new_filters(self) -> list[Row]:
        """The filters that were made since."""
        return [rule for rule in self.box["filters"] if rule["id"] not in self._rules]

    def thread(self, key: str) -> Row:
        """A conversation; an empty one where it is gone."""
        return next((t for t in self.box["threads"] if t["id"] == key), {})

    def grade_answer(self, *, right: bool) -> Grade:
        """Grade an answer to a question, for which nothing was to be changed."""
        return grade_checks({"answer": right}, self.changes())

    def grade_mail(
        self,
        recipients: Iterable[str],
        checks: Mapping[str, Any],
        *,
        thread: str | None = None,
        beside: Sequence[str] = (),
        more: Mapping[str, bool] | None = None,
    ) -> Grade:
        """Grade one mail that was to be sent; to wrong people, it is worth nothing.

        Args:
            recipients: The addresses of all who were to get it, and no other.
            checks: Functions of the mail and its conversation, by what they demand.
            thread: The conversation that it belongs to; None for a new one.
            beside: Other paths below `mail` that the task changes.
            more: Further parts of the task; they count where the mail is right.
        """
        sent = self.sent()
        home, mail = sent[0] if sent else ({}, {})
        got = [p["email"] for name in ("to", "cc", "bcc") for p in mail.get(name, ())]
        to_them = len(sent) == 1 and sorted(got) == sorted(recipients)
        right_place = home.get("id") == thread if thread else len(home.get("messages", ())) == 1
        parts: dict[str, bool] = {
            "one mail to the right people": to_them,
            "in its conversation": to_them and right_place,
            **{name: to_them and bool(check(mail, home)) for name, check in checks.items()},
            **{name: to_them and value for name, value in (more or {}).items()},
        }
        own = [f"threads.{home['id']}.messages.{mail['id']}"] if mail else []
        if mail and not thread:
            own = [f"threads.{home['id']}"]
        return grade_checks(parts, self.changes(*own, *beside))

    def grade_moves(
        self, wanted: Iterable[str], field: str, value: str, *, beside: Sequence[str] = ()
    ) -> tuple[float, list[str]]:
        """How well some conversations, and no other, have a value now; and what else changed.

        Moving one too many costs as much as leaving one out.
        """
        keys = set(wanted)
        paths = [f"threads.{key}.{field}" for key in keys]
        effects = self.changes(*paths, *beside)
        hits = sum(self.thread(key).get(field) == value for key in keys)
        extra = {e for e in effects if e.startswith("mail.threads.") and e.endswith(f".{field}")}
        return hits / (len(keys) + len(extra)), effects
