"""Who solves cases: calls of tools, and what is read out of their replies."""

import json
import re
from datetime import date
from typing import Any

from hud_mcp import ActionFailed, Agent

__all__ = ["Desk"]

_WEEK = ["Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays"]
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


class Desk:
    """Acts through an agent's tools.

    Args:
        agent: Whose.

    Attributes:
        today: The day of the prompt, as `2025-03-14`.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        day, month, year = re.search(r"Today is \w+ (\d+) (\w+) (\d{4})", agent.prompt).groups()
        self.today = date(int(year), _MONTHS.index(month) + 1, int(day)).isoformat()

    async def get(self, tool: str, **args: Any) -> Any:
        """Look something up."""
        return json.loads(await self._agent.tool(tool, **args))

    async def do(self, tool: str, **args: Any) -> str:
        """Change something."""
        return await self._agent.tool(tool, **args)

    async def policy(self, topic: str) -> str:
        """Read the policy on a topic."""
        return await self._agent.tool("read_policy", topic=topic)

    async def ask(self, message: str) -> str:
        """Say something to the customer, and return the reply."""
        return (await self._agent.say(message)).text

    async def finish(self) -> str:
        """Let the customer go, and return the answer."""
        await self.ask("Is there anything else that I can do for you?")
        return "done"

    async def customer(self, said: str) -> dict[str, Any]:
        """The account of the email address that the customer has told.

        Raises:
            LookupError: There is none.
        """
        email = re.search(r"[\w.]+@[\w.]+\w", said)[0]
        try:
            return await self.get("find_customer", email=email)
        except ActionFailed as exc:
            raise LookupError(email) from exc

    async def order(self, said: str) -> dict[str, Any]:
        """The order whose number the customer has told."""
        return await self.get("get_order", order_id=self.number(said))

    def number(self, said: str) -> str:
        """The number of an order in a text."""
        return re.search(r"AR-\d+", said)[0]

    def named(self, order: dict[str, Any]) -> dict[str, Any]:
        """The item of an order that the prompt names."""
        return next(item for item in order["items"] if item["name"] in self._agent.prompt)

    async def pay(self, order: dict[str, Any], cents: int, paid_to: str) -> None:
        """Pay money of an order back."""
        args = {"order_id": order["id"], "amount_eur": cents / 100, "paid_to": paid_to}
        await self.do("pay_refund", **args)

    async def charge(self, person: dict[str, Any], cents: int, purpose: str) -> None:
        """Charge a customer."""
        args = {"customer_id": person["id"], "amount_eur": cents / 100, "purpose": purpose}
        await self.do("charge_customer", **args)

    async def issue(self, person: dict[str, Any], cents: int, until: str) -> str:
        """Issue a gift card, and return its number."""
        args = {"customer_id": person["id"], "amount_eur": cents / 100, "expires_on": until}
        return re.search(r"GC-\d+-\d+", await self.do("issue_gift_card", **args))[0]

    async def slots(self, first_day: str, last_day: str) -> list[dict[str, Any]]:
        """The free slots between two days, however many calls that takes."""
        found: list[dict[str, Any]] = []
        while True:
            rows = await self.get("list_free_slots", first_day=first_day, last_day=last_day)
            found += [row for row in rows if row not in found]
            if len(rows) < 60:  # noqa: PLR2004  # the tool's own limit
                return found
            first_day = rows[-1]["day"]

    def suits(self, when: str, slot: dict[str, Any]) -> bool:
        """Whether a slot is on the days and after the time that a customer has told."""
        day = _WEEK[date.fromisoformat(slot["day"]).weekday()]
        first = re.search(r"from (\d\d:\d\d) on", when)[1]
        return day in when and slot["time"] >= first

    def years_on(self, policy: str) -> str:
        """The day until which a new gift card is valid."""
        years = int(re.search(r"for (\d+) years from today", policy)[1])
        today = date.fromisoformat(self.today)
        return today.replace(year=today.year + years).isoformat()
