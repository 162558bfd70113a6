"""An e-mail with a ZIP: a list of prices, an order, and words that change the order."""

import csv
import io
import json
import random
import re
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from typing import Literal

from questions_case import MONEY, NUMBER, Case, cents, differing, drawing
from questions_xlsx import zip_files

from hud_mcp import Agent

__all__ = ["Ask", "draw", "solve"]

Ask = Literal["weight", "price"]

_GOODS = (
    "Brass hinge", "Copper nail 30 mm", "Oak dowel 8 mm", "Linseed oil 1 l", "Wood glue 500 g",
    "Beeswax block", "Steel wool", "Sandpaper P120", "Cotton rope 10 m", "Felt pad",
)  # fmt: skip


@dataclass(frozen=True)
class _Order:
    counts: dict[str, int]
    grams: dict[str, int]
    prices: dict[str, int]
    dropped: str
    doubled: str
    changed: str
    change: int

    def right(self, *, older: bool = False) -> dict[str, int]:
        """How many of each the last words ask for; `older` stops at the words before them."""
        counts = dict(self.counts)
        counts[self.changed] = self.change
        if not older:
            counts[self.doubled] *= 2
            counts[self.changed] = self.counts[self.changed]
            counts.pop(self.dropped)
        return counts

    def sum_of(self, each: dict[str, int], counts: dict[str, int]) -> int:
        return sum(each[name] * count for name, count in counts.items())


def _order(rng: random.Random) -> _Order:
    names = rng.sample(_GOODS, 6)
    dropped, doubled, changed = rng.sample(names, 3)
    counts = {name: rng.randint(2, 12) for name in names}
    return _Order(
        counts,
        {name: rng.randrange(40, 1200, 20) for name in _GOODS},
        {name: rng.randrange(95, 1900, 5) for name in _GOODS},
        dropped,
        doubled,
        changed,
        counts[changed] + rng.randint(3, 9),
    )


def draw(seed: int, ask: Ask) -> Case:
    """Draw a question on an order by e-mail."""
    made = _order(drawing(f"parcel-{ask}", seed))
    begin = (
        "order.eml is an e-mail with an attachment. It has an order, and the newest words on top "
        "change it."
    )
    lists = [made.right(), made.counts, made.right(older=True)]
    if ask == "weight":
        question = f"{begin} How many grams do the goods weigh that are to be sent? {NUMBER}"
        truth, *wrong = (str(made.sum_of(made.grams, each)) for each in lists)
    else:
        question = (
            f"{begin} What do the goods cost that are to be sent, by the list of prices in the "
            f"attachment? {MONEY}"
        )
        truth, *wrong = (cents(made.sum_of(made.prices, each)) for each in lists)
    return Case(question, truth, differing(truth, wrong), lambda: {"order.eml": _mail(made)})


def _mail(made: _Order) -> bytes:
    message = EmailMessage()
    message["From"] = "Zoë Núñez <zoe@ropewalk.example>"
    message["To"] = "orders@chandler.example"
    message["Date"] = "Tue, 05 May 2026 09:12:00 +0200"
    message["Subject"] = "Re: Re: Bestellung für die Werkstatt, naïve question"
    message["Message-ID"] = "<20260505.0912@ropewalk.example>"
    message.set_content(
        "Hello again,\n\n"
        "sorry for the back and forth, it is the café's fault as much as mine.\n\n"
        f"Please forget what I wrote yesterday: of {made.changed} we need as many as in the file.\n"
        f"We found a box of {made.dropped}, so leave those out altogether, and send twice as\n"
        f"many of {made.doubled} as the file says.\n\n"
        "Zoë\n\n"
        "> On Mon, 4 May 2026, Zoë Núñez wrote:\n"
        "> The order is attached. One change:\n"
        f"> we need {made.change} of {made.changed}.\n",
        cte="quoted-printable",
    )
    archive = zip_files({"order.csv": _order_csv(made), "prices.json": _prices(made)})
    message.add_attachment(archive, maintype="application", subtype="zip", filename="order.zip")
    message.set_boundary("=_ropewalk_20260505")
    return message.as_bytes(policy=SMTP)


def _order_csv(made: _Order) -> bytes:
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(("item", "pieces"))
    lines.writerows(made.counts.items())
    return out.getvalue().encode()


def _prices(made: _Order) -> bytes:
    goods = [
        {"item": name, "grams": made.grams[name], "euros": made.prices[name] / 100}
        for name in sorted(_GOODS)
    ]
    return json.dumps({"each": goods}, indent=1).encode()


_UNPACK = """python3 - <<'END'
import email, email.policy
message = email.message_from_binary_file(open("order.eml", "rb"), policy=email.policy.default)
print(message.get_body().get_content())
for each in message.iter_attachments():
    open(each.get_filename(), "wb").write(each.get_content())
END"""


async def solve(agent: Agent, ask: Ask) -> str:
    """Read the words, unpack the attachment, and change the order as the newest words say."""
    await agent.tool("run_command", command="ls -l")
    await agent.tool("run_command", command="head -n 20 order.eml")
    words = " ".join((await agent.tool("run_command", command=_UNPACK)).split())
    await agent.tool("run_command", command="python3 -m zipfile -e order.zip .")
    lines = (await agent.tool("read_file", path="order.csv")).splitlines()[1:]
    prices = json.loads(await agent.tool("read_file", path="prices.json"))["each"]
    counts = {name: int(count) for name, count in (line.split(",") for line in lines)}
    counts.pop(re.findall(r"a box of (.+?), so leave", words)[0])
    counts[re.findall(r"as many of (.+?) as the file", words)[0]] *= 2
    by_name = {each["item"]: each for each in prices}
    if ask == "weight":
        return str(sum(by_name[name]["grams"] * count for name, count in counts.items()))
    return cents(sum(round(by_name[n]["euros"] * 100) * count for n, count in counts.items()))
