"""The rest of the mailbox: what colleagues, firms and strangers write that no task asks about."""

from random import Random

from web_mail_cast import Cast, Person
from web_mail_letters import Thread, letter

__all__ = ["tell_talk"]

_TOPICS = """
Lunch on {day}|Shall we try the new place by the {spot} on {day}?|Gladly. Half past twelve?|Perfect, I book a table.
Parking by the {spot}|The places by the {spot} are closed on {day}.|Thanks, I come by bus then.
Draft of chapter {n}|Chapter {n} is ready to be read. Could you look at it until {day}?|I have read it: page {m} needs a map.|You are right. I add one.|Now it is fine for me.
Pictures from the {spot}|The pictures from the {spot} are on the shared disk, {m} of them.|They are lovely, above all the last ones.
Printer on floor {k}|The printer on floor {k} is out of toner again.|I have ordered some, it comes on {day}.|Thank you!
Desk by the window|I leave the desk by the window on {day}. Would you like it?|Yes, please! I bring my plants.|Welcome, then.
Keys of room {m}|I have two keys of room {m}. Who needs one?|I do. I come by on {day}.
Workshop with the {group}|The {group} would like a workshop in autumn. Do we have room for {m} people?|Only if we use both rooms.|Then I tell them {k} weeks from now at the earliest.
Bicycle stand|The stand behind the {spot} is full every morning. Can we ask for another?|I have asked the {group}. They think about it.
Notes of {day}|Here are my notes of {day}: the cover becomes blue, and the index has {m} pages.|Thanks. I thought green was decided?|It was, but the {group} did not like it.
Colours of the cover|Blue or green? The {group} would like to know by {day}.|Green, like the last one.|Blue for me.|I toss a coin, then.
Choir on {day}|We sing by the {spot} on {day}. Come and listen!|With pleasure.
Lost umbrella|Somebody has left a grey umbrella in room {m}.|It is mine! I fetch it on {day}.
Numbers of the {group}|The {group} has {m} members now, {k} more than last year.|That is good news. May we print it?|Please do.
Backup on {day}|The shared disk is not there on {day} between seven and {k} in the evening.
A trainee in the team|From {day}, a trainee of the {group} is with us for {k} weeks. Who shows her around?|I can, on both of the first days.|Great, thank you.
"""  # noqa: E501  # a conversation a line: its subject, its first mail, its replies
_SPAM = """
You have won {m} prizes|Dear winner, reply with your address to collect your {m} prizes.
Cheap watches, {m} % off|Only until {day}: watches of all makers, {m} % off.
Grow your business {k} times|Our list of {m} thousand addresses is waiting for you.
"""
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_SPOTS = ("canal", "town hall", "old harbour", "market", "station", "library")
_GROUPS = ("museum", "sailing club", "council", "university", "orchestra", "tourist office")


def tell_talk(cast: Cast) -> list[Thread]:
    """Conversations of two months, filed here and there."""
    rng = cast.draw("talk")
    threads: dict[str, Thread] = {}
    for _ in range(27):
        thread = _conversation(cast, rng)
        threads.setdefault(thread.subject, thread)
    for i, (subject, body) in enumerate(_rows(_SPAM)):
        words = _words(rng)
        sender = Person("Best Offers", f"offers@mail-{rng.randint(100, 999)}.example")
        mail = letter(sender, [cast.me], cast.at(3 + 4 * i, "03:33"), body.format(**words))
        threads[subject] = Thread(
            "", subject.format(**words), [mail], "spam", unread=True, bulk=True
        )
    return list(threads.values())


def _conversation(cast: Cast, rng: Random) -> Thread:
    subject, opening, *replies = rng.choice(_rows(_TOPICS))
    words = _words(rng)
    others = rng.sample(list(cast.team), 2)
    voices = [others[0], cast.me, others[1] if rng.random() < 0.4 else others[0], cast.me]  # noqa: PLR2004
    if rng.random() < 0.15:  # noqa: PLR2004
        voices[:2] = voices[1::-1]
    start = rng.randint(len(replies), 55)
    mails = []
    for i, text in enumerate((opening, *replies)):
        sender = voices[i % 4]
        to = [p for p in dict.fromkeys((cast.me, *voices)) if p is not sender]
        greeting = f"Hi {to[0].first},\n\n" if i == 0 else ""
        body = f"{greeting}{text.format(**words)}\n\n{sender.first}"
        when = cast.at(max(0, start - i), f"{8 + 2 * i:02}:{rng.randint(10, 59)}")
        mails.append(letter(sender, to, when, body))
    folder = rng.choice(("inbox", "inbox", "archive", "archive", "Projects", "trash"))
    if all(mail["from"]["email"] == cast.me.email for mail in mails):
        folder = "sent"
    labels = (rng.choice(("Team", "Travel")),) if rng.random() < 0.2 else ()  # noqa: PLR2004
    unread = folder == "inbox" and rng.random() < 0.3  # noqa: PLR2004
    return Thread("", subject.format(**words), mails, folder, labels, unread)


def _words(rng: Random) -> dict[str, object]:
    return {
        "day": rng.choice(_DAYS),
        "spot": rng.choice(_SPOTS),
        "group": rng.choice(_GROUPS),
        "n": rng.randint(2, 14),
        "m": rng.randint(12, 60),
        "k": rng.randint(3, 9),
    }


def _rows(table: str) -> list[list[str]]:
    return [line.split("|") for line in table.strip().splitlines()]
