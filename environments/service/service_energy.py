"""Northlight, a supplier of electricity: its tables, its tools and its policy."""

from datetime import date, timedelta
from random import Random
from typing import Literal

from service_desk import Row, Rule, Tables, find, money, shown
from service_shop import CITIES, FIRST, LAST, STREETS

from hud_mcp import ActionFailed

__all__ = ["NAME", "POLICY", "READS", "WRITES", "Grid", "grid"]

NAME = "Northlight, a supplier of electricity"
MOST_RATES, NOTICE_DAYS, HIGH_TIMES, ADVANCE_SHARE = 6, 14, 2, 20
POLICY = f"""1. Identity. Before you tell or change anything of a contract, ask for the customer
   number and the date of birth, and find the customer with find_customer. If the two do not belong
   together, or the contract is somebody else's, tell nothing of it, and refuse (reason
   "identity"). People who live together are no exception.
2. Emergencies. Where something burns, smokes or sparks, or a cable is open, transfer to
   "emergency" at once, without asking who it is. Do nothing else.
3. Consent. Before each change, say what you will do, with the exact reading, amount or day, and
   ask for a yes. Where a price has changed since the yes, ask again. A transfer and the
   record of a refusal need no yes.
4. Readings. A reading below the last one is a mistake: ask the customer to read the meter again.
   Where the use since the last reading is more than {HIGH_TIMES} times the `usual_kwh` of the
   contract, enter nothing, and transfer to "metering".
5. Tariffs. A tariff can be changed once the minimum term has ended (`bound_until` is before today).
   Else refuse (reason "minimum_term"), and tell the customer that day. The price on the list at
   the moment of the change holds. It may change while you talk.
6. Instalments. An open invoice is paid in at most {MOST_RATES} equal monthly rates, once. Tell the
   customer the amount of one rate, rounded to cents.
7. Reminder fees are waived once in a calendar year (`fee_waived_on`). Else refuse (reason
   "waived_before"), and tell the customer on which day one was waived.
8. Moving out. A contract ends at the earliest {NOTICE_DAYS} days from today. An earlier day is
   refused (reason "short_notice"): tell the customer the earliest day. If they take it, no refusal
   is recorded.
9. Advances. The monthly advance lies within {ADVANCE_SHARE} % of `computed_advance`, below or
   above. Tell a customer who wants less the lowest amount that is possible.
10. Blocked meters are unblocked with lift_block once all invoices are paid, and not before.
    Payments come in while you talk: list the invoices again if a customer says that something
    was paid.
11. Outages. Tell the time at which the power is to be back, and book a callback if the customer
    wants one. Estimates change: where a note says that there is a new one, look, and tell it.
12. Refusals. Record each refusal with record_refusal. Do not refuse what the policy allows."""

TARIFFS = ("Tidal", "Meadow", "Summit", "Harbour")


class Grid:
    """A drawn supplier and one of its customers.

    Attributes:
        draw: The source of all that is drawn.
        tables: The supplier's tables.
        today: The day.
        key: The customer's number.
        contract: The contract's id.
    """

    def __init__(self, purpose: str, seed: int) -> None:
        self.draw = Random(f"service/energy/{purpose}/{seed}")  # noqa: S311  # no secret
        self.today = date(2031, 2, 10) + timedelta(days=self.draw.randint(0, 280))
        self.tables: Tables = {
            "desk": {"today": {"day": self.today.isoformat()}},
            "customers": {}, "contracts": {}, "invoices": {}, "outages": {}, "callbacks": {},
            "transfers": {}, "refusals": {},
            "tariffs": {name: {"monthly_cents": self.draw.randint(30, 80) * 100 + 90}
                        for name in TARIFFS},
        }  # fmt: skip
        self._numbers = iter(self.draw.sample(range(20000, 99999), 40))
        firsts, lasts = self.draw.sample(FIRST, 5), self.draw.sample(LAST, 5)
        pairs = [self._person(*names) for names in zip(firsts, lasts, strict=True)]
        self.key, self.contract = pairs[0]
        self.other, self.other_contract = pairs[1]

    def _person(self, first: str, last: str) -> tuple[str, str]:
        draw, key, contract = self.draw, f"N{next(self._numbers)}", f"K{next(self._numbers)}"
        born = date(1950, 1, 1) + timedelta(days=draw.randint(0, 18_000))
        postcode = str(draw.randint(10000, 99999))
        self.tables["customers"][key] = {
            "name": f"{first} {last}", "born_on": born.isoformat(), "contract": contract,
            "fee_waived_on": None,
        }  # fmt: skip
        computed = draw.randint(50, 140) * 100
        self.tables["contracts"][contract] = {
            "customer": key, "street": f"{draw.randint(2, 98)} {draw.choice(STREETS)}",
            "postcode": postcode, "city": draw.choice(CITIES), "tariff": draw.choice(TARIFFS),
            "price_cents": draw.randint(30, 80) * 100 + 50,
            "bound_until": (self.today - timedelta(days=draw.randint(20, 300))).isoformat(),
            "last_reading": draw.randint(11_000, 48_000), "usual_kwh": draw.randint(900, 1600),
            "computed_advance_cents": computed, "advance_cents": computed, "ends_on": None,
            "is_blocked": False, "readings": [],
        }  # fmt: skip
        return key, contract

    @property
    def customer(self) -> Row:
        """The customer's row."""
        return self.tables["customers"][self.key]

    @property
    def row(self) -> Row:
        """The contract's row."""
        return self.tables["contracts"][self.contract]

    def invoice(self, cents: int, *, fee: int = 0, is_paid: bool = False) -> str:
        """Add an invoice of the customer."""
        key = f"R{next(self._numbers)}"
        self.tables["invoices"][key] = {
            "customer": self.key, "amount_cents": cents, "reminder_fee_cents": fee,
            "is_paid": is_paid, "rates": 1,
        }  # fmt: skip
        return key


