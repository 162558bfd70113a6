"""The service desks of a shop and of an energy supplier: a policy, tools, and a user who talks.

A task is one user's case. The tables are compared with the right ones in the end, and what the
user agreed to and heard counts too. Tools keep the tables consistent, and know nothing of the
policy: agents read it and obey it. In some cases the tables change while one talks.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Annotated, Any

import service_energy as energy
import service_energy_cases as energy_cases
import service_energy_moving as energy_moving
import service_shop as shop
import service_shop_cases as shop_cases
import service_shop_moving as shop_moving
from pydantic import Field
from service_desk import Desk, DeskWorld, Rule, tool_of
from service_grading import grade_case
from service_talk import Case, solve, user_of

from hud_mcp import Agent, Environment, Grade, Say

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="The number that the case is from.")]
Told = Annotated[bool, Field(description="Whether a reply says that something has changed.")]
Turns = AsyncGenerator[Any, Any]

INSTRUCTIONS = """You work at the service desk of {name}. Today is {today}.
Speak to the user with message_user; look things up and change them with the other tools.
Obey the policy below. When all is done, ask the user whether there is anything else.

<policy>
{policy}
</policy>"""


def declare(name: str, reads: tuple[Rule, ...], writes: Mapping[str, Rule]) -> Environment:
    """Declare the desk of a business, with its tools."""
    env = Environment(f"service-{name}", version="0.1.0", world=Desk())
    for rule in reads:
        env.tool(read_only=True)(tool_of(rule))
    for rule in writes.values():
        env.tool(tool_of(rule))
    return env


class Talk:
    """The conversation of one case: the user's turns, and the grade of all that came of it."""

    def __init__(self, desk: DeskWorld, case: Case) -> None:
        self._desk, self._case = desk, case
        self._user = user_of(case)
        desk.tables = case.begin()

    async def answer(self, reply: Any = "", *, instructions: str = "") -> Say:
        """Let the user speak; the first time it opens the conversation."""
        said = await self._user.answer(reply)
        self._desk.said.append(said.text)
        return replace(said, instructions=instructions)

    def grade(self, writes: Mapping[str, Rule]) -> Grade:
        """Grade what was done and said."""
        return grade_case(self._desk, self._case, writes, self._user.told)


def is_due(desk: DeskWorld, case: Case) -> bool:
    """Whether the user has said the words after which the tables change."""
    return case.event is not None and any(case.event.words in said for said in desk.said)


def make_change(desk: DeskWorld, case: Case, *, told: bool) -> str | None:
    """Change the tables as a case's event does; return the agent's note, if it gets one."""
    if case.event is None or desk.tables is None:
        return None
    case.event.change(desk.tables)
    return case.event.note if told else None


def rules_of(business: Any, case: Case) -> str:
    """Return the instructions at a desk, on the day of a case."""
    today = case.tables["desk"]["today"]["day"]
    return INSTRUCTIONS.format(name=business.NAME, today=today, policy=business.POLICY)


shop_env = declare("shop", shop.READS, shop.WRITES)
energy_env = declare("energy", energy.READS, energy.WRITES)


@shop_env.template(id="customer", description="Serve a customer of the shop", user=True)
async def shop_customer(
    desk: DeskWorld, case: shop_cases.Kind = "return_lamp", seed: Seed = 0
) -> Turns:
    """Somebody writes to the shop."""
    found = shop_cases.case_of(case, seed)
    talk = Talk(desk, found)
    reply = yield await talk.answer(instructions=rules_of(shop, found))
    while not reply.ended:
        reply = yield await talk.answer(reply)
    yield talk.grade(shop.WRITES)


@shop_env.template(id="moving", description="Serve a customer while things change", user=True)
async def shop_moving_customer(
    desk: DeskWorld,
    case: shop_moving.Kind = "exchange_dearer",
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
) -> Turns:
    """Somebody writes to the shop, and meanwhile something changes there."""
    found = shop_moving.case_of(case, seed)
    talk = Talk(desk, found)
    reply = yield await talk.answer(instructions=rules_of(shop, found))
    while not reply.ended:
        reply = yield await talk.answer(reply)
    yield talk.grade(shop.WRITES)


async def shop_is_due(desk: DeskWorld, case: str, seed: int) -> bool:
    """Whether the shop changes now."""
    return is_due(desk, shop_moving.case_of(case, seed))


@shop_moving_customer.when(shop_is_due)
async def the_shop_changes(desk: DeskWorld, case: str, seed: int, *, told: bool) -> str | None:
    """Change a price, an order or a parcel."""
    return make_change(desk, shop_moving.case_of(case, seed), told=told)


@energy_env.template(id="customer", description="Serve a customer of the supplier", user=True)
async def energy_customer(
    desk: DeskWorld, case: energy_cases.Kind = "reading", seed: Seed = 0
) -> Turns:
    """Somebody writes to the supplier."""
    found = energy_cases.case_of(case, seed)
    talk = Talk(desk, found)
    reply = yield await talk.answer(instructions=rules_of(energy, found))
    while not reply.ended:
        reply = yield await talk.answer(reply)
    yield talk.grade(energy.WRITES)


@energy_env.template(id="moving", description="Serve a customer while things change", user=True)
async def energy_moving_customer(
    desk: DeskWorld,
    case: energy_moving.Kind = "tariff_dearer",
    seed: Seed = 0,
    *,
    told: Told = False,  # noqa: ARG001  # the move asks for it
) -> Turns:
    """Somebody writes to the supplier, and meanwhile something changes there."""
    found = energy_moving.case_of(case, seed)
    talk = Talk(desk, found)
    reply = yield await talk.answer(instructions=rules_of(energy, found))
    while not reply.ended:
        reply = yield await talk.answer(reply)
    yield talk.grade(energy.WRITES)


async def energy_is_due(desk: DeskWorld, case: str, seed: int) -> bool:
    """Whether something changes at the supplier now."""
    return is_due(desk, energy_moving.case_of(case, seed))


@energy_moving_customer.when(energy_is_due)
async def the_supplier_changes(desk: DeskWorld, case: str, seed: int, *, told: bool) -> str | None:
    """Change a price, an invoice or an estimate."""
    return make_change(desk, energy_moving.case_of(case, seed), told=told)


@shop_customer.oracle
async def serve_shop(agent: Agent, case: str, seed: int) -> str:
    """Do the steps of the solution."""
    return await solve(agent, shop_cases.case_of(case, seed).plan)


@shop_moving_customer.oracle
async def serve_moving_shop(agent: Agent, case: str, seed: int) -> str:
    """Do the steps of the solution."""
    return await solve(agent, shop_moving.case_of(case, seed).plan)


@energy_customer.oracle
async def serve_energy(agent: Agent, case: str, seed: int) -> str:
    """Do the steps of the solution."""
    return await solve(agent, energy_cases.case_of(case, seed).plan)


@energy_moving_customer.oracle
async def serve_moving_energy(agent: Agent, case: str, seed: int) -> str:
    """Do the steps of the solution."""
    return await solve(agent, energy_moving.case_of(case, seed).plan)
