"""How the tasks of tidying are solved: the steps of a person at the mail client."""

import re
from datetime import date, timedelta

from web_mail_data import new_mailbox
from web_mail_oracle_steps import (
    button_in,
    items,
    open_mail,
    open_place,
    read_down,
    read_year,
    search,
    select_all,
    unfold,
)
from web_steps import check, choose, fill, heading, press_button, see

from hud_mcp import Agent

__all__ = [
    "delete_drafts",
    "file_receipts",
    "make_filter",
    "merge_contacts",
    "report_fakes",
    "set_vacation",
    "unsubscribe",
]

_MONTHS = {
    name: i
    for i, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}


async def file_receipts(agent: Agent, of: str, seed: int) -> None:
    """Search for the receipts, select all of them, and move them."""
    told = new_mailbox(seed).facts["receipts"]
    if of == "shop":
        await search(agent, f'in:inbox filename:receipt- from:"{told["shop"]}"')
    else:
        month = date.fromisoformat(f"{told['year']}-{_MONTHS[told['month'][:3]]:02}-01")
        after = (month + timedelta(days=31)).replace(day=1)
        await search(agent, f"in:inbox filename:receipt- after:{month} before:{after}")
    await select_all(agent)
    await press_button(agent, "Move to")
    await agent.click('role=menuitem[name="Receipts"]')
    await see(agent, "moved to Receipts")


async def report_fakes(agent: Agent, of: str, seed: int) -> None:
    """Look for the name from elsewhere than the real address, and report what is found."""
    facts = new_mailbox(seed).facts
    if of == "bank":
        name, domain = facts["bank"]["name"], facts["bank"]["domain"]
    else:
        name, domain = facts["boss"]["boss"].name, facts["boss"]["domain"]
    await search(agent, f'in:inbox from:"{name} <" -from:"@{domain}>"')
    await select_all(agent)
    await press_button(agent, "Report spam")
    await see(agent, "reported as spam")


async def unsubscribe(agent: Agent, seed: int) -> None:
    """Leave the list from one of its issues, then throw all of them away."""
    name = new_mailbox(seed).facts["newsletters"]["name"]
    await search(agent, f'from:"{name} <"')
    await open_mail(agent, name)
    await press_button(agent, "Unsubscribe")
    await see(agent, "You have left it.")
    await search(agent, f'from:"{name} <"')
    await select_all(agent)
    await press_button(agent, "Delete")
    await see(agent, "moved to the trash")


async def make_filter(agent: Agent, by: str, seed: int) -> None:
    """Write the filter's conditions and actions, and apply it."""
    told = new_mailbox(seed).facts["monitor"]
    await open_place(agent, "Filters", shows="New filter")
    await press_button(agent, "New filter")
    await fill(agent, From_has=told["robot"])
    if by == "subject":
        await fill(agent, Subject_has="Weekly report")
    await choose(agent, "Add the label", "Reports")
    await check(agent, "Archive it")
    await check(agent, "Also apply it to the mails that are there")
    await press_button(agent, "Save filter")
    await see(agent, "The filter is saved.")


async def delete_drafts(agent: Agent, seed: int) -> None:
    """Delete one draft without text after the other, but that to somebody."""
    kept = new_mailbox(seed).facts["drafts"]["empty-to"].email
    await open_place(agent, "Drafts", shows=heading("Drafts"))
    while drafts := [d for d in items(agent.text) if "No text" in d and kept not in d]:
        await agent.click(ref=button_in(drafts[0], "Delete"))
        await press_button(agent, "Delete it")
        await see(agent, "The draft was deleted.")
        await see(agent, re.search(r"To: .+", drafts[0])[0], gone=True)
        await press_button(agent, "Dismiss message")


async def set_vacation(agent: Agent, days: str, seed: int) -> None:
    """Read the days if they are not given, and fill in the form."""
    told = new_mailbox(seed).facts["leave"]
    first, last = told["given"]
    deputy = told["deputy"].name
    if days == "agreed":
        await search(agent, 'subject:"My leave"')
        await open_mail(agent, "My leave")
        year = read_year(agent.text)
        await unfold(agent, 4)
        first, last, deputy = _read_leave("\n".join(await read_down(agent)), year)
    await open_place(agent, "Settings", shows="Save vacation reply")
    await check(agent, "Send a reply while I am away")
    await fill(
        agent,
        First_day=str(first),
        Last_day=str(last),
        Subject_of_the_reply="On leave",
        Text_of_the_reply=f"Please write to {deputy}.",
    )
    await check(agent, "Reply only to people in my contacts")
    await press_button(agent, "Save vacation reply")
    await see(agent, "Vacation reply: saved.")


def _read_leave(text: str, year: int) -> tuple[date, date, str]:
    """The days asked for, one week later, and up to the Thursday."""
    asked = re.search(r"from \w+ (\d+) (\w+) to \w+ (\d+) (\w+)\?", text).groups()
    first, last = (date(year, _MONTHS[asked[i + 1][:3]], int(asked[i])) for i in (0, 2))
    deputy = re.search(r"([\w]+ [\w]+) stands in for me", text)[1]
    return first + timedelta(days=7), last + timedelta(days=6), deputy


async def merge_contacts(agent: Agent, which: str, seed: int) -> None:
    """Select the entries with one phone number, and merge them into the one with a company."""
    await open_place(agent, "Contacts", shows="Merge selected entries")
    if which == "named":
        name = new_mailbox(seed).facts["contacts"]["pairs"][0]["name"]
        await agent.type(name.split()[1], 'role=searchbox[name="Find a contact"]')
    pairs = _pairs(await read_down(agent, by_px=250))
    for kept, other in pairs:
        await check(agent, f"Select {kept}")
        await check(agent, f"Select {other}")
        await press_button(agent, "Merge selected entries")
        await agent.click(f'role=radio[name="{kept}"]')
        await press_button(agent, "Merge")
        await see(agent, ": merged.")
        await see(agent, heading("Merge entries"), gone=True)
        await press_button(agent, "Dismiss message")


def _pairs(views: list[str]) -> list[tuple[str, str]]:
    """Entries that share a phone number; the one with a company comes first."""
    phones: dict[str, set[str]] = {}
    companies: set[str] = set()
    for part in (part for view in views for part in items(view)):
        name = re.search(r'checkbox "Select ([^"]+)"', part)
        phone = re.search(r"\+44 [\d ]+\d", part)
        if name and phone:
            phones.setdefault(phone[0], set()).add(name[1])
            of_company = re.search(r"^ *## .+\n *(?![^\n]*@|\+44|…)\w", part, re.MULTILINE)
            companies |= {name[1]} if of_company else set()
    pairs = [sorted(names, key=lambda n: n not in companies) for names in phones.values()]
    return [(names[0], names[1]) for names in pairs if len(names) == 2]  # noqa: PLR2004
