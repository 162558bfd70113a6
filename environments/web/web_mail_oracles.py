"""How the tasks of finding and writing are solved: the steps of a person at the mail client."""

import re
from datetime import date, timedelta

from web_mail_data import new_mailbox
from web_mail_letters import plain_day
from web_mail_oracle_steps import (
    add_people,
    button_in,
    items,
    open_mail,
    open_place,
    read_down,
    read_people,
    read_year,
    search,
    send,
    unfold,
    write_text,
)
from web_steps import fill, heading, press_button, see

from hud_mcp import Agent

__all__ = [
    "answer_request",
    "find_amount",
    "finish_draft",
    "forward_plan",
    "reply_to_all",
    "schedule",
]

_MONTHS = {
    name: i
    for i, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}


async def find_amount(agent: Agent, kind: str, seed: int) -> str:
    """Search for the mail, and read the amount in it."""
    facts = new_mailbox(seed).facts
    if kind == "expenses":
        return await _add_expenses(agent, facts["expenses"])
    if kind == "offer":
        await search(agent, f'subject:"Offer for {facts["offer"]["item"]}"')
        await open_mail(agent, "Offer for")
        await unfold(agent, 6)
        text = "\n".join(await read_down(agent))
        return re.search(r"with delivery and everything else it is £([\d,]+\.\d\d)", text)[1]
    if kind == "invoice":
        number = str(facts["invoices"]["numbers"][1])
    else:
        await search(agent, "subject:reminder")
        number = re.search(r"Reminder: invoice (\d+)", agent.text)[1]
    await search(agent, f'subject:"Invoice {number}" -subject:reminder')
    await open_mail(agent, f"Invoice {number}")
    return re.search(r"comes to £([\d,]+\.\d\d)", agent.text)[1]


async def _add_expenses(agent: Agent, told: dict[str, str]) -> str:
    await search(agent, f'subject:"Expenses of {told["month"]}"')
    await open_mail(agent, "Expenses of")
    await press_button(agent, re.search(r'button "(Open expenses-[^"]+)"', agent.text)[1])
    await see(agent, "Content of")
    amounts = [
        float(amount)
        for _, who, what, amount in _rows(await read_down(agent))
        if (who, what) == (told["who"], told["what"])
    ]
    return f"{sum(round(each * 100) for each in amounts) / 100:.2f}"


def _rows(views: list[str]) -> list[tuple[str, str, str, str]]:
    """The rows of a table; each view goes on where the one before it had some of its last rows."""
    rows: list[tuple[str, str, str, str]] = []
    for view in views:
        seen = re.findall(r"\| ([\d-]+) \| (.+?) \| (.+?) \| ([\d.]+)$", view, re.MULTILINE)
        known = next(n for n in range(len(seen), -1, -1) if not n or rows[-n:] == seen[:n])
        rows += seen[known:]
    return rows


async def forward_plan(agent: Agent, named_by: str, seed: int) -> None:
    """Find who is meant, and forward the mail with one of its files."""
    told = new_mailbox(seed).facts["plan"]
    first = told["right"].first
    if named_by == "work":
        await search(agent, f'from:{first} "look after {told["topic"]}"')
        await open_mail(agent, "About")
    else:
        await open_place(agent, "Contacts", shows="Merge selected entries")
        await agent.type(first, 'role=searchbox[name="Find a contact"]')
    name = "" if named_by == "work" else told["right"].company
    lines = agent.text.splitlines()
    start = next(i for i, line in enumerate(lines) if (name or "To:") in line)
    email = read_people("\n".join(lines[start:]))[0]
    await search(agent, f'subject:"Plan of the {told["hall"]}"')
    await open_mail(agent, "Plan of the")
    await press_button(agent, "Forward")
    await see(agent, "Forwarded mail")
    await add_people(agent, "To", email)
    await press_button(agent, f"Remove {told['guests']}")
    await agent.click('role=textbox[name="Text"]')
    await agent.press("Control", "Home")
    await agent.step({"type": "type", "text": "Here is the plan."})
    await send(agent)