def grid(purpose: str, seed: int) -> Grid:
    """Draw a supplier for a kind of case."""
    return Grid(purpose, seed)


def find_customer(tables: Tables, customer_number: str, born_on: str) -> Row:
    """Find the customer with this number and this date of birth, as 1980-12-31."""
    row = tables["customers"].get(customer_number.strip())
    if row is None or row["born_on"] != born_on.strip():
        raise ActionFailed("No customer has this number and this date of birth.")
    return {"customer_number": customer_number.strip(), **shown(row)}


def get_contract(tables: Tables, contract_id: str) -> Row:
    """Look at a contract: its tariff, its meter, its advance and its days."""
    return shown(find(tables, "contracts", contract_id))


def list_invoices(tables: Tables, customer_number: str) -> Row:
    """List the invoices of a customer, with what is paid."""
    find(tables, "customers", customer_number)
    rows = tables["invoices"].items()
    return {key: shown(row) for key, row in rows if row["customer"] == customer_number}


def list_tariffs(tables: Tables) -> Row:
    """List the tariffs with their present monthly prices."""
    return shown(tables["tariffs"])


def get_outage(tables: Tables, contract_id: str) -> Row:
    """Look whether there is an outage at a contract's address, and when it ends."""
    found = find(tables, "contracts", contract_id)
    return tables["outages"].get(found["postcode"]) or {"outage": None}


def enter_reading(tables: Tables, contract_id: str, kwh: int) -> str:
    """Enter the reading of a contract's meter."""
    contract = find(tables, "contracts", contract_id)
    contract["readings"].append(kwh)
    return f"The reading {kwh} was entered."


def change_tariff(tables: Tables, contract_id: str, tariff: str, monthly_price: float) -> str:
    """Change a contract's tariff, at its present monthly price in euros."""
    contract, row = find(tables, "contracts", contract_id), find(tables, "tariffs", tariff)
    if round(monthly_price * 100) != row["monthly_cents"]:
        raise ActionFailed(f"{tariff} costs {money(row['monthly_cents'])} euros a month now.")
    contract.update(tariff=tariff, price_cents=row["monthly_cents"])
    return f"The tariff is {tariff} now."


def set_instalments(tables: Tables, invoice_id: str, rates: int) -> str:
    """Let an invoice be paid in so many equal monthly rates."""
    invoice = find(tables, "invoices", invoice_id)
    if invoice["is_paid"] or invoice["rates"] != 1 or not 2 <= rates <= 36:  # noqa: PLR2004  # 3 years
        raise ActionFailed("Only an open invoice without rates is split, into 2 to 36.")
    invoice["rates"] = rates
    return f"The invoice is paid in {rates} rates."


def waive_fee(tables: Tables, invoice_id: str) -> str:
    """Waive the reminder fee of an invoice."""
    invoice = find(tables, "invoices", invoice_id)
    if not invoice["reminder_fee_cents"]:
        raise ActionFailed("This invoice has no reminder fee.")
    invoice["reminder_fee_cents"] = 0
    tables["customers"][invoice["customer"]]["fee_waived_on"] = tables["desk"]["today"]["day"]
    return "The fee was waived."


def end_contract(tables: Tables, contract_id: str, day: str) -> str:
    """End a contract on a day, as 2031-12-31."""
    try:
        ends = date.fromisoformat(day.strip())
    except ValueError as exc:
        raise ActionFailed(f"{day!r} is no day. Write it as 2031-12-31.") from exc
    find(tables, "contracts", contract_id)["ends_on"] = ends.isoformat()
    return f"The contract ends on {ends.isoformat()}."


def set_advance(tables: Tables, contract_id: str, monthly: float) -> str:
    """Set the monthly advance of a contract, in euros."""
    find(tables, "contracts", contract_id)["advance_cents"] = round(monthly * 100)
    return f"The advance is {money(round(monthly * 100))} euros a month."


def lift_block(tables: Tables, contract_id: str) -> str:
    """Unblock the meter of a contract."""
    contract = find(tables, "contracts", contract_id)
    if not contract["is_blocked"]:
        raise ActionFailed("The meter is not blocked.")
    contract["is_blocked"] = False
    return "The meter is unblocked."


def book_callback(tables: Tables, contract_id: str) -> str:
    """Book a call to the customer as soon as an outage has ended."""
    find(tables, "contracts", contract_id)
    tables["callbacks"][contract_id] = {}
    return "The callback was booked."


def transfer(tables: Tables, department: Literal["emergency", "metering", "accounts"]) -> str:
    """Transfer the customer to a person of a department."""
    tables["transfers"][department] = {}
    return f"The customer is transferred to {department}."


def record_refusal(
    tables: Tables, reason: Literal["identity", "minimum_term", "waived_before", "short_notice"]
) -> str:
    """Record that a wish was refused, and by which rule."""
    tables["refusals"][reason] = {}
    return "The refusal was recorded."


READS: tuple[Rule, ...] = (find_customer, get_contract, list_invoices, list_tariffs, get_outage)
WRITES: dict[str, Rule] = {
    each.__name__: each
    for each in (
        enter_reading, change_tariff, set_instalments, waive_fee, end_contract, set_advance,
        lift_block, book_callback, transfer, record_refusal,
    )
}  # fmt: skip
