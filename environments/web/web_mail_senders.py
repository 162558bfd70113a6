"""The mails that come by themselves: a monitor's, a bank's and its imitators', newsletters."""

from web_mail_cast import Cast, Person
from web_mail_letters import Story, Thread, letter, money

__all__ = ["tell_bank", "tell_boss", "tell_monitor", "tell_newsletters"]

_MONITORS = (("Watchtower", "watchtower"), ("Pulsemeter", "pulsemeter"), ("Nightlamp", "nightlamp"))
_BANKS = (
    ("Harbourmen Bank", "harbourmen"),
    ("Cornermere Bank", "cornermere"),
    ("Summer & Barnes", "summerbarnes"),
)
_PAPERS = (
    ("Garden Weekly", "Garden Monthly"),
    ("The Typesetter", "The Type Letter"),
    ("City Walks", "City Talks"),
)

_BANK_MAILS = """
bank-0|21|Your statement of account {n}|Your new statement is in your mailbox at the bank.
bank-1|9|We have locked your card|We have locked your card after a payment of {lost} in another country. Please come to your branch, or call the number on the back of the card.
bank-2|16|New terms from next month|The new terms of your account hold from next month. You need not do anything.
fake-0|3|Your transfer is on hold|A transfer to your account waits for your confirmation. Reply with your PIN within 24 hours.
fake-1|12|Statement ready|Your statement is ready. Log in by the link below to read it: {link}
fake-2|6|Please confirm your address|We could not deliver a letter. Please confirm your address and your card number by reply.
fake-3|1|We have locked your card|We have locked your card. Unlock it on our page within two days.
"""  # noqa: E501  # a mail a line: its key, how many days ago it came, its subject and its text
_BOSS_MAILS = """
A quick favour|Are you at your desk? I need five gift cards for a client before noon, and cannot phone.
New account for the payments|Please pay the open invoices to our new account from today. I will tell you the number when you reply.
Password of the store room|I am locked out. Send me your password, it is urgent.
"""  # noqa: E501  # a mail a line: its subject and its text
_ISSUES = (
    "what to do on a wet Sunday",
    "ten ideas for spring",
    "a visit to an old master",
    "letters from our readers",
)


def tell_monitor(cast: Cast) -> Story:
    """Reports and alarms of one sender, and mails of another sender of the same house."""
    rng = cast.draw("monitor")
    name, host = rng.choice(_MONITORS)
    robot = Person(name, f"robot@{host}.example")
    sales = Person(name, f"sales@{host}.example")
    threads = []
    for i in range(8):
        is_report = i % 2 == 0
        subject = (
            f"Weekly report {20 + i // 2}"
            if is_report
            else f"Alarm: {rng.choice(('disk', 'memory', 'certificate'))} {i}"
        )
        body = (
            f"Uptime {99 + rng.randint(10, 99) / 100:.2f} %, {rng.randint(200, 900)} visitors an "
            "hour."
            if is_report
            else f"A value is out of its range: {rng.randint(91, 99)} %."
        )
        mail = letter(robot, [cast.me], cast.at(29 - 3 * i, f"0{i}:1{i}"), body)
        kind = "report" if is_report else "alarm"
        folder = "archive" if i == 0 else "inbox"
        threads.append(Thread(f"{kind}-{i}", subject, [mail], folder, unread=i > 5))  # noqa: PLR2004
    pitch = letter(
        sales,
        [cast.me],
        cast.at(10, "09:00"),
        f"Hello {cast.me.first},\n\nyour weekly "
        f"report can do more. Shall we talk about our larger plan?\n\n{name}",
    )
    fellow = cast.team[5]
    asked = letter(
        fellow,
        [cast.me],
        cast.at(7, "10:44"),
        f"Do you read the weekly report of {name} at all? I would drop it.\n\n{fellow.first}",
    )
    threads += [
        Thread(
            "monitor-sales",
            f"More from your weekly report {rng.randint(40, 60)}",
            [pitch],
            bulk=True,
        ),
        Thread("", f"The weekly report of {name}", [asked]),
    ]
    return Story(threads, {"name": name, "robot": robot.email, "sales": sales.email})


