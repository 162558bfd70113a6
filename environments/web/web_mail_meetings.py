"""The conversations about days and places: a plan to pass on, an offsite, a review, a leave."""

from datetime import timedelta

from web_mail_cast import Cast, Person
from web_mail_letters import Story, Thread, letter, long_day, plain_day

__all__ = ["tell_leave", "tell_offsite", "tell_plan", "tell_review"]

_PLACES = ("Whitby", "Keswick", "Ludlow", "Harlech", "Southwold", "Hexham")
_ROOMS = ("Birch", "Cedar", "Hazel", "Maple", "Rowan", "Willow")
_PROJECTS = ("the harbour atlas", "the winter edition", "the new price list", "the visitor guide")


def tell_plan(cast: Cast) -> Story:
    """A colleague sends two files; two people with nearly the same name have written before."""
    rng, sender = cast.draw("plan"), cast.team[2]
    hall = rng.choice(("Corn Exchange", "Old Mill", "Guildhall", "Boathouse"))
    plan, guests = f"seating-plan-{rng.randint(2, 9)}.txt", "guest-list.csv"
    count = rng.randint(6, 9)
    rows = [f"Table {i},{rng.randint(6, 10)} seats" for i in range(1, count + 1)]
    listed = [f"{p.name},{p.company}" for p in rng.sample(list(cast.team), 8)]
    sent = letter(
        sender,
        [cast.me],
        cast.at(3, "14:09"),
        f"Hi {cast.me.first},\n\nattached are the seating plan of the {hall} and the list of our "
        f"guests. The list is for us alone.\n\n{sender.first}",
        files={
            plan: f"{hall}\n\n" + "\n".join(rows) + "\n",
            guests: "Name,Company\n" + "\n".join(listed) + "\n",
        },
    )
    threads = [Thread("plan", f"Plan of the {hall}", [sent])]
    topics = ("the sound in the hall", "the flowers on the tables")
    for who, topic, ago in zip(cast.alike, topics, (11, 15), strict=True):
        body = (
            f"Dear {cast.me.first},\n\nI look after {topic} for you at {who.company}. As soon as "
            f"you know how the tables stand, let me have the plan.\n\n{who.first}"
        )
        mail = letter(who, [cast.me], cast.at(ago, "10:30"), body)
        answer = letter(cast.me, [who], cast.at(ago - 1, "09:12"), "Thank you, I will.")
        threads.append(Thread("", f"About {topic}", [mail, answer], "archive", ("Clients",)))
    facts = {
        "hall": hall,
        "sender": sender,
        "plan": plan,
        "guests": guests,
        "right": cast.alike[0],
        "wrong": cast.alike[1],
        "topic": topics[0],
    }
    return Story(threads, facts)


def tell_offsite(cast: Cast) -> Story:
    """An invitation to eight, of whom two say in the conversation that they cannot come."""
    rng = cast.draw("offsite")
    place, host = rng.choice(_PLACES), cast.team[3]
    guests = [p for p in cast.team if p is not host][:7]
    declined = rng.sample(guests[:5], 2)
    start = cast.today + timedelta(days=rng.randint(20, 30))
    copied = guests[5:]
    mails = [
        letter(
            host,
            [cast.me, *guests[:5]],
            cast.at(5, "09:00"),
            f"Dear all,\n\nour offsite takes "
            f"place in {place}, on {plain_day(start)} and the day after. Who "
            f"comes?\n\n{host.first}",
            cc=copied,
        ),
        letter(
            guests[0],
            [host],
            cast.at(5, "10:14"),
            _yes_or_no(guests[0], declined),
            cc=[cast.me, *guests[1:]],
        ),
    ]
    for i, guest in enumerate(guests[1:5], 1):
        others = [cast.me, *(p for p in guests if p is not guest)]
        body = _yes_or_no(guest, declined)
        mails.append(letter(guest, [host], cast.at(4, f"1{i}:{i}5"), body, cc=others))
    last = letter(
        host,
        [cast.me, *guests[:5]],
        cast.at(1, "15:55"),
        f"{cast.me.first}, you are the last one. Are you with us? Please answer to everybody who "
        f"comes, so that they can share cars.\n\n{host.first}",
        cc=copied,
    )
    thread = Thread("offsite", f"Offsite in {place}", [*mails, last], labels=("Team",))
    everybody = [host, *guests]
    named = guests[5]
    facts = {"place": place, "all": everybody, "declined": declined, "named": named}
    return Story([thread], facts)


