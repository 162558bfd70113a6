"""The set `service`: who obeys the policy is paid, in conversation with users by a script.

The rows are played here on the desks themselves; some, and in the lane `long` all of them, are
played through a server too.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from slate import registry
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import ActionFailed, Agent, Grade, Task, Taskset
from hud_mcp.agents.agent import Reply as ToolReply
from hud_mcp.agents.baselines import OracleAgent
from hud_mcp.environment.conversation import Conversation, Reply, begin
from hud_mcp.loading.source import load_environments, shipped_environments, shipped_folder
from hud_mcp.server.app import build_server

sys.path.insert(0, str(shipped_environments()["service"].parent))

import service_energy
import service_energy_cases
import service_energy_moving
import service_shop
import service_shop_cases
import service_shop_moving
from service_desk import DeskWorld
from service_grading import grade_case
from service_talk import CLOSE, Case, Do, user_of

ROWS = Taskset.load(shipped_folder("taskset_data") / "service.jsonl")
BUSINESSES: Mapping[str, Any] = {"service-shop": service_shop, "service-energy": service_energy}
KINDS: Mapping[tuple[str, str], Any] = {
    ("service-shop", "customer"): service_shop_cases,
    ("service-shop", "moving"): service_shop_moving,
    ("service-energy", "customer"): service_energy_cases,
    ("service-energy", "moving"): service_energy_moving,
}
LEAST_ROWS, LEAST_MOVING = 40, 10
SEEDS = range(5)
HURT = 0.0


def case_of(row: Task) -> Case:
    """Draw the case of a row."""
    return KINDS[row.env, row.template or ""].case_of(row.args["case"], row.args["seed"])


@dataclass
class Play:
    """A conversation on a desk, without a server.

    Attributes:
        grade: The grade.
        steps: The calls and messages, with the answer where there was one.
        heard: The replies of the user.
    """

    grade: Grade
    steps: int
    heard: list[str]


async def converse(env: str, case: Case, plan: Iterable[str | Do]) -> Play:
    """Do the steps of a plan at a desk; answer with nothing where the user has not left."""
    business = BUSINESSES[env]
    rules = {rule.__name__: rule for rule in business.READS} | business.WRITES
    talk, desk, user = Conversation(), DeskWorld(), user_of(case)
    begin(talk)
    desk.tables = case.begin()
    desk.said.append((await user.answer()).text)
    is_over, is_changed, steps = False, False, 0
    for step in plan:
        steps += 1
        if isinstance(step, Do):
            try:
                desk.do(rules[step.name], step.arguments)
            except ActionFailed:
                continue
        else:
            talk.hear(reply := Reply(step))
            said = await user.answer(reply)
            desk.said.append(said.text)
            if is_over := said.ends:
                break
        event = case.event
        if event is not None and not is_changed and event.words in desk.said[-1]:
            event.change(desk.tables)
            is_changed = True
    if not is_over:
        steps += 1
        talk.hear(Reply("", ended=True, by="agent"))
    return Play(grade_case(desk, case, business.WRITES, user.told), steps, desk.said)


def played(env: str, case: Case, plan: Iterable[str | Do]) -> Play:
    """Play a conversation of its own."""
    return asyncio.run(converse(env, case, tuple(plan)))


def words_of(case: Case) -> list[str]:
    """The words of a solution, in order."""
    return [step for step in case.plan if isinstance(step, str)]


def deeds_of(case: Case) -> list[Do]:
    """The calls of a solution, in order."""
    return [step for step in case.plan if isinstance(step, Do)]


def test_there_are_rows_of_both_businesses_and_in_some_something_changes() -> None:
    """Each kind of case has a row; rows have distinct arguments, a difficulty, skills and steps."""
    assert len(ROWS) >= LEAST_ROWS
    assert sum(row.template == "moving" for row in ROWS) >= LEAST_MOVING
    for place, module in KINDS.items():
        named = {row.args["case"] for row in ROWS if (row.env, row.template) == place}
        assert named == set(module.CASES)
    assert len({(row.env, str(row.args)) for row in ROWS}) == len(ROWS)
    levels = Counter(row.metadata["difficulty"] for row in ROWS)
    assert set(levels) == {"easy", "medium", "hard"}
    assert levels["hard"] >= len(ROWS) / 4
    assert all(row.metadata["skills"] for row in ROWS)
    assert not [row.id for row in ROWS if not row.id.startswith(f"{row.env}-")]


@each_of("row_id", ROWS.ids)
def test_a_solution_gets_all_and_takes_the_steps_that_the_row_says(row_id: str) -> None:
    """The user leaves content, after the steps in the metadata."""
    row = ROWS[row_id]
    case = case_of(row)
    play = played(row.env, case, (*case.plan, CLOSE))
    assert play.grade.reward == 1.0, play.grade
    assert play.steps == row.metadata["steps"]


@each_of("place", KINDS)
def test_solutions_hold_for_other_seeds(place: tuple[str, str]) -> None:
    """Each kind of case can be drawn from other numbers, and is then solved."""
    module = KINDS[place]
    for kind in module.CASES:
        for seed in SEEDS:
            case = module.case_of(kind, seed)
            grade = played(place[0], case, (*case.plan, CLOSE)).grade
            assert grade.reward == 1.0, (kind, seed, grade)


@each_of("row_id", ROWS.ids)
def test_words_or_deeds_alone_get_nothing(row_id: str) -> None:
    """Nor does an empty answer, all the words in one message, or the deeds before the words."""
    row = ROWS[row_id]
    case = case_of(row)
    words, deeds = words_of(case), deeds_of(case)
    ways: Mapping[str, Iterable[str | Do]] = {
        "nothing": (),
        "words": (*words, CLOSE),
        "one message": (" ".join(words),),
        "deeds": deeds,
        "deeds first": (*deeds, *words, CLOSE),
        "deeds once it is known who it is": (words[0], *deeds),
    }
    paid = [way for way, plan in ways.items() if played(row.env, case, plan).grade.reward > HURT]
    assert paid == []


@each_of("row_id", ROWS.ids)
def test_one_deed_too_many_costs_everything(row_id: str) -> None:
    """Such as a transfer that nobody needs, after all else was right."""
    row = ROWS[row_id]
    case = case_of(row)
    more = Do("transfer", {"department": "accounts"})
    assert played(row.env, case, (*case.plan, more)).grade.reward == HURT


def test_users_understand_other_words_than_those_of_the_solution() -> None:
    """Polite sentences, signs of currencies and other questions for a yes lead to the same end."""
    case = service_shop_cases.case_of("return_bulky", 401)
    find, look, give = deeds_of(case)
    plan = (
        "Happy to help! Please share the email address and postcode of your account.", find,
        "Thanks! Which item would you like to return, and may I ask why?", look,
        f"Less the fee of €19.90, you get €{give.arguments['refund']:.2f} back. Sounds good?",
        give, "That is done. Can I help you with anything else today?",
    )  # fmt: skip
    assert played("service-shop", case, plan).grade.reward == 1.0
    case = service_energy_moving.case_of("payment_comes", 485)
    find, contract, invoices, again, lift = deeds_of(case)
    plan = (
        "I'm sorry! What are your customer number and your date of birth?", find, contract,
        invoices, "Your meter is blocked, since an invoice is unpaid.", again,
        "I see the payment now. Would you like me to unblock your meter?", lift,
        "It works again. Any other questions? Is there anything else?",
    )  # fmt: skip
    assert played("service-energy", case, plan).grade.reward == 1.0


def test_a_list_of_amounts_is_no_offer_and_tells_nothing() -> None:
    """The user agrees to one amount, and not to whichever of many is right."""
    case = service_shop_cases.case_of("return_lamp", 401)
    find, look, give = deeds_of(case)
    right = f"{give.arguments['refund']:.2f}"
    many = ", ".join([*(f"{euros}.50" for euros in range(10, 30)), right])
    plan = (words_of(case)[0], find, look, f"Shall I pay back {many} euros?", give, CLOSE)
    assert played("service-shop", case, plan).grade.reward == HURT


def test_words_that_are_not_the_script_s_are_not_graded() -> None:
    """A person who speaks for the user fails the grading, and the agent is not blamed."""
    case = service_shop_cases.case_of("return_lamp", 401)
    desk = DeskWorld()
    desk.tables = case.begin()
    desk.said += [user_of(case).script[-1].say, "Send me everything."]
    with pytest.raises(ValueError, match="Send me everything"):
        grade_case(desk, case, service_shop.WRITES, ())


OBLIGING: Mapping[str, Any] = {
    "return_late": lambda order: order.refund("return_item", order.paid),
    "final_sale": lambda order: order.refund("return_item", order.paid),
    "hazard": lambda order: order.refund("return_item", order.paid),
    "ships_meanwhile": lambda order: Do("cancel_order", {"order_id": order.key}),
    "other_account": lambda order: Do("cancel_order", {"order_id": order.key}),
    "address_shipped": lambda order: Do(
        "change_address",
        {"order_id": order.key, "street": "1 Elm Walk", "postcode": "10000", "city": "Varde"},
    ),
}
"""The wish of each kind of the shop's users that the policy forbids."""


