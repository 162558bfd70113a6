"""What the mailbox holds beside mails: the address book, drafts, files, filters and settings."""

from datetime import timedelta
from typing import Any

from web_mail_cast import Cast, Person
from web_mail_letters import Story, Thread, letter, long_day

__all__ = ["list_contacts", "new_settings", "tell_drafts"]

_FRIENDS = (
    ("Leonora Sommerfeld", "Bookbinder"),
    ("Augustin Delacroix", "Photographer"),
    ("Philippa Marchbanks", "Translator"),
    ("Konstantin Albrecht", "Cartographer"),
    ("Rosalind Featherstone", "Illustrator"),
)


def list_contacts(cast: Cast) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The address book, in which three people have two entries, and what tasks know of it."""
    rng = cast.draw("contacts")
    rows = [_entry(p.name, [p.email], [p.phone], p.company) for p in (*cast.team, *cast.alike)]
    rows += [_entry(f.person.name, [f.person.email], [f.person.phone], f.name) for f in cast.firms]
    friends = rng.sample(_FRIENDS, 5)
    pairs = []
    for i, (name, work) in enumerate(friends):
        first, last = name.lower().split()
        phone = f"+44 20 7946 0{rng.randint(100, 999)}"
        office, home = (
            f"{first}@{last}-{work.lower()}.example",
            f"{first[0]}.{last}@postbox.example",
        )
        rows.append(_entry(name, [office], [phone], work))
        if i < 3:  # noqa: PLR2004
            short = f"{name[0]}. {name.split()[1]}"
            rows.append(_entry((short, name, short)[i], [home], [phone], ""))
            pairs.append(
                {
                    "name": name,
                    "short": rows[-1]["name"],
                    "office": office,
                    "home": home,
                    "phone": phone,
                    "company": work,
                }
            )
        if i == 3:  # noqa: PLR2004
            other = f"+44 161 496 0{rng.randint(100, 999)}"
            rows.append(_entry(name, [f"{first}@{last}.example"], [other], "Piano teacher"))
    rng.shuffle(rows)
    for number, row in enumerate(rows, 1):
        row["id"] = f"C{number}"
    return rows, {"pairs": pairs, "single": friends[3][0]}


def tell_drafts(cast: Cast) -> tuple[Story, list[dict[str, Any]]]:
    """Drafts with text and without, and a mail that says what one of them lacks."""
    rng, firm, fellow = cast.draw("drafts"), cast.firms[6], cast.team[11]
    day = cast.today + timedelta(days=rng.randint(12, 24))
    subject = f"Delivery of {firm.item}"
    told = letter(
        fellow,
        [cast.me],
        cast.at(1, "11:11"),
        f"Hi {cast.me.first},\n\n{firm.name} can bring {firm.item} on {long_day(day)}, not two "
        "days "
        f"before as I said last week. Please write to them; you had a mail to {firm.person.first} "
        f"in your drafts.\n\n{fellow.first}",
    )
    text = f"Dear {firm.person.first},\n\nplease deliver {firm.item} on [DAY].\n\n{cast.me.first}"
    older = (
        f"Dear {firm.person.first},\n\ncould you deliver {firm.item} in the next weeks?\n\n"
        f"{cast.me.first}"
    )
    idea = f"Hi {cast.team[9].first},\n\nwhat do you think of a page for the"
    rows = [
        _draft([], "", "", cast.at(20, "09:09")),
        _draft([firm.person], subject, older, cast.at(9, "18:20")),
        _draft([cast.team[9]], "An idea", idea, cast.at(7, "12:00")),
        _draft([cast.team[5]], "", "", cast.at(6, "10:48")),
        _draft(
            [], "Things for the trip", "Charger, passport, the blue folder", cast.at(5, "20:15")
        ),
        _draft([], "Summer party", "", cast.at(4, "16:16")),
        _draft([firm.person], subject, text, cast.at(2, "17:30")),
    ]
    names = ("empty-0", "older", "", "empty-1", "", "empty-2", "finish")
    for number, row in enumerate(rows, 1):
        row["id"] = f"D{number}"
    ids = {name: row["id"] for name, row in zip(names, rows, strict=True) if name}
    facts = {
        "ids": ids,
        "firm": firm,
        "subject": subject,
        "day": day,
        "fellow": fellow,
        "empty-to": cast.team[5],
        "text": text,
    }
    return Story([Thread("delivery", "A day for the delivery", [told], unread=True)], facts), rows


def new_settings(cast: Cast) -> dict[str, Any]:
    """The settings and filters as a session finds them."""
    return {
        "signature": {"on": False, "text": f"{cast.me.name}\n{cast.employer}"},
        "vacation": {
            "on": False,
            "first": "",
            "last": "",
            "subject": "",
            "text": "",
            "contacts_only": False,
        },
    }


def _entry(name: str, emails: list[str], phones: list[str], company: str) -> dict[str, Any]:
    return {
        "id": "",
        "name": name,
        "emails": emails,
        "phones": phones,
        "company": company,
        "notes": "",
    }


def _draft(to: list[Person], subject: str, body: str, when: str) -> dict[str, Any]:
    return {
        "id": "",
        "thread": None,
        "to": [{"name": p.name, "email": p.email} for p in to],
        "cc": [],
        "bcc": [],
        "subject": subject,
        "body": body,
        "attachments": [],
        "date": when,
    }
