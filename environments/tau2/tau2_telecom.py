"""The carrier of tau2: customers, lines, bills, plans and devices, and the agent's tools on them.

What the carrier does to a line reaches the user's phone, and a bill that is paid there comes back:
`synchronize` carries both, after each call.
"""

import math
from collections.abc import Mapping
from typing import Any

from tau2_tables import Database, Row

from hud_mcp import ActionFailed

__all__ = ["CHECKS", "NOUNS", "READS", "WRITES", "synchronize", "tables"]

NOUNS = {
    "plans": "Plan", "customers": "Customer", "lines": "Line", "bills": "Bill", "devices": "Device",
}  # fmt: skip
KINDS = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}
"""The table of an id, by its first letter."""

TODAY = "2025-02-25"
"""The day of all rows."""
CYCLE_END = "2025-02-28"
LAST_MONTH = ("2025-01-01", "2025-01-31", "2025-01-15")
NEXT_MONTH = ("2025-03-01", "2025-03-31", "2025-03-15")
"""The first and the last day of a bill's period, and the day by which it is to be paid."""

EPSILON = 1e-6


def tables(db: Mapping[str, Any]) -> dict[str, dict[str, Row]]:
    """Return the tables of the carrier's file, whose rows are lists, by their ids."""
    return {name: {row[f"{name[:-1]}_id"]: row for row in db.get(name, ())} for name in NOUNS}


def get_customer_by_phone(db: Database, phone_number: str) -> Row:
    """Look up a customer by the number of their contact or of one of their lines."""
    for customer in db["customers"].values():
        lines = (db["lines"][key] for key in customer["line_ids"])
        if phone_number in (customer["phone_number"], *(line["phone_number"] for line in lines)):
            return customer
    raise ActionFailed(f"No customer has the phone number {phone_number!r}")


def get_customer_by_id(db: Database, customer_id: str) -> Row:
    """Look up a customer by their id."""
    return db["customers"][customer_id]


def get_customer_by_name(db: Database, full_name: str, dob: str) -> list[Row]:
    """List the customers with a full name and a date of birth (YYYY-MM-DD)."""
    named = (each for each in db["customers"].values() if each["date_of_birth"] == dob)
    return [each for each in named if each["full_name"].casefold() == full_name.casefold()]


def get_details_by_id(db: Database, id: str) -> Row:  # noqa: A002  # the benchmark's name
    """Look up a customer, line, device, bill or plan by its id."""
    if id[:1] not in KINDS:
        raise ActionFailed(f"{id!r} is no id of a customer, line, device, bill or plan")
    return db[KINDS[id[:1]]][id]


def get_bills_for_customer(db: Database, customer_id: str, limit: int = 12) -> list[Row]:
    """List the bills of a customer, the newest first, at most `limit` of them."""
    bills = [db["bills"][key] for key in db["customers"][customer_id]["bill_ids"]]
    return sorted(bills, key=lambda bill: bill["issue_date"], reverse=True)[: max(limit, 0)]


def get_data_usage(db: Database, customer_id: str, line_id: str) -> Row:
    """Look up the data of a line in this billing cycle: used, the plan's limit, and refueled."""
    line = db["lines"][_owned(db, customer_id, line_id)]
    return {
        "line_id": line_id,
        "data_used_gb": line["data_used_gb"],
        "data_limit_gb": db["plans"][line["plan_id"]]["data_limit_gb"],
        "data_refueling_gb": line["data_refueling_gb"],
        "cycle_end_date": CYCLE_END,
    }


def suspend_line(db: Database, customer_id: str, line_id: str, reason: str) -> Row:  # noqa: ARG001
    """Suspend an active line, for six months at most. It costs $5 a month meanwhile."""
    line = db["lines"][_owned(db, customer_id, line_id)]
    if line["status"] != "Active":
        raise ActionFailed("Only an active line can be suspended")
    return _with_status(db, line_id, "Suspended", TODAY)


def resume_line(db: Database, customer_id: str, line_id: str) -> Row:
    """Resume a line that is suspended, or that waits for its activation."""
    line = db["lines"][_owned(db, customer_id, line_id)]
    if line["status"] not in ("Suspended", "Pending Activation"):
        raise ActionFailed("Only a suspended line can be resumed")
    return _with_status(db, line_id, "Active", None)


