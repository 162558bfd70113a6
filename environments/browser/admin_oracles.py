"""How the desk's tasks are solved: the steps of a person who works there."""

import re
from datetime import date, timedelta

from site_steps import check, choose, fill, follow, heading, press_button, see, sign_in

from hud_mcp import Agent

__all__ = [
    "assign_open",
    "count",
    "delete_customer",
    "edit_customer",
    "email_owner",
    "renew",
    "settings",
    "top_customer",
    "update_ticket",
]

USER, PASSWORD = "mara", "lantern-42"
SWITCHES = {
    "two_step": "Two-step sign-in",
    "weekend_cover": "Weekend cover",
    "digest": "Daily digest",
}


async def update_ticket(agent: Agent, ticket: str, priority: str, assignee: str) -> None:
    """Open a ticket, change it, and save it."""
    await sign_in(agent, USER, PASSWORD)
    await search(agent, ticket)
    await follow(agent, ticket)
    await see(agent, heading(f"Ticket {ticket}"))
    await choose(agent, "Priority", priority)
    await choose(agent, "Assignee", assignee)
    await press_button(agent, "Save ticket")
    await see(agent, f"Ticket {ticket} saved.")


async def assign_open(agent: Agent, topic: str, assignee: str) -> None:
    """Filter, select every page's tickets, and assign them all at once."""
    await choose(agent, "Status", "Open")
    await choose(agent, "Assignee", "Nobody yet")
    if topic != "Any":
        await choose(agent, "Topic", topic)
    await see(agent, "Loading", gone=True)
    await check(agent, "Select all on this page")
    while _has_next(agent.text):
        await turn_page(agent)
        await check(agent, "Select all on this page")
    await choose(agent, "What to do", f"Assign to {assignee}")
    await press_button(agent, "Apply")
    await press_button(agent, "Yes, change them")
    await see(agent, "changed.")


async def edit_customer(agent: Agent, customer: str, email: str, country: str, region: str) -> None:
    """Open a customer, and write where it has moved."""
    await open_customer(agent, customer)
    await fill(agent, **{"E-mail": email})
    await choose(agent, "Country", country)
    await choose(agent, "Region", region)
    await press_button(agent, "Save customer")
    await see(agent, f"{customer} saved.")


async def renew(agent: Agent, customer: str, years: int) -> None:
    """Read when the contract ends, and write the next one's dates."""
    await open_customer(agent, customer)
    end = date.fromisoformat(re.search(r'"Contract until"[^\n]*: ([\d-]+)', agent.text)[1])
    first = end + timedelta(days=1)
    last = first.replace(year=first.year + years) - timedelta(days=1)
    await fill(agent, Contract_from=f"{first}", Contract_until=f"{last}")
    await press_button(agent, "Save customer")
    await see(agent, f"{customer} saved.")


async def delete_customer(agent: Agent, customer: str) -> None:
    """Open a customer and delete it; the browser's own question is answered with OK."""
    await open_customer(agent, customer)
    await press_button(agent, "Delete customer")
    await see(agent, heading("Customers"))


async def count(agent: Agent, topic: str, priority: str) -> int:
    """Go through the pages of a topic, and count."""
    await choose(agent, "Topic", topic)
    await see(agent, "Loading", gone=True)
    found = _rows_with(agent.text, priority)
    while _has_next(agent.text):
        await turn_page(agent)
        found += _rows_with(agent.text, priority)
    return found


async def top_customer(agent: Agent, plan: str, rank: int) -> str:
    """Filter by plan, sort by what was spent, and read the row."""
    await open_customers(agent)
    await choose(agent, "Plan", plan)
    for _ in ("ascending", "descending"):
        await see(agent, "Loading", gone=True)
        await press_button(agent, "Spent")
    await see(agent, "Loading", gone=True)
    names = re.findall(r'link "([^"]+)" \[\w+ /admin/customers/edit/', agent.text)
    return names[rank - 1]


async def settings(
    agent: Agent,
    close_after: int,
    reply_language: str,
    *,
    two_step: bool,
    weekend_cover: bool,
    digest: bool,
) -> None:
    """Turn what is not as wanted, and save."""
    await follow(agent, "Settings")
    await see(agent, 'switch "Daily digest"')
    wanted = {"two_step": two_step, "weekend_cover": weekend_cover, "digest": digest}
    for name, label in SWITCHES.items():
        is_on = re.search(rf'switch "{label}" \[[^]]*checked', agent.text)
        if bool(is_on) != wanted[name]:
            await agent.click(f'role=switch[name="{label}"]')
    await fill(agent, **{"Close waiting tickets after (days)": str(close_after)})
    await choose(agent, "Language of automatic replies", reply_language)
    await press_button(agent, "Save settings")
    await see(agent, "All changes are saved.")


async def email_owner(agent: Agent, customer: str, email: str) -> str:
    """Try to give the address away, and read why the desk refuses."""
    await open_customer(agent, customer)
    await fill(agent, **{"E-mail": email})
    await press_button(agent, "Save customer")
    await see(agent, "This address belongs to")
    return re.search(r"This address belongs to (.+) already\.", agent.text)[1]


async def open_customers(agent: Agent) -> None:
    """Open the list of customers."""
    await follow(agent, "Customers")
    await see(agent, heading("Customers"))
    await see(agent, "Loading", gone=True)


async def open_customer(agent: Agent, name: str) -> None:
    """Find a customer by name, and open it."""
    await open_customers(agent)
    await search(agent, name)
    await follow(agent, name)
    await see(agent, heading(name))


async def search(agent: Agent, words: str) -> None:
    """Search the list."""
    await agent.type(words, 'role=searchbox[name="Search"]', enter=True)
    await see(agent, "Loading", gone=True)


async def turn_page(agent: Agent) -> None:
    """Go to the next page of a list."""
    await press_button(agent, "Next")
    await see(agent, "Loading", gone=True)


def _has_next(text: str) -> bool:
    return re.search(r'button "Next" \[(?![^]]*disabled)', text) is not None


def _rows_with(text: str, priority: str) -> int:
    return len(re.findall(rf"\| {priority} \|", text))
