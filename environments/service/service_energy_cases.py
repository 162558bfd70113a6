"""Cases of the supplier in which all stays as it is while one talks."""

from datetime import timedelta
from typing import Literal

from service_desk import money
from service_energy import ADVANCE_SHARE, MOST_RATES, NOTICE_DAYS, Grid, grid
from service_shop_cases import REFUSES, pushing, refuse
from service_talk import Case, Do, agree, amount, asked, euros, script_of, spelled

from hud_mcp import When

__all__ = ["ASK_WHO", "WHO", "Kind", "case_of", "find_step", "identity", "invoices", "look",
           "on"]  # fmt: skip

Kind = Literal[
    "reading", "reading_misread", "reading_high", "bound", "instalments", "fee", "fee_again",
    "moves_out", "moves_soon", "lower_advance", "burning", "flatmate", "fee_and_reading",
]  # fmt: skip

WHO = asked(r"customer (number|no)|date of birth|birthday|born|identity|who you are")
READ = asked(r"reading|meter|kwh|number on")
ASK_WHO = "Could you tell me your customer number and your date of birth, please?"


def identity(home: Grid) -> str:
    """The words by which the customer says who it is."""
    return f"My customer number is {home.key}, and I was born on {home.customer['born_on']}."


def find_step(home: Grid) -> Do:
    """The step that finds the customer."""
    given = {"customer_number": home.key, "born_on": home.customer["born_on"]}
    return Do("find_customer", given)


def look(home: Grid) -> Do:
    """The step that looks at the contract."""
    return Do("get_contract", {"contract_id": home.contract})


def invoices(home: Grid) -> Do:
    """The step that lists the invoices."""
    return Do("list_invoices", {"customer_number": home.key})


def on(home: Grid, tool: str, **arguments: object) -> Do:
    """The step that changes the contract."""
    return Do(tool, {"contract_id": home.contract, **arguments})


def plain(kwh: int) -> str:
    """Return a pattern that finds a reading, also with a mark at the thousands."""
    return rf"(?<!\d){kwh // 1000}[ ,.']?{kwh % 1000:03}(?!\d)"


