"""Tasks with a user: a shop whose world is its refunds, by replay or from snapshots."""

# ruff: noqa: ANN001, ANN003, ANN201, ANN202, ANN204, D102, FBT001, FBT002  # as authors write

import asyncio
from pathlib import Path

import orjson

from hud_mcp import (
    ActionEffect,
    Ask,
    Environment,
    Observation,
    Say,
    User,
    When,
    World,
    WorldSpec,
    grade_checks,
)
from hud_mcp.environment.conversation import UserTurn, turn

SECRETS = ("PERSONA-7", "GOAL-7", "KNOWS-7", "NEVER-7")
"""The parts of users that no agent may see."""

SCRIPT = (
    When(r"order number|which order", say="It is #W4711.", slot="order"),
    When(r"refund(ed)?\b", say="Thank you, goodbye.", after="order", ends=True),
    When(r"NEVER-7-PATTERN", say="NEVER-7"),
    When(say="I want my money back."),
)
POLICY = "Refund an order only when you know its number."


class Shop(World):
    """The refunds of one session."""

    def __init__(self):
        self.refunds = []

    async def act(self, action):
        return ActionEffect()

    async def observe(self, look):
        return Observation(text=f"refunds: {self.refunds}")

    async def snapshot(self):
        return orjson.dumps(self.refunds)

    async def restore(self, data):
        self.refunds = orjson.loads(data)

    async def close(self):
        pass


class ShopSpec(WorldSpec):
    """Declares a shop."""

    name = "shop"
    world_type = Shop

    def __init__(self, *, replayable=True):
        self.replayable = replayable

    async def open(self, opening):
        return Shop()


env = Environment("shop", world=ShopSpec())
kept = Environment("kept-shop", world=ShopSpec(replayable=False))
plain = Environment("plain")


def ana(**options):
    """A user with secrets."""
    given = {"persona": "PERSONA-7", "goal": "GOAL-7", "knows": ("KNOWS-7",), "script": SCRIPT}
    return User(**{**given, **options})


async def refund(shop: Shop, order: str) -> str:
    """Refund an order."""
    shop.refunds.append(order)
    return f"refunded {order}"


async def return_order(shop: Shop):
    """Return an order."""
    user = ana()
    reply = yield Say("Hello, I would like to return something.", instructions=POLICY)
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield grade_checks(
        {"refunded": shop.refunds == ["#W4711"]}, said=user.heard("the refund takes 5 days")
    )


for each in (env, kept):
    each.tool(refund)
    each.template(user=True)(return_order)


@env.template(user=True)
async def costly(shop: Shop, log: str, holds: bool = False):
    """A user whose words cost something: each time it is asked, a file says so."""
    reply = yield Say("Hello.")
    while not reply.ended:
        text = reply.text

        async def produce(text=text):
            with Path(log).open("a") as out:  # noqa: ASYNC230  # a test's
                out.write(f"{text}\n")
            return UserTurn(text=f"You said {text}.", ends="bye" in text, tokens=5, cost=0.5)

        said = await turn(produce)
        while holds and not Path(f"{log}.go").exists():  # noqa: ASYNC240  # the same
            Path(f"{log}.asked").touch()  # noqa: ASYNC240  # the same
            await asyncio.sleep(0.02)
        reply = yield Say(said.text, ends=said.ends)
    yield float(reply.by == "user")


@env.template(user=True)
async def in_parts(shop: Shop):
    """Parts, a typed question and a last word."""
    reply = yield Say("Who am I?", part="identify", weight=3.0)
    reply.grade("Ana" in reply.text)
    asked = Ask("How many lamps?", returns=int, part="count")
    answer = yield asked
    asked.grade(answer.is_valid and answer.content == 2)
    reply = yield Say("And now?")
    assert reply.ended == (reply.by is not None)
    yield None


@env.template(user=True)
async def bounded(shop: Shop, steps: int | None = None, seconds: float | None = None):
    """One reply, within steps or seconds; what ended it is the reward."""
    reply = yield Say("Hurry.", steps=steps, seconds=seconds)
    late = yield Say("Are you there?")
    yield {"reward": float(late.ended and not late.text), "content": f"{reply.by} {reply.steps}"}


@env.template(user=True)
async def endless(shop: Shop):
    """A user that never ends."""
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield Say("Go on.")
    yield {"reward": 0.0, "content": f"{reply.by}"}


@env.template(user=True)
async def deaf(shop: Shop):
    """A template that does not see the end of its conversation."""
    yield Say("Hello.")
    while True:
        yield Say("Go on.")


@env.template(user=True)
async def broken(shop: Shop):
    """A user that cannot speak."""
    yield Say("Hello.")
    if shop.refunds == []:
        raise RuntimeError("GOAL-7 cannot be reached")
    yield 1.0


@env.template(user=True)
async def echo(shop: Shop):
    """Ends with the first message; it is the grade's content."""
    reply = yield Say("Hello.")
    yield {"reward": 1.0, "content": reply.text}


@env.template()
async def asks_twice(shop: Shop):
    """Two questions, without a user."""
    first = yield Ask("One?")
    second = yield Ask("Two?")
    yield float((first, second) == ("1", "2"))


@plain.template()
async def question():
    """A template that asks once."""
    answer = yield "How many?"
    yield float(answer == "3")


@plain.template()
async def says_undeclared():
    """A template that talks, and does not say so."""
    yield Say("Hello.")
    yield 1.0


@costly.oracle
async def _(agent, log, holds):
    said = await agent.say("a")
    assert said.text == "You said a."
    last = await agent.say("bye")
    assert agent.answered, last.text


@env.template(user=True)
async def moving(shop: Shop):
    """A user, in a shop where something arrives after the second message."""
    user = ana()
    reply = yield Say("Hello.")
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield float(shop.refunds == ["arrived"])


@moving.after(step=2)
async def arrive(shop):
    """Something arrives."""
    shop.refunds.append("arrived")
    return "A parcel has arrived."
