"""The service desk of a small shop: customers ask, a policy binds, and a database is changed.

A task is one customer's case. The end state of the database is graded, and what was told and
asked in the conversation. The tools keep the database consistent and ask nothing of the policy:
agents read it and obey it. `office_customer` answers in the customer's place, as a user.
"""

from collections.abc import Callable
from typing import Annotated

import office_oracles as oracles
from office_accounts import (
    CardCase,
    PointsCase,
    WorkshopCase,
    card_case,
    errands_case,
    points_case,
    workshop_case,
)
from office_cases import prompt_of
from office_grading import Case, grade_case
from office_parcels import (
    AddressCase,
    CancelCase,
    ParcelCase,
    StrangerCase,
    address_case,
    cancel_case,
    parcel_case,
    stranger_case,
)
from office_returns import (
    DamageCase,
    ExchangeCase,
    ReturnCase,
    damage_case,
    exchange_case,
    return_case,
)
from office_stock import Shop
from office_tools import READS, WRITES
from office_world import Customer, Office, OfficeWorld
from pydantic import Field

from hud_mcp import Environment, Say

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="What the shop is drawn from.")]

env = Environment("office", version="0.1.0", world=Office())

for tool in READS:
    env.tool(read_only=True)(tool)
for tool in WRITES:
    env.tool(tool)


def begin(
    office: OfficeWorld, purpose: str, seed: int, draw: Callable[[Shop], Case]
) -> tuple[Customer, Case, Say]:
    """Draw a shop and a customer's case; return the customer, the case and the first words."""
    shop = Shop(office.db, purpose, seed)
    case = draw(shop)
    office.begin(case.persona)
    opening = Say(case.persona.opening, instructions=prompt_of(shop, case))
    return Customer(office, case.persona), case, opening


@env.template(description="Say when a parcel arrives", user=True)
async def parcel(office: OfficeWorld, case: ParcelCase = "mainland", seed: Seed = 0):
    """Somebody asks for a day and a number."""
    customer, wanted, prompt = begin(office, "parcel", seed, lambda shop: parcel_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Take an item back, if the policy allows it", user=True)
async def take_back(office: OfficeWorld, case: ReturnCase = "sealed", seed: Seed = 0):
    """Somebody wants money for one of two items."""
    customer, wanted, prompt = begin(
        office, "take_back", seed, lambda shop: return_case(shop, case)
    )
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Help with an item that arrived damaged", user=True)
async def damage(office: OfficeWorld, case: DamageCase = "money", seed: Seed = 0):
    """Somebody has unpacked an instrument with a crack."""
    customer, wanted, prompt = begin(office, "damage", seed, lambda shop: damage_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Exchange an item for another product", user=True)
async def exchange(office: OfficeWorld, case: ExchangeCase = "dearer", seed: Seed = 0):
    """Somebody likes another product better."""
    customer, wanted, prompt = begin(
        office, "exchange", seed, lambda shop: exchange_case(shop, case)
    )
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Change where orders are sent to", user=True)
async def address(office: OfficeWorld, case: AddressCase = "not_shipped", seed: Seed = 0):
    """Somebody has moved, and orders are under way."""
    customer, wanted, prompt = begin(office, "address", seed, lambda shop: address_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Cancel an order", user=True)
async def cancel(office: OfficeWorld, case: CancelCase = "processing", seed: Seed = 0):
    """Somebody does not want an order any more."""
    customer, wanted, prompt = begin(office, "cancel", seed, lambda shop: cancel_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Answer somebody about an order", user=True)
async def stranger(office: OfficeWorld, case: StrangerCase = "with_account", seed: Seed = 0):
    """Somebody asks for an order that may not be theirs."""
    customer, wanted, prompt = begin(
        office, "stranger", seed, lambda shop: stranger_case(shop, case)
    )
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Put points on a gift card", user=True)
async def points(office: OfficeWorld, case: PointsCase = "simple", seed: Seed = 0):
    """Somebody wants their points on a gift card."""
    customer, wanted, prompt = begin(office, "points", seed, lambda shop: points_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Help with a lost gift card", user=True)
async def gift_card(office: OfficeWorld, case: CardCase = "valid", seed: Seed = 0):
    """Somebody has lost one of two gift cards."""
    customer, wanted, prompt = begin(office, "gift_card", seed, lambda shop: card_case(shop, case))
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Find an appointment in the workshop", user=True)
async def workshop(office: OfficeWorld, case: WorkshopCase = "book", seed: Seed = 0):
    """Somebody wants to come, or to come on another day."""
    customer, wanted, prompt = begin(
        office, "workshop", seed, lambda shop: workshop_case(shop, case)
    )
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


@env.template(description="Do several things for one customer", user=True)
async def errands(office: OfficeWorld, seed: Seed = 0):
    """Somebody wants three things, one after the other."""
    customer, wanted, prompt = begin(office, "errands", seed, errands_case)
    reply = yield prompt
    while not reply.ended:
        reply = yield await customer.answer(reply)
    customer.check()
    yield grade_case(office, wanted)


parcel.oracle(oracles.parcel)
take_back.oracle(oracles.take_back)
damage.oracle(oracles.damage)
exchange.oracle(oracles.exchange)
address.oracle(oracles.address)
cancel.oracle(oracles.cancel)
stranger.oracle(oracles.stranger)
points.oracle(oracles.points)
gift_card.oracle(oracles.gift_card)
workshop.oracle(oracles.workshop)
errands.oracle(oracles.errands)