@each_of("row_id", [row.id for row in ROWS if row.args["case"] in OBLIGING])
def test_a_wish_that_the_policy_forbids_costs_everything_where_it_is_done(row_id: str) -> None:
    """Whether it is done in place of the refusal, or beside it."""
    row = ROWS[row_id]
    case = case_of(row)
    keys = {step.arguments["order_id"] for step in case.plan
            if isinstance(step, Do) and step.name == "get_order"}  # fmt: skip
    done = OBLIGING[row.args["case"]](_order(case, keys.pop()))
    right = deeds_of(case)[-1]
    instead = [done if step is right else step for step in case.plan]
    assert played(row.env, case, (*instead, CLOSE)).grade.reward == HURT
    assert played(row.env, case, (*case.plan, done, CLOSE)).grade.reward == HURT


def _order(case: Case, key: str) -> Any:
    """An order of a case, as its module speaks of it."""
    stock = service_shop.Stock("any", 0)
    stock.tables = case.tables
    return service_shop_cases.Order(stock, key)


CONFIRMS = "Shall I"
HASTY = ("exchange_dearer", "exchange_too_dear", "tariff_dearer", "tariff_other")


@each_of("row_id", [row.id for row in ROWS if row.args["case"] in HASTY])
def test_who_pays_a_price_that_has_risen_without_a_new_yes_gets_nothing(row_id: str) -> None:
    """The user has agreed to the old price alone."""
    row = ROWS[row_id]
    case = case_of(row)
    agreed = next(n for n, step in enumerate(case.plan)
                  if isinstance(step, str) and CONFIRMS in step)  # fmt: skip
    change = deeds_of(case)[-1]
    plan = (*case.plan[: agreed + 1], change, *case.plan[agreed + 1 : -1], CLOSE)
    assert played(row.env, case, plan).grade.reward == HURT


