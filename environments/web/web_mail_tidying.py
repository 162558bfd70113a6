"""The mail client's tasks: what is to be filed, reported, filtered, deleted and set."""

from typing import Any, Literal

import web_mail_tidying_oracles as oracles
from web_mail_data import new_mailbox
from web_mail_opening import Seed, begin
from web_mail_search import matches_filter

from hud_mcp import BrowserWorld, grade_checks

__all__ = [
    "TASKS",
    "mail_delete_drafts",
    "mail_file_receipts",
    "mail_filter",
    "mail_merge_contacts",
    "mail_report_fakes",
    "mail_unsubscribe",
    "mail_vacation",
]


async def mail_file_receipts(
    browser: BrowserWorld, of: Literal["shop", "month"] = "shop", seed: Seed = 0
):
    """Ask to move all receipts of a shop or a month to their folder."""
    box, start = await begin(browser, seed)
    told = box.facts["receipts"]
    which = {"shop": told["shop"], "month": f"{told['month']} {told['year']}"}[of]
    note = {"shop": "", "month": " The day counts on which the mail came."}[of]
    yield (
        f"Move all receipts of {which} from the inbox to the folder Receipts. A receipt is a mail "
        f"that has a file attached whose name begins with 'receipt-'.{note} Leave all other mails "
        "where they are."
    )
    keys = [box.ids[key] for key in told["books" if of == "shop" else "keys"]]
    share, effects = start.grade_moves(keys, "folder", "Receipts")
    yield grade_checks({"receipts moved": share}, effects)


async def mail_report_fakes(
    browser: BrowserWorld, of: Literal["bank", "colleague"] = "bank", seed: Seed = 0
):
    """Ask to report as spam what only pretends to be from a sender."""
    box, start = await begin(browser, seed)
    bank, boss = box.facts["bank"], box.facts["boss"]
    prompts = {
        "bank": f"Some mails in my inbox only pretend to come from {bank['name']}. Its own mails "
        f"come from addresses that end with @{bank['domain']}. ",
        "colleague": f"Some mails in my inbox only pretend to come from {boss['boss'].name}. Mails "
        f"of my colleagues come from addresses that end with @{boss['domain']}. ",
    }
    yield (
        f"{prompts[of]}Report all mails of this kind as spam that claim this sender's name, and "
        "leave all others where they are."
    )
    prefix = {"bank": "fake-", "colleague": "boss-fake-"}[of]
    keys = [value for key, value in box.ids.items() if key.startswith(prefix)]
    share, effects = start.grade_moves(keys, "folder", "spam")
    yield grade_checks({"false mails reported": share}, effects)


async def mail_unsubscribe(browser: BrowserWorld, seed: Seed = 0):
    """Ask to leave a newsletter, and to throw its issues away."""
    box, start = await begin(browser, seed)
    name = box.facts["newsletters"]["name"]
    yield (
        f"Unsubscribe from the newsletter '{name}', and move all its issues to the trash, those in "
        "the archive too. Keep every other newsletter."
    )
    keys = [value for key, value in box.ids.items() if key.startswith("paper-")]
    share, effects = start.grade_moves(keys, "folder", "trash", beside=["unsubscribed"])
    sender = start.thread(keys[0])["messages"][0]["from"]["email"]
    left = start.box["unsubscribed"]
    effects += [f"mail.unsubscribed.{each}" for each in left if each != sender]
    yield grade_checks({"unsubscribed": sender in left, "issues in the trash": share}, effects)


async def mail_filter(
    browser: BrowserWorld, by: Literal["sender", "subject"] = "sender", seed: Seed = 0
):
    """Ask for a filter that labels and archives, and to apply it to what is there."""
    box, start = await begin(browser, seed)
    told = box.facts["monitor"]
    which = {
        "sender": f"all mails from {told['robot']}",
        "subject": f"the weekly reports from {told['robot']}, but not for its alarms",
    }[by]
    yield (
        f"Make a filter for {which}. It adds the label Reports, archives the mail, and does "
        "nothing "
        "else. Apply it to the mails that are there, too. Other senders' mails stay as they are."
    )
    kinds = ("report-", "alarm-") if by == "sender" else ("report-",)
    keys = [value for key, value in box.ids.items() if key.startswith(kinds)]
    paths = [f"threads.{key}.{name}" for key in keys for name in ("folder", "labels", "snoozed")]
    made = start.new_filters()
    rule = made[0] if len(made) == 1 else None
    effects = start.changes(*paths, *([f"filters.{rule['id']}"] if rule else []))
    rows = [start.thread(key) for key in keys]
    done = sum(t.get("folder") == "archive" and t.get("labels") == ["Reports"] for t in rows)
    checks: dict[str, bool | float] = {
        "catches what it is for": rule is not None and _catches(rule, told, by),
        "does what was asked": rule is not None and _does(rule),
        "mails that are there": done / len(keys),
    }
    yield grade_checks(checks, effects)


