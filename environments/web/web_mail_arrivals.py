"""The mail tasks in which a mail comes while one works, and how they are solved."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from web_mail_cast import Cast, Person
from web_mail_data import Mailbox, new_mailbox
from web_mail_letters import letter
from web_mail_opening import Seed, begin
from web_mail_oracle_steps import open_mail, open_place, search, send, write_text
from web_mail_oracles import schedule
from web_steps import press_button, see

from hud_mcp import Agent, BrowserWorld, Environment, exact_match, grade_checks

__all__ = ["declare", "mail_awaited", "mail_late_change"]

Told = Annotated[bool, Field(description="Whether a reply says that a mail has come.")]
Row = dict[str, Any]
_ROOMS = ("Lighthouse", "Windmill", "Orangery", "Boathouse")
_CAME = ("T801", "T802")
"""The conversations that the tasks add: one that is there, and one that comes."""
_ANSWER = "M803"
_LOOKS = 15


def _thread(key: str, subject: str, mail: Row) -> Row:
    """A conversation of one mail, in the inbox."""
    return {
        "id": key, "subject": subject, "folder": "inbox", "labels": [], "starred": False,
        "snoozed": "", "bulk": False, "messages": [{"id": f"M{key[1:]}", **mail}],
    }  # fmt: skip


def _arrive(browser: BrowserWorld, row: Row, sender: Person, *, told: bool) -> str | None:
    """Note that a conversation has a new mail; what the agent is told of it."""
    box = browser.state["mail"]
    if row["id"] not in box["unread"]:
        box["unread"].append(row["id"])
    return f"A new mail has come from {sender.name}." if told else None


def _codes(cast: Cast) -> tuple[Person, str, str]:
    """The senders of the store's code, of the old one, and of the new one."""
    rng = cast.draw("codes")
    old, new = rng.sample(range(1000, 10_000), 2)
    return cast.team[3], str(old), str(new)


async def mail_awaited(
    browser: BrowserWorld,
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
):
    """Ask for what stands in a mail that is still to come."""
    cast = new_mailbox(seed).cast
    fellow, old, new = _codes(cast)
    body = f"Hi {cast.me.first},\n\nthe code of the store is {old}.\n\n{fellow.first}"
    mail = letter(fellow, [cast.me], cast.at(6, "10:20"), body)
    _, start = await begin(browser, seed, [_thread(_CAME[0], "Code of the store", mail)])
    answer: str = yield (
        f"{fellow.name} mails me the new code of the store today, while you work on this. The code "
        f"of {fellow.first}'s earlier mail no longer opens it. Answer with the new code alone, "
        "once it is there. Change nothing."
    )
    checks = {"the new code": exact_match(answer, new) == 1}
    yield grade_checks(checks, start.changes(f"threads.{_CAME[1]}"))


def code_comes(browser: BrowserWorld, seed: int, *, told: bool) -> str | None:
    """Bring the mail with the new code."""
    cast = new_mailbox(seed).cast
    fellow, _, new = _codes(cast)
    body = f"Hi {cast.me.first},\n\nfrom now on it is {new}.\n\n{fellow.first}"
    mail = letter(fellow, [cast.me], cast.at(0, "18:20"), body)
    row = _thread(_CAME[1], "Store", mail)
    browser.state["mail"]["threads"].append(row)
    return _arrive(browser, row, fellow, told=told)


async def wait_for_code(agent: Agent, seed: int) -> str:
    """Look at what the colleague has sent until the new mail is there, and read it."""
    fellow, _, _ = _codes(new_mailbox(seed).cast)
    for _ in range(_LOOKS):
        await search(agent, f"from:{fellow.first} subject:Store")
        if found := re.search(r"from now on it is (\d{4})", agent.text):
            break
        await open_place(agent, "Inbox", shows="Inbox")
    return found[1]


def _plan(box: Mailbox) -> tuple[Row, str, str]:
    """The facts of the meeting, the sentence that is true at first, and the one at the end."""
    known = box.facts["review"]
    room = box.cast.draw("late room").choice([r for r in _ROOMS if r != known["room"]])
    day, clock = known["day"], known["clock"]
    first, last = (f"I will be there on {day} at {clock} in {r}." for r in (known["room"], room))
    return {**known, "new": room}, first, last


