"""Cases of the supplier in which something changes while one talks."""

from typing import Literal

from service_desk import Tables, money
from service_energy import Grid, grid
from service_energy_cases import ASK_WHO, WHO, find_step, identity, invoices, look, on
from service_talk import Case, Do, Event, agree, amount, asked, euros, script_of

from hud_mcp import When

__all__ = ["Kind", "case_of"]

Kind = Literal["tariff_dearer", "tariff_other", "payment_comes", "outage_lasts"]


def _tariff(home: Grid, *, takes_other: bool) -> Case:
    names = [name for name in home.tables["tariffs"] if name != home.row["tariff"]]
    wanted, other = home.draw.sample(names, 2)
    old = home.draw.randint(40, 55) * 100 + 90
    new = old + home.draw.randint(2, 9) * 100 + 30
    less = new - home.draw.randint(1, 2) * 100 - 70
    tariffs = home.tables["tariffs"]
    tariffs[wanted]["monthly_cents"], tariffs[other]["monthly_cents"] = old, less
    first = f"Yes, {money(old)} euros are fine."
    price = less if takes_other else new
    yes = f"All right, then for {money(price)} euros a month."
    more = (
        When(amount(new), slot="limit",
             say=f"That is not what you said. Then I want {other}, if it costs less."),
    ) if takes_other else ()  # fmt: skip

    def change(tables: Tables) -> None:
        tables["tariffs"][wanted]["monthly_cents"] = new

    def offer(name: str, cents: int) -> str:
        return f"{name} costs {money(cents)} euros a month. Shall I change it?"

    return Case(
        tables=home.tables,
        goal=f"You want the tariff {wanted}.",
        script=script_of(
            *more,
            agree(amount(price), yes, after="limit" if takes_other else "first"),
            agree(amount(old), first, "first"),
            When(asked("tariff|which|change|like"), say=f"I want {wanted}.", slot="tariff"),
            wish="Hi, I have seen another tariff of yours.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"change_tariff": yes},
        told={"the new price": amount(new)},
        event=Event(first, change, f"The list of tariffs has changed: {wanted}."),
        plan=(
            ASK_WHO, find_step(home), look(home), "Which tariff would you like?",
            Do("list_tariffs", {}), offer(wanted, old), Do("list_tariffs", {}),
            "The list has just changed. " + offer(wanted, new),
            *((offer(other, less),) if takes_other else ()),
            on(home, "change_tariff", tariff=other if takes_other else wanted,
               monthly_price=euros(price)),
        ),
    )  # fmt: skip


def tariff_dearer(home: Grid) -> Case:
    """The wanted tariff costs more once the customer has agreed; they agree again."""
    return _tariff(home, takes_other=False)


def tariff_other(home: Grid) -> Case:
    """The wanted tariff costs more, and the customer takes another one."""
    return _tariff(home, takes_other=True)


def payment_comes(home: Grid) -> Case:
    """A payment comes in while the customer waits for an unblocked meter."""
    home.row["is_blocked"] = True
    key = home.invoice(home.draw.randint(6000, 20000))
    home.invoice(home.draw.randint(4000, 9000), is_paid=True)
    again = "My bank has just sent it as an instant payment. Please look again."
    yes = "Yes, switch it on again, please."

    def change(tables: Tables) -> None:
        tables["invoices"][key]["is_paid"] = True

    return Case(
        tables=home.tables,
        goal="Your meter is blocked, and you want it unblocked. You pay while you talk.",
        script=script_of(
            When(r"unpaid|open|not (yet )?(been )?paid|pay(ment)?\b|invoice", say=again,
                 slot="again", after="who", once=True),
            agree(r"unblock|block|switch|meter", yes, after="again"),
            When(asked("wrong|happen|problem|matter|about|help|what"), slot="what",
                 say="I have no electricity since this morning, you have blocked my meter."),
            wish="It is dark here!",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"lift_block": yes},
        told={"the block": r"block"},
        event=Event(again, change, f"A payment has come in for the invoice {key}."),
        plan=(
            ASK_WHO, find_step(home), "What is the problem?", look(home), invoices(home),
            "Your meter is blocked because an invoice is open.", invoices(home),
            "It is paid now. Shall I unblock your meter?", on(home, "lift_block"),
        ),
    )  # fmt: skip


def outage_lasts(home: Grid) -> Case:
    """The estimate of an outage changes as the customer asks for a callback."""
    hours = home.draw.sample(range(13, 22), 2)
    old, new = (f"{hour}:{home.draw.choice((10, 20, 40, 50))}" for hour in sorted(hours))
    place = home.row["postcode"]
    home.tables["outages"][place] = {"outage": "a cable is damaged", "back_at": old}
    yes = "Yes, please call me back. I must plan my evening, so tell me if it gets later."

    def change(tables: Tables) -> None:
        tables["outages"][place]["back_at"] = new

    return Case(
        tables=home.tables,
        goal="You want to know when the power is back, and to be called back then.",
        script=script_of(
            When(new, say="So late! Thank you for telling me.", slot="later"),
            agree(r"call", yes),
            When(asked("wrong|happen|problem|matter|about|help|what"), slot="what",
                 say="The whole street is dark. When does the power come back?"),
            wish="Hello? Nothing works here any more.",
            who=(WHO, identity(home)),
            needs=("agreed", "later"),
        ),
        identity=identity(home),
        agreed={"book_callback": yes},
        told={"the new estimate": new},
        event=Event(yes, change, "There is a new estimate of an outage."),
        plan=(
            ASK_WHO, find_step(home), "What is the problem?",
            on(home, "get_outage"),
            f"A cable is damaged; the power is to be back at {old}. Would you like a callback?",
            on(home, "book_callback"), on(home, "get_outage"),
            f"There is a new estimate: the power is to be back at {new}.",
        ),
    )  # fmt: skip


CASES = {each.__name__: each for each in (tariff_dearer, tariff_other, payment_comes, outage_lasts)}


def case_of(kind: str, seed: int) -> Case:
    """Draw a case of a kind."""
    return CASES[kind](grid(kind, seed))