async def mail_delete_drafts(browser: BrowserWorld, seed: Seed = 0):
    """Ask to delete all drafts without text but one."""
    box, start = await begin(browser, seed)
    told = box.facts["drafts"]
    yield (
        "Delete all drafts that have no text, whether or not they have a subject, but keep the one "
        f"to {told['empty-to'].name}: I am going to write it. Keep all other drafts, too."
    )
    ids = [told["ids"][name] for name in ("empty-0", "empty-2")]
    left = {draft["id"] for draft in start.box["drafts"]}
    share = sum(key not in left for key in ids) / len(ids)
    effects = start.changes(*(f"drafts.{key}" for key in ids))
    extra = sum(effect.startswith("mail.drafts.") for effect in effects)
    yield grade_checks({"empty drafts deleted": share / (1 + extra)}, effects)


async def mail_vacation(
    browser: BrowserWorld, days: Literal["given", "agreed"] = "given", seed: Seed = 0
):
    """Ask for a vacation reply, for days that are given or that a conversation has settled."""
    box, start = await begin(browser, seed)
    told = box.facts["leave"]
    deputy = told["deputy"].name
    first, last = told[days]
    prompts = {
        "given": f"Turn on the vacation reply from {first} to {last}, with the subject 'On leave' "
        f"and the text 'Please write to {deputy}.' Reply only to people in my contacts.",
        "agreed": "Turn on the vacation reply for the leave that I have settled with "
        f"{told['boss'].name} in the conversation 'My leave', from its first to its last day. The "
        "subject is 'On leave'. The text is 'Please write to NAME.', with the full name of the "
        "colleague who stands in for me. Reply only to people in my contacts.",
    }
    yield prompts[days]
    now = start.box["settings"]["vacation"]
    wanted = {"first": str(first), "last": str(last), "subject": "On leave", "contacts_only": True}
    checks = {name: now["on"] and now[name] == value for name, value in wanted.items()}
    checks["text"] = now["on"] and now["text"].rstrip(".") == f"Please write to {deputy}"
    yield grade_checks(checks, start.changes("settings.vacation"))


async def mail_merge_contacts(
    browser: BrowserWorld, which: Literal["named", "all"] = "named", seed: Seed = 0
):
    """Ask to merge the entries of a person, or of everybody who has two."""
    box, start = await begin(browser, seed)
    pairs = box.facts["contacts"]["pairs"][: 1 if which == "named" else None]
    one = pairs[0]
    prompts = {
        "named": f"My address book has two entries for {one['name']}; the name of one of them is "
        f"{one['short']}. Merge them. The full name and the company stay, and the address "
        f"{one['office']} comes first.",
        "all": f"Some people have two entries in my address book, {one['name']} among them. Both "
        "have the same phone number, and only one of them has a company. Merge these entries. "
        "Keep the name of the one that "
        "has a company, and its address comes first. Leave all other entries as they are.",
    }
    yield prompts[which]
    was = new_mailbox(seed).state["contacts"]
    ids = [c["id"] for c in was for pair in pairs if pair["phone"] in c["phones"]]
    checks = {}
    for pair in pairs:
        found = [c for c in start.box["contacts"] if pair["phone"] in c["phones"]]
        fields = {"name": pair["name"], "company": pair["company"], "phones": [pair["phone"]],
                  "emails": [pair["office"], pair["home"]]}  # fmt: skip
        checks[pair["name"]] = len(found) == 1 and all(
            found[0][name] == value for name, value in fields.items()
        )
    own = {c["id"] for c in start.box["contacts"] if any(p["phone"] in c["phones"] for p in pairs)}
    yield grade_checks(checks, start.changes(*(f"contacts.{key}" for key in {*ids, *own})))


def _catches(rule: dict[str, Any], told: dict[str, Any], by: str) -> bool:
    """Whether a filter takes the mails that are to come, and no others."""
    wanted = (
        (told["robot"], "Weekly report 99", True),
        (told["robot"], "Alarm: disk 99", by == "sender"),
    )
    others = (
        (told["sales"], "More from your weekly report 99", False),
        ("iris@paper.example", "Weekly report 99", False),
    )
    return all(
        matches_filter(rule, _probe(told["name"], *mail)) == right
        for *mail, right in (*wanted, *others)
    )


def _probe(name: str, email: str, subject: str) -> dict[str, Any]:
    mail = {
        "from": {"name": name, "email": email},
        "to": [],
        "cc": [],
        "body": "",
        "attachments": [],
    }
    return {"subject": subject, "folder": "inbox", "messages": [mail]}


def _does(rule: dict[str, Any]) -> bool:
    return rule["label"] == "Reports" and rule["archive"] and not (rule["read"] or rule["star"])


TASKS = (
    (mail_file_receipts, "File receipts", oracles.file_receipts),
    (mail_report_fakes, "Report mails with a false sender as spam", oracles.report_fakes),
    (mail_unsubscribe, "Leave a newsletter", oracles.unsubscribe),
    (mail_filter, "Make a filter and apply it", oracles.make_filter),
    (mail_delete_drafts, "Clean up the drafts", oracles.delete_drafts),
    (mail_vacation, "Set the vacation reply", oracles.set_vacation),
    (mail_merge_contacts, "Merge entries of the address book", oracles.merge_contacts),
)