async def mail_late_change(
    browser: BrowserWorld,
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
):
    """Ask to answer a mail, whose sender then changes what was asked about."""
    box, start = await begin(browser, seed)
    known, first, last = _plan(box)
    key, host = box.ids["review"], known["host"]
    yield (
        f"{host.name} asks in the conversation 'Review of {known['project']}' whether I come. "
        f"Reply to {host.first} alone, with what holds after all its mails. Write just this "
        "sentence, with the day, the time and the room put in, as in: I will be there on "
        f"2026-01-31 at 08:15 in Aspen. {host.first} answers at once, in the same conversation. If "
        f"that changes the meeting, reply to {host.first} alone once more, with the sentence that "
        "holds then. Change nothing else."
    )
    sent = [(home, mail) for home, mail in start.sent() if mail["id"] != _ANSWER]
    right = [_is_to(mail, host) and home["id"] == key for home, mail in sent]
    texts = [mail["body"] for _, mail in sent]
    both = len(texts) == 2 and all(right) and _same(texts[0], first) and _same(texts[1], last)  # noqa: PLR2004
    own = [f"threads.{key}.messages.{mail['id']}" for _, mail in sent]
    effects = start.changes(*own, f"threads.{key}.messages.{_ANSWER}")
    yield grade_checks({"both replies": both}, effects)


def _same(text: str, wanted: str) -> bool:
    return exact_match(text, wanted) == 1


def _is_to(mail: Row, person: Person) -> bool:
    people: Sequence[Row] = [p for name in ("to", "cc", "bcc") for p in mail[name]]
    return [p["email"] for p in people] == [person.email]


def _review(browser: BrowserWorld, seed: int) -> Row:
    key = new_mailbox(seed).ids["review"]
    return next((t for t in browser.state["mail"]["threads"] if t["id"] == key), {})


def has_replied(browser: BrowserWorld, seed: int) -> bool:
    """Whether something was sent in the conversation."""
    known = {m["id"] for t in new_mailbox(seed).state["threads"] for m in t["messages"]}
    return any(mail["id"] not in known for mail in _review(browser, seed).get("messages", ()))


def room_changes(browser: BrowserWorld, seed: int, *, told: bool) -> str | None:
    """Bring the mail that moves the meeting to another room."""
    box = new_mailbox(seed)
    known, _, _ = _plan(box)
    host, row = known["host"], _review(browser, seed)
    body = (
        f"Thank you. They paint {known['room']} that week: we meet in the {known['new']} instead, "
        f"on the same day and at the same time. Is that fine with you?\n\n{host.first}"
    )
    mail = letter(host, [box.cast.me], box.cast.at(0, "18:30"), body)
    row["messages"].append({"id": _ANSWER, **mail})
    return _arrive(browser, row, host, told=told)


async def reply_twice(agent: Agent, seed: int) -> None:
    """Reply, look at the conversation again, and reply with the new room."""
    project = new_mailbox(seed).facts["review"]["project"]
    await schedule(agent, "reply", seed)
    for _ in range(_LOOKS):
        await search(agent, f'subject:"Review of {project}"')
        await open_mail(agent, "Review of")
        if found := re.search(r"we meet in the (\w+) instead", agent.text):
            break
    sentence = re.search(r"I will be there on \S+ at \S+ in", agent.text)
    await press_button(agent, "Reply")
    await see(agent, 'textbox "Text"')
    await write_text(agent, f"{sentence[0]} {found[1]}.")
    await send(agent)


def declare(env: Environment) -> None:
    """Offer the tasks in an environment, with what happens in them, and their solutions."""
    awaited = env.template(description="Wait for a mail, and read it")(mail_awaited)
    awaited.oracle(wait_for_code)
    awaited.after(step=3)(code_comes)
    late = env.template(description="Answer a mail, and the change that follows")(mail_late_change)
    late.oracle(reply_twice)
    late.when(has_replied)(room_changes)