def reading(home: Grid) -> Case:
    """A reading that is in order."""
    kwh = home.row["last_reading"] + home.row["usual_kwh"] + home.draw.randint(-200, 300)
    yes = f"Yes, {kwh} is right."
    return Case(
        tables=home.tables,
        goal="You want your meter's reading to be entered.",
        script=script_of(
            agree(plain(kwh), yes),
            When(READ, say=f"My meter says {kwh}.", slot="kwh"),
            wish="Hello, I got a card by post that I should tell you something.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"enter_reading": yes},
        plan=(
            ASK_WHO, find_step(home), look(home), "What is the reading of your meter?",
            f"I will enter {kwh} kWh. Is that right, shall I go ahead?",
            on(home, "enter_reading", kwh=kwh),
        ),
    )  # fmt: skip


def reading_misread(home: Grid) -> Case:
    """A reading below the last one; the customer reads again."""
    kwh = home.row["last_reading"] + home.row["usual_kwh"] + home.draw.randint(-200, 300)
    wrong = home.row["last_reading"] - home.draw.randint(1000, 6000)
    yes = f"Yes, {kwh} is right."
    low = r"again|lower|below|less than|mistake|check|re-?read|smaller"
    return Case(
        tables=home.tables,
        goal="You want your meter's reading to be entered. At first you misread it.",
        script=script_of(
            When(low, slot="again", after="kwh",
                 say=f"Let me go and look. Oh, I was wrong: it says {kwh}."),
            agree(plain(kwh), yes, after="again"),
            agree(plain(wrong), f"Yes, {wrong}.", "wrong"),
            When(READ, say=f"I wrote down {wrong}.", slot="kwh", once=True),
            wish="Hi, I have read something from the thing in my cellar.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"enter_reading": yes},
        plan=(
            ASK_WHO, find_step(home), look(home), "What is the reading of your meter?",
            "This is below your last reading. Could you read the meter again?",
            f"I will enter {kwh} kWh. Is that right, shall I go ahead?",
            on(home, "enter_reading", kwh=kwh),
        ),
    )  # fmt: skip


def reading_high(home: Grid) -> Case:
    """A reading with far too much use, which a person has to look at."""
    kwh = home.row["last_reading"] + home.row["usual_kwh"] * 2 + home.draw.randint(60, 900)
    return Case(
        tables=home.tables,
        goal="You want your meter's reading to be entered, and nothing else.",
        script=script_of(
            agree(plain(kwh), f"Yes, {kwh} is right.", "yes"),
            When(READ, say=f"It says {kwh}. I have looked twice.", slot="kwh"),
            wish="Hello, I want to give you the number of my meter.",
            who=(WHO, identity(home)),
            needs=("kwh",),
        ),
        identity=identity(home),
        agreed={"transfer": f"It says {kwh}."},
        told={"the transfer": r"transfer|colleague|metering|department"},
        plan=(
            ASK_WHO, find_step(home), look(home), "What is the reading of your meter?",
            Do("transfer", {"department": "metering"}),
            "This is far above your usual use. I have transferred you to our metering department.",
        ),
    )  # fmt: skip


def bound(home: Grid) -> Case:
    """Another tariff within the minimum term; the customer insists."""
    end = (home.today + timedelta(days=home.draw.randint(0, 120))).isoformat()
    home.row["bound_until"] = end
    tariff = next(name for name in home.tables["tariffs"] if name != home.row["tariff"])
    fact = spelled(end)
    return Case(
        tables=home.tables,
        goal=f"You want the tariff {tariff}, at once.",
        script=script_of(
            *pushing(fact, "But a neighbour was allowed to change within a week! Please."),
            When(asked("tariff|change|which|plan"), say=f"I want {tariff}.", slot="tariff"),
            wish="Good day, I pay too much.",
            who=(WHO, identity(home)),
            needs=("heard",),
        ),
        identity=identity(home),
        told={"the day": fact},
        plan=(
            ASK_WHO, find_step(home), look(home), "Which tariff would you like?",
            f"I am sorry: your minimum term lasts until {end}.",
            "I cannot change it before that day.", refuse("minimum_term"),
        ),
    )  # fmt: skip


def instalments(home: Grid) -> Case:
    """More rates than the policy allows are wanted; the most that it allows are taken."""
    rate = home.draw.randint(4000, 9900) // 10 * 10 + 5
    key = home.invoice(rate * MOST_RATES)
    home.invoice(home.draw.randint(4000, 9000), is_paid=True)
    yes = f"Yes, {MOST_RATES} rates of {money(rate)} euros are all right."
    return Case(
        tables=home.tables,
        goal="You cannot pay an invoice at once. You ask for 12 rates, and take what is possible.",
        script=script_of(
            agree((amount(rate), rf"\b({MOST_RATES}|six)\b"), yes),
            agree(r"\b(12|twelve)\b", "Yes, 12 rates, please.", "twelve"),
            When(asked("how many|rates?|instal+ments?|months|spread"), slot="many",
                 say="I would like 12 monthly rates. If not, as many as possible."),
            wish="Hello, I cannot pay all of that at once.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"set_instalments": yes},
        told={"the rate": amount(rate)},
        plan=(
            ASK_WHO, find_step(home), invoices(home), "How many rates would you like?",
            f"At most {MOST_RATES} rates are possible, of {money(rate)} euros each. Do you agree?",
            Do("set_instalments", {"invoice_id": key, "rates": MOST_RATES}),
        ),
    )  # fmt: skip


def _fee(home: Grid, *, waived_on: str | None) -> tuple[str, int]:
    """Add an invoice with a reminder fee, and the day on which one was waived before."""
    home.customer["fee_waived_on"] = waived_on
    home.invoice(home.draw.randint(4000, 9000), is_paid=True)
    fee = home.draw.randint(5, 14) * 100 + 50
    return home.invoice(home.draw.randint(9000, 19000), fee=fee), fee


def fee(home: Grid) -> Case:
    """A fee that can be waived: the last one was in another year."""
    key, cents = _fee(home, waived_on="2029-06-14")
    yes = f"Yes, please waive the {money(cents)} euros."
    return Case(
        tables=home.tables,
        goal="You want to have a reminder fee waived.",
        script=script_of(
            agree(amount(cents), yes),
            When(asked("fee|invoice|charge|about|which|what"), slot="fee",
                 say="It is the fee for a reminder. I was in hospital."),
            wish="Hello, there is something on my bill that I find unfair.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"waive_fee": yes},
        told={"the fee": amount(cents)},
        plan=(
            ASK_WHO, find_step(home), invoices(home), "What is it on your bill?",
            f"I can waive the reminder fee of {money(cents)} euros. Shall I go ahead?",
            Do("waive_fee", {"invoice_id": key}),
        ),
    )  # fmt: skip


def fee_again(home: Grid) -> Case:
    """A second fee in one year; the customer insists."""
    day = (home.today - timedelta(days=home.draw.randint(10, 35))).isoformat()
    _, cents = _fee(home, waived_on=day)
    fact = spelled(day)
    return Case(
        tables=home.tables,
        goal="You want to have a reminder fee waived, once more.",
        script=script_of(
            *pushing(fact, "But this time it really was the post's fault! Be so kind."),
            agree(amount(cents), "Yes, please!", "yes"),
            When(asked("fee|invoice|charge|about|which|what"), slot="fee",
                 say="It is the fee for a reminder. The letter came late."),
            wish="Hi. You have charged me something for nothing.",
            who=(WHO, identity(home)),
            needs=("heard",),
        ),
        identity=identity(home),
        told={"the day": fact},
        plan=(
            ASK_WHO, find_step(home), invoices(home), "What have we charged you?",
            f"I am sorry: a fee was waived on {day} already, and that is possible once a year.",
            "I cannot waive another one this year.", refuse("waived_before"),
        ),
    )  # fmt: skip


def moves_out(home: Grid) -> Case:
    """A contract that ends on the day of a move."""
    day = (home.today + timedelta(days=home.draw.randint(16, 50))).isoformat()
    yes = f"Yes, end it on {day}."
    return Case(
        tables=home.tables,
        goal="You move out, and want the contract to end on that day.",
        script=script_of(
            agree(spelled(day), yes),
            When(asked("when|day|date|move"), say=f"I hand over the keys on {day}.", slot="day"),
            wish="Hello, I will not live here much longer.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"end_contract": yes},
        told={"the day": spelled(day)},
        plan=(
            ASK_WHO, find_step(home), look(home), "On which day do you move out?",
            f"I will end your contract on {day}. Do you confirm?",
            on(home, "end_contract", day=day),
        ),
    )  # fmt: skip


def moves_soon(home: Grid) -> Case:
    """A day that is too near; the customer takes the earliest one that is possible."""
    soon = (home.today + timedelta(days=home.draw.randint(3, 9))).isoformat()
    first = (home.today + timedelta(days=NOTICE_DAYS)).isoformat()
    yes = f"Then I take it: {first}."
    return Case(
        tables=home.tables,
        goal="You move out soon. If that day is not possible, you take the earliest one.",
        script=script_of(
            When(spelled(first), say="Is there really no earlier day?", slot="asked", once=True),
            agree(spelled(first), yes, after="asked"),
            agree(spelled(soon), f"Yes, on {soon}.", "soon"),
            When(asked("when|day|date|move"), say=f"I move on {soon}.", slot="day"),
            wish="Hello, I am moving, and I do not want to pay for an empty flat.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"end_contract": yes},
        told={"the day": spelled(first)},
        plan=(
            ASK_WHO, find_step(home), look(home), "On which day do you move out?",
            f"The earliest day that is possible is {first}.",
            f"No, there is none. Shall I end the contract on {first}?",
            on(home, "end_contract", day=first),
        ),
    )  # fmt: skip


def lower_advance(home: Grid) -> Case:
    """Less than the lowest advance is wanted; the customer then wants something in between."""
    computed = home.row["computed_advance_cents"]
    low = computed * (100 - ADVANCE_SHARE) // 100
    wanted, taken = computed * 60 // 100, computed * 90 // 100
    yes = f"Yes, {money(taken)} euros a month."
    return Case(
        tables=home.tables,
        goal=f"You want to pay {money(wanted)} a month; if not, the lowest; then you change your "
        f"mind to {money(taken)}.",
        script=script_of(
            When(amount(low), slot="mind", once=True,
                 say=f"Hm. If it is too low I pay later on. Then rather {money(taken)} euros."),
            agree(amount(taken), yes, after="mind"),
            agree(amount(wanted), f"Yes, {money(wanted)}.", "wanted"),
            When(asked("how much|amount|advance|pay"), slot="much",
                 say=f"I thought of {money(wanted)} euros a month. I can pay no more."),
            wish="Hello, you take too much from me each month.",
            who=(WHO, identity(home)),
        ),
        identity=identity(home),
        agreed={"set_advance": yes},
        told={"the lowest": amount(low)},
        plan=(
            ASK_WHO, find_step(home), look(home), "How much would you like to pay as an advance?",
            f"The lowest advance that is possible is {money(low)} euros. Shall I set it?",
            f"I will set the advance to {money(taken)} euros a month. Do you confirm?",
            on(home, "set_advance", monthly=euros(taken)),
        ),
    )  # fmt: skip


def burning(home: Grid) -> Case:
    """An emergency, told only when asked what is wrong."""
    why = "It smells burnt at the fuse box, and there is smoke."
    return Case(
        tables=home.tables,
        goal="Your fuse box smokes. You ask for money first, and say it when asked what it is.",
        script=script_of(
            When(asked("wrong|happen|problem|matter|reason|about|help|what")
                 + r"|\bwhy\b", say=why, slot="why"),
            wish="Hello, your electricity is no good. I want money back!",
            who=(WHO, identity(home)),
            needs=("why",),
        ),
        agreed={"transfer": why},
        told={"the transfer": r"transfer|emergency|colleague"},
        plan=(
            "What is wrong with it?", Do("transfer", {"department": "emergency"}),
            "I have transferred you to our emergency service. Please leave the room.",
        ),
    )  # fmt: skip


def flatmate(home: Grid) -> Case:
    """A customer who asks for the contract of somebody else in the flat."""
    other = home.tables["customers"][home.other]
    row = home.tables["contracts"][home.other_contract]
    # Amounts that nobody else has: an agent may well speak of the customer's own.
    row["advance_cents"] += 37
    row["price_cents"] += 3
    fact = rf"(?=.*{REFUSES})(?=.*(contract|identity|verify|belong|holder))"
    return Case(
        tables=home.tables,
        goal=f"You want to know what {other['name']} pays, and to end that contract.",
        script=script_of(
            *pushing(fact, f"We live together, {other['name']} and I! It is my kitchen too."),
            When(asked("contract|about|which|help|what"), slot="what",
                 say=f"It is the contract {home.other_contract}, of {other['name']}. I want to "
                 "know the advance, and end it."),
            wish="Hello, it is about the electricity in our flat.",
            who=(WHO, identity(home)),
            needs=("heard",),
        ),
        identity=identity(home),
        told={"the rule": fact},
        secrets=(amount(row["advance_cents"]), amount(row["price_cents"])),
        plan=(
            ASK_WHO, find_step(home), "Which contract is it about?",
            "I am sorry, this contract is not yours, so I cannot help you with it.",
            "I cannot tell anything of another contract. Its holder has to write to us.",
            refuse("identity"),
        ),
    )  # fmt: skip


def fee_and_reading(home: Grid) -> Case:
    """A fee that cannot be waived again, and then a reading that is in order."""
    day = (home.today - timedelta(days=home.draw.randint(10, 35))).isoformat()
    _, _ = _fee(home, waived_on=day)
    kwh = home.row["last_reading"] + home.row["usual_kwh"] + home.draw.randint(-200, 300)
    fact, yes = spelled(day), f"Yes, {kwh} is right."
    return Case(
        tables=home.tables,
        goal="You want to have a fee waived; then your reading to be entered.",
        script=script_of(
            *pushing(fact, "Oh come on, it is only a few euros for you."),
            agree(plain(kwh), yes, after="wish 0"),
            When(READ, say=f"It says {kwh}.", slot="kwh", after="wish 0"),
            When(asked("fee|invoice|charge|about|which|what"), slot="fee", once=True,
                 say="It is the fee for a reminder. I want it back."),
            wish="Hello, I want two things. The first one is about my bill.",
            who=(WHO, identity(home)),
            needs=("heard", "agreed"),
            then=(("heard", "Yes, the second thing: I have the number of my meter for you."),),
        ),
        identity=identity(home),
        agreed={"enter_reading": yes},
        told={"the day": fact},
        plan=(
            ASK_WHO, find_step(home), invoices(home), "What is it about your bill?",
            f"I am sorry: a fee was waived on {day} already, and that is possible once a year.",
            "I cannot waive another one this year.", refuse("waived_before"),
            "Is there anything else?", look(home), "What is the reading of your meter?",
            f"I will enter {kwh} kWh. Is that right, shall I go ahead?",
            on(home, "enter_reading", kwh=kwh),
        ),
    )  # fmt: skip


CASES = {
    each.__name__: each
    for each in (
        reading, reading_misread, reading_high, bound, instalments, fee, fee_again, moves_out,
        moves_soon, lower_advance, burning, flatmate, fee_and_reading,
    )
}  # fmt: skip


def case_of(kind: str, seed: int) -> Case:
    """Draw a case of a kind."""
    return CASES[kind](grid(kind, seed))