async def reply_to_all(agent: Agent, leave_out: str, seed: int) -> None:
    """Reply to all, and take out whom the task leaves out."""
    told = new_mailbox(seed).facts["offsite"]
    await search(agent, f'subject:"Offsite in {told["place"]}"')
    await open_mail(agent, "Offsite in")
    left = [told["named"].name]
    if leave_out == "declined":
        await unfold(agent, 7)
        mails = [mail for view in await read_down(agent) for mail in view.split("- article ")]
        refusals = (each for each in mails if "plan without me" in each)
        left = list(dict.fromkeys(re.match(r'"([^,"]+),', each)[1] for each in refusals))
    await press_button(agent, "Reply to all")
    await see(agent, 'textbox "Text"')  # it has the focus, so it is in view
    for name in left:
        await press_button(agent, re.search(rf'button "(Remove {name} [^"]+)"', agent.text)[1])
    await write_text(agent, "I will be there on both days.")
    await send(agent)


async def schedule(agent: Agent, act: str, seed: int) -> str | None:
    """Follow the conversation from its first proposal to its last change."""
    told = new_mailbox(seed).facts["review"]
    await search(agent, f'subject:"Review of {told["project"]}"')
    year = read_year(agent.text)
    await open_mail(agent, "Review of")
    await unfold(agent, 5)
    day, clock, room = _read_plan("\n".join(await read_down(agent)), year)
    if act == "answer":
        return f"{day} {clock}, {room}"
    if act == "reply":
        await press_button(agent, "Reply")
        await see(agent, 'textbox "Text"')  # it has the focus, so it is in view
        await write_text(agent, f"I will be there on {day} at {clock} in {room}.")
        return await send(agent)
    await press_button(agent, "Snooze")
    await fill(agent, Another_day=str(day - timedelta(days=1)))
    await press_button(agent, "Snooze until then")
    return await see(agent, "snoozed until")


def _read_plan(text: str, year: int) -> tuple[date, str, str]:
    weekday, number, month = re.search(r"with you on (\w+) (\d+) (\w+) at", text).groups()
    first = date(year, _MONTHS[month[:3]], int(number))
    wanted, hour = re.search(r"take the (\w+) of the same week, at (\d+):00", text).groups()
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    day = first + timedelta(days=names.index(wanted) - names.index(weekday))
    later = {"one hour": 1, "two hours": 2}[re.search(r"begin (one hour|two hours) later", text)[1]]
    return day, f"{int(hour) + later}:00", re.search(r"Agreed, (\w+) it is", text)[1]


async def answer_request(agent: Agent, seed: int) -> None:
    """Find the order in the firm's confirmation, and reply with its number and nothing else."""
    facts = new_mailbox(seed).facts["order"]
    await search(agent, 'subject:"Number of our order"')
    await open_mail(agent, "Number of our order")
    item, firm = re.search(r"our order of (.+) with (.+?)\. It should", agent.text).groups()
    await search(agent, f'subject:"Your order: {item}"')
    await open_mail(agent, "Your order")
    number = re.search(r"confirm your order (P-\d+)", agent.text)[1]
    agent.log(f"{firm} calls it {number}.")
    await search(agent, f'subject:"Number of our order" from:{facts["who"].first}')
    await open_mail(agent, "Number of our order")
    await press_button(agent, "Reply")
    await see(agent, 'textbox "Text"')  # it has the focus, so it is in view
    await write_text(agent, number)
    await send(agent)


async def finish_draft(agent: Agent, seed: int) -> None:
    """Read the day, put it into the draft, send that, and delete the older one."""
    told = new_mailbox(seed).facts["drafts"]
    await search(agent, f"from:{told['fellow'].first} subject:delivery")
    await open_mail(agent, "A day for the delivery")
    year = read_year(agent.text)
    number, month = re.search(r" on \w+ (\d+) (\w+), not two days", agent.text).groups()
    day = date(year, _MONTHS[month[:3]], int(number))
    await open_place(agent, "Drafts", shows=heading("Drafts"))
    await agent.click(ref=button_in(_draft(agent.text, told["subject"]), "Edit"))
    await see(agent, 'textbox "Text"')  # it has the focus, so it is in view
    await write_text(agent, told["text"].replace("[DAY]", plain_day(day)))
    await send(agent)
    await agent.click(ref=button_in(_draft(agent.text, told["subject"]), "Delete"))
    await press_button(agent, "Delete it")
    await see(agent, "The draft was deleted.")


def _draft(text: str, subject: str) -> str:
    """The newest draft with a subject."""
    return next(each for each in items(text) if each.startswith(f"## {subject}"))