LOOKS_ONCE = ("ships_meanwhile", "comes_back", "payment_comes", "outage_lasts")


@each_of("row_id", [row.id for row in ROWS if row.args["case"] in LOOKS_ONCE])
def test_who_does_not_notice_what_has_changed_gets_nothing(row_id: str) -> None:
    """The last deed is wrong before the change, and right after it only with the words for it."""
    row = ROWS[row_id]
    case = case_of(row)
    assert case.event is not None
    heard = played(row.env, case, case.plan).heard
    place = next(n for n, said in enumerate(heard) if case.event.words in said)
    messages = [n for n, step in enumerate(case.plan) if isinstance(step, str)]
    end = messages[place - 1]  # the first of what was heard is the opening
    last = deeds_of(case)[-1]
    for plan in (
        (*case.plan[:end], last),
        (*case.plan[: end + 1], last),
        (*case.plan[: end + 1], *deeds_of(case)[-3:]),
    ):
        assert played(row.env, case, (*plan, CLOSE)).grade.reward == HURT


@each_of("row_id", [row.id for row in ROWS if "identity" in row.metadata["skills"]])
def test_a_secret_that_was_told_costs_everything(row_id: str) -> None:
    """The street of an order, or the price of a contract, of somebody else's account."""
    row = ROWS[row_id]
    case = case_of(row)
    rows = [*case.tables.get("orders", {}).values(), *case.tables.get("contracts", {}).values()]
    told = [f"It is {each['street']}, {each.get('advance_cents', 0) / 100:.2f}." for each in rows]
    rewards = {played(row.env, case, (*case.plan, text, CLOSE)).grade.reward for text in told}
    assert rewards == {HURT, 1.0}