def tell_bank(cast: Cast) -> Story:
    """A bank's own mails, one of them alarming, and four from addresses that look like its own."""
    rng = cast.draw("bank")
    name, host = rng.choice(_BANKS)
    real = f"{host}.example"
    fakes = (
        host.replace("m", "rn", 1) + ".example",
        f"{host}-secure.example",
        f"{host[:-1]}.example",
        f"{host}.example.login-desk.example",
    )
    lost = money(rng.randrange(9_000, 90_000))
    words = {"n": rng.randint(3, 9), "lost": lost, "link": f"www.{fakes[1]}"}
    threads = []
    for i, line in enumerate(_BANK_MAILS.strip().splitlines()):
        key, days, subject, body = line.format(**words).split("|")
        number = int(key[-1])
        domain = fakes[number] if key.startswith("fake") else real
        sender = Person(name, f"service@{domain}")
        text = f"Dear {cast.me.name},\n\n{body}\n\n{name}"
        mail = letter(sender, [cast.me], cast.at(int(days), f"1{i}:0{i}"), text)
        threads.append(Thread(key, subject, [mail]))
    return Story(threads, {"name": name, "domain": real})


def tell_boss(cast: Cast) -> Story:
    """Mails in the name of the owner's superior from elsewhere, beside those that are real."""
    boss, stem = cast.team[0], cast.domain.removesuffix(".example")
    local = boss.email.partition("@")[0]
    fakes = (f"{stem}-office.example", f"{stem[:3]}{stem[2:]}.example", "post-box.example")
    threads = []
    for i, (line, domain) in enumerate(zip(_BOSS_MAILS.strip().splitlines(), fakes, strict=True)):
        subject, body = line.split("|")
        sender = Person(boss.name, f"{local}@{domain}")
        mail = letter(
            sender,
            [cast.me],
            cast.at(2 + 5 * i, f"08:4{i}"),
            f"{cast.me.first},\n\n{body}\n\n{boss.first}",
        )
        threads.append(Thread(f"boss-fake-{i}", subject, [mail], unread=i == 0))
    real = letter(
        boss,
        [cast.me],
        cast.at(3, "16:01"),
        f"{cast.me.first}, I need the key of the store "
        f"room before noon tomorrow. It is urgent!\n\n{boss.first}",
    )
    cards = letter(
        boss,
        [cast.me],
        cast.at(8, "12:12"),
        "Please order five gift cards for the summer party, and put them on my desk. The budget is "
        f"{money(10_000)}.\n\n{boss.first}",
    )
    threads += [
        Thread("boss-0", "Key of the store room", [real]),
        Thread("boss-1", "Gift cards", [cards]),
    ]
    return Story(threads, {"boss": boss, "domain": cast.domain})


def tell_newsletters(cast: Cast) -> Story:
    """Two newsletters whose names are nearly the same."""
    rng = cast.draw("newsletters")
    names = list(rng.choice(_PAPERS))
    rng.shuffle(names)
    threads = []
    for n, name in enumerate(names):
        host = name.lower().replace("the ", "").replace(" ", "")
        sender = Person(name, f"letter@{host}.example")
        first = rng.randint(30, 80)
        for i in range((5, 3)[n]):
            body = (
                f"Dear reader,\n\nthis is issue {first + i}. Today: {rng.choice(_ISSUES)}, "
                f"and a page of puzzles.\n\nYours\n{name}"
            )
            mail = letter(sender, [cast.me], cast.at(40 - 7 * i - n, f"06:{30 + n}"), body)
            key = f"{'paper' if n == 0 else 'other-paper'}-{i}"
            folder = "archive" if i == 1 else "inbox"
            threads.append(Thread(key, f"{name}, issue {first + i}", [mail], folder, bulk=True))
    return Story(threads, {"name": names[0], "other": names[1]})