def _yes_or_no(guest: Person, declined: list[Person]) -> str:
    if guest not in declined:
        return f"Count me in.\n\n{guest.first}"
    return f"What a pity: I am at a fair on those days, so please plan without me.\n\n{guest.first}"


def tell_review(cast: Cast) -> Story:
    """A meeting that is moved twice, the last time by words and not by a date."""
    rng, host = cast.draw("review"), cast.team[4]
    project, (room, other) = rng.choice(_PROJECTS), rng.sample(_ROOMS, 2)
    monday = cast.today + timedelta(days=7 - cast.today.weekday() + 7 * rng.randint(1, 2))
    first = monday + timedelta(days=1)
    second = monday + timedelta(days=rng.choice((3, 4)))
    hour = rng.randint(10, 14)
    one, two = cast.team[8], cast.team[9]
    group = [cast.me, one, two]
    later = rng.choice((1, 2))
    mails = [
        letter(
            host,
            group,
            cast.at(6, "09:10"),
            f"Hello,\n\nI would like to go through {project} "
            f"with you on {long_day(first)} at 09:30, in the room {room}.\n\n{host.first}",
        ),
        letter(
            one,
            [host],
            cast.at(6, "11:30"),
            f"I am in the workshop that day. Could it be later in the week?\n\n{one.first}",
            cc=[cast.me, two],
        ),
        letter(
            host,
            group,
            cast.at(5, "08:25"),
            f"Then let us take the {second:%A} of the same week, "
            f"at {hour}:00. The room stays.\n\n{host.first}",
        ),
        letter(
            two,
            [host],
            cast.at(5, "09:47"),
            f"That suits me. But {room} is taken on that day; {other} is free.\n\n{two.first}",
            cc=[cast.me, one],
        ),
        letter(
            host,
            group,
            cast.at(1, "17:02"),
            f"Agreed, {other} it is. One more change, because "
            f"of my train: we begin {('one hour', 'two hours')[later - 1]} later than I wrote. The "
            f"day stays. Please tell me whether you come.\n\n{host.first}",
        ),
    ]
    facts = {
        "project": project,
        "host": host,
        "room": other,
        "day": second,
        "clock": f"{hour + later}:00",
        "old": (room, first, f"{hour}:00"),
    }
    return Story([Thread("review", f"Review of {project}", mails, unread=True)], facts)


def tell_leave(cast: Cast) -> Story:
    """A leave that is approved, then moved by a week and shortened by a day."""
    rng, boss = cast.draw("leave"), cast.team[0]
    monday = cast.today + timedelta(days=7 - cast.today.weekday() + 7 * rng.randint(4, 6))
    asked = (monday, monday + timedelta(days=11))
    agreed = (monday + timedelta(days=7), monday + timedelta(days=17))
    deputy = cast.team[10]
    mails = [
        letter(
            cast.me,
            [boss],
            cast.at(12, "08:40"),
            f"Hi {boss.first},\n\nmay I be away from "
            f"{long_day(asked[0])} to {long_day(asked[1])}?\n\n{cast.me.first}",
        ),
        letter(
            boss,
            [cast.me],
            cast.at(12, "13:30"),
            f"From my side, yes. I will ask the others and come back to you.\n\n{boss.first}",
        ),
        letter(
            boss,
            [cast.me],
            cast.at(2, "10:20"),
            "The others need you in the first of these "
            "weeks. Can you begin one week later? You would also have to be back on the last "
            f"Friday, so your last day away is the Thursday.\n\n{boss.first}",
        ),
        letter(
            cast.me,
            [boss],
            cast.at(2, "10:51"),
            "That works, I take it like that: one week "
            f"later, and to the Thursday. {deputy.name} stands in for me.\n\n{cast.me.first}",
        ),
    ]
    given = (monday + timedelta(days=1), monday + timedelta(days=rng.randint(4, 9)))
    facts = {"boss": boss, "asked": asked, "agreed": agreed, "given": given, "deputy": deputy}
    return Story([Thread("leave", "My leave", mails, "archive")], facts)