def send_payment_request(db: Database, customer_id: str, bill_id: str) -> str:
    """Send a customer the request to pay a bill, of which only one may be open.

    It is not checked that the bill is due: look at its status first.
    """
    customer = db["customers"][customer_id]
    if _awaiting(db, customer):
        raise ActionFailed("Another bill of this customer awaits its payment")
    if bill_id not in customer["bill_ids"]:
        raise ActionFailed(f"Bill {bill_id!r} not found for customer {customer_id!r}")
    db["bills"].edit(bill_id)["status"] = "Awaiting Payment"
    return f"The customer has the request to pay bill {bill_id}."


def enable_roaming(db: Database, customer_id: str, line_id: str) -> str:
    """Let a line roam abroad."""
    return _roam(db, customer_id, line_id, is_on=True)


def disable_roaming(db: Database, customer_id: str, line_id: str) -> str:
    """Let a line roam no more."""
    return _roam(db, customer_id, line_id, is_on=False)


def refuel_data(db: Database, customer_id: str, line_id: str, gb_amount: float) -> Row:
    """Add data to a line, in gigabytes, at its plan's price; the next bill has the charge."""
    line = db["lines"][_owned(db, customer_id, line_id)]
    if not (math.isfinite(gb_amount) and gb_amount > 0):
        raise ActionFailed(f"More than 0 GB can be added, got {gb_amount}")
    price = db["plans"][line["plan_id"]]["data_refueling_price_per_gb"]
    _charge(db, customer_id, gb_amount * price, f"Data: {gb_amount} GB at ${price}/GB")
    line = db["lines"].edit(line_id)
    line["data_refueling_gb"] += gb_amount
    return {
        "message": f"Line {line_id} has {gb_amount} GB more, for ${gb_amount * price:.2f}.",
        "new_data_refueling_gb": line["data_refueling_gb"],
        "charge": gb_amount * price,
    }


def set_data_usage(db: Database, customer_id: str, line_id: str, data_used_gb: float) -> str:
    """Set the data that a line has used."""
    db["lines"].edit(_owned(db, customer_id, line_id))["data_used_gb"] = data_used_gb
    return f"Line {line_id} has used {data_used_gb} GB."


def suspend_line_for_overdue_bill(
    db: Database, customer_id: str, line_id: str, new_bill_id: str, *, contract_ended: bool
) -> str:
    """Suspend an active line for a new bill of last month, which is overdue."""
    line, customer = db["lines"][line_id], db["customers"][customer_id]
    if line["status"] != "Active":
        raise ActionFailed("Only an active line can be suspended")
    if any(db["bills"][key]["status"] == "Overdue" for key in customer["bill_ids"]):
        raise ActionFailed("This customer has an overdue bill already")
    bill = _bill(db, new_bill_id, customer_id, LAST_MONTH, "Overdue")
    _add(bill, db["plans"][line["plan_id"]]["price_per_month"], f"Charge for line {line_id}")
    _with_status(db, line_id, "Suspended", TODAY)
    if contract_ended:
        db["lines"].edit(line_id)["contract_end_date"] = LAST_MONTH[1]
    return f"Line {line_id} is suspended for bill {new_bill_id}."


def assert_data_refueling_amount(
    db: Database, customer_id: str, line_id: str, expected_amount: float
) -> bool:
    """Whether an amount of data was added to a line."""
    line = db["lines"][_owned(db, customer_id, line_id)]
    return abs(line["data_refueling_gb"] - expected_amount) < EPSILON


def assert_line_status(db: Database, customer_id: str, line_id: str, expected_status: str) -> bool:
    """Whether a line has a status."""
    return db["lines"][_owned(db, customer_id, line_id)]["status"] == expected_status


def assert_overdue_bill_exists(db: Database, customer_id: str, overdue_bill_id: str) -> bool:
    """Whether a customer has a bill that is overdue."""
    known = overdue_bill_id in db["customers"][customer_id]["bill_ids"]
    return known and db["bills"][overdue_bill_id]["status"] == "Overdue"


def assert_no_overdue_bill(db: Database, overdue_bill_id: str) -> bool:
    """Whether a bill was paid, or is none."""
    bills = db["bills"]
    return overdue_bill_id not in bills or bills[overdue_bill_id]["status"] == "Paid"