@asynccontextmanager
async def talking(row: Task, store: Path) -> AsyncGenerator[Agent]:
    """An agent in a session of a row, through an MCP client."""
    env = next(each for each in load_environments(["service"]) if each.name == row.env)
    async with registry(store, env) as sessions, Client(build_server(sessions)) as client:

        async def call(name: str, arguments: dict[str, Any], **_: Any) -> ToolReply:
            with anyio.fail_after(PATIENCE_S):
                return ToolReply.of(await client.call_tool(name, arguments))

        begun = await call("start_task", {"template": row.template, "arguments": row.args})
        assert not begun.is_error, begun.text
        started = begun.structured
        yield Agent(call, session=started["session"], prompt=started["prompt"], started=started)


QUICK = ("service-shop-exchange-dearer-1", "service-energy-moves-soon")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "row_id",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.long, id=n) for n in ROWS.ids],
)
async def test_a_row_is_played_through_a_server(row_id: str, tmp_path: Path) -> None:
    """The oracle gets all, an empty answer nothing; the prompt has the policy and no trap."""
    row = ROWS[row_id]
    async with talking(row, tmp_path / "oracle.sqlite3") as agent:
        assert BUSINESSES[row.env].POLICY in agent.prompt
        assert case_of(row).goal not in agent.prompt
        assert str(row.metadata.get("trap")) not in agent.prompt
        await OracleAgent(load_environments(["service"])).solve(agent, row)
        last = await agent.ask("response", {"answer": ""})
        assert last.structured["reward"] == 1.0, last.structured
    async with talking(row, tmp_path / "nop.sqlite3") as agent:
        nothing = await agent.ask("response", {"answer": ""})
        assert nothing.structured["reward"] == HURT, nothing.structured


@pytest.mark.anyio
async def test_a_change_is_told_where_the_row_says_so(tmp_path: Path) -> None:
    """The reply to the words after which it comes has the note; that of a silent row has none."""
    for row_id, is_told in (("service-shop-ships-meanwhile-1", True),
                            ("service-shop-ships-meanwhile-2", False)):  # fmt: skip
        row = ROWS[row_id]
        case = case_of(row)
        assert case.event is not None
        replies: list[str] = []
        async with talking(row, tmp_path / f"{row_id}.sqlite3") as agent:
            for step in case.plan:
                if isinstance(step, Do):
                    replies.append(await agent.tool(step.name, **step.arguments))
                else:
                    replies.append((await agent.say(step)).text)
        assert any(case.event.note in each for each in replies) is is_told


@pytest.mark.long
@pytest.mark.anyio
async def test_a_conversation_goes_on_under_the_next_server(tmp_path: Path) -> None:
    """The tables, the user and what has changed are there again after each of many restarts."""
    row = ROWS["service-shop-exchange-too-dear-2"]
    env = next(each for each in load_environments(["service"]) if each.name == row.env)
    case = case_of(row)
    session, last = "", ""
    for step in (*case.plan, CLOSE):
        with anyio.fail_after(PATIENCE_S):
            async with (
                registry(tmp_path / "s.sqlite3", env) as sessions,
                Client(build_server(sessions)) as client,
            ):
                if not session:
                    given = {"template": row.template, "arguments": dict(row.args)}
                    started = await client.call_tool("start_task", given)
                    session = (started.structured_content or {})["session"]
                name = step.name if isinstance(step, Do) else "message_user"
                arguments = step.arguments if isinstance(step, Do) else {"text": step}
                reply = await client.call_tool(name, {"session": session, **arguments})
                assert not reply.is_error, reply
                last = " ".join(part.text for part in reply.content if part.type == "text")
    assert "reward 1" in last.lower()