def synchronize(db: Database, user: Database) -> None:
    """Carry the state of the user's line to the phone, and payments and requests between them."""
    number = user["phone"]["surroundings"]["phone_number"]
    if number is None:
        return
    around = user["phone"].edit("surroundings")
    line = next((each for each in db["lines"].values() if each["phone_number"] == number), None)
    if line is None:
        raise ActionFailed(f"No line has the phone number {number!r}")
    limit = db["plans"][line["plan_id"]]["data_limit_gb"] + line["data_refueling_gb"]
    around["line_active"] = line["status"] == "Active"
    around["roaming_allowed"] = line["roaming_enabled"]
    around["mobile_data_usage_exceeded"] = line["data_used_gb"] >= limit
    request = around["payment_request"]
    if request is not None and request["paid"]:
        db["bills"].edit(request["bill_id"])["status"] = "Paid"
        request = None
    if request is None:
        for bill in _awaiting(db, get_customer_by_phone(db, number))[:1]:
            due = bill["total_due"]
            request = {"bill_id": bill["bill_id"], "amount_due": due, "paid": False}
    around["payment_request"] = request


def _owned(db: Database, customer_id: str, line_id: str) -> str:
    """Return the id of a customer's line."""
    if line_id not in db["customers"][customer_id]["line_ids"]:
        raise ActionFailed(f"Line {line_id!r} not found for customer {customer_id!r}")
    return line_id


def _with_status(db: Database, line_id: str, status: str, since: str | None) -> Row:
    line = db["lines"].edit(line_id)
    line["status"], line["suspension_start_date"] = status, since
    return {"message": f"Line {line_id} is now: {status}.", "line": line}


def _roam(db: Database, customer_id: str, line_id: str, *, is_on: bool) -> str:
    line = db["lines"][_owned(db, customer_id, line_id)]
    state = "on" if is_on else "off"
    if line["roaming_enabled"] == is_on:
        return f"Roaming of line {line_id} was {state} already."
    db["lines"].edit(line_id)["roaming_enabled"] = is_on
    return f"Roaming of line {line_id} is {state} now."


def _awaiting(db: Database, customer: Row) -> list[Row]:
    bills = [db["bills"][key] for key in customer["bill_ids"]]
    return [bill for bill in bills if bill["status"] == "Awaiting Payment"]


def _charge(db: Database, customer_id: str, amount: float, description: str) -> None:
    """Put a charge on a customer's draft of a bill, which is a new one where there is none."""
    keys = db["customers"][customer_id]["bill_ids"]
    drafts = [key for key in keys if db["bills"][key]["status"] == "Draft"]
    if drafts:
        bill = db["bills"].edit(drafts[0])
    else:
        # Of the number of bills, so that equal calls lead to an equal state.
        bill = _bill(db, f"B_next_{len(db['bills'])}", customer_id, NEXT_MONTH, "Draft")
    _add(bill, amount, description)


def _bill(
    db: Database, key: str, customer_id: str, month: tuple[str, str, str], status: str
) -> Row:
    start, end, due = month
    db["customers"].edit(customer_id)["bill_ids"].append(key)
    row = {"bill_id": key, "customer_id": customer_id, "period_start": start, "period_end": end}
    days = {"issue_date": start, "due_date": due}
    return db["bills"].put(
        key, {**row, **days, "total_due": 0.0, "line_items": [], "status": status}
    )


def _add(bill: Row, amount: float, description: str) -> None:
    item = {"description": description, "amount": amount, "date": TODAY, "item_type": "Charge"}
    bill["line_items"].append(item)
    bill["total_due"] += amount


READS = (
    get_customer_by_phone, get_customer_by_id, get_customer_by_name, get_details_by_id,
    get_bills_for_customer, get_data_usage,
)  # fmt: skip
WRITES = (
    suspend_line, resume_line, send_payment_request, enable_roaming, disable_roaming, refuel_data,
)  # fmt: skip
CHECKS = (
    set_data_usage, suspend_line_for_overdue_bill, assert_data_refueling_amount,
    assert_line_status, assert_overdue_bill_exists, assert_no_overdue_bill,
)  # fmt: skip
