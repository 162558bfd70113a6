"""Conversations of tau2-bench: a desk with tools and a policy, and a user who wants something.

The rows are imported: `hud-mcp taskset import tau2-retail`. A user speaks by a script made of the
row, or by the model that `HUD_MCP_USER_MODEL` names.
"""

import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from tau2_desk import DOMAINS, Desk, DeskWorld, tool_of, user_tool_of
from tau2_grading import grade
from tau2_oracle import solve
from tau2_rows import Case, read_case
from tau2_script import GREETING, persona_of, script_of, wish_of

from hud_mcp import Agent, Environment, User

INSTRUCTIONS = """You are a customer service agent. Help the user as the policy below says.
Speak to the user with message_user; look things up and change them with the other tools.
Do not do both at the same time.

<policy>
{policy}
</policy>"""
SO_FAR = "\n\nThe conversation has begun before you. So far:\n{lines}"


def declare(name: str) -> Environment:
    """Declare the desk of one business."""
    domain = DOMAINS[name]
    env = Environment(f"tau2-{name}", version="0.1.0", world=Desk(domain))
    for rule in domain.reads:
        env.tool(read_only=True)(tool_of(rule))
    for rule in domain.writes:
        env.tool(tool_of(rule))

    @env.template(description="Serve one user", user=True)
    async def customer(desk: DeskWorld, row: str, files: str) -> AsyncGenerator[Any, Any]:
        """A user asks for something, in a row of the files with this digest."""
        case = read_case(domain, row, files)
        desk.books = case.begin()
        user = user_of(desk, case)
        say = await user.answer(GREETING)
        reply = yield replace(say, instructions=instructions_of(case))
        while not reply.ended:
            reply = yield await user.answer(reply)
        yield await grade(desk, case, talk_of(case, user), by_limit=reply.by == "limit")

    @customer.oracle
    async def serve(agent: Agent, row: str, files: str) -> str:
        """Play the reference actions, and tell what is to be told."""
        return await solve(agent, read_case(domain, row, files))

    return env


def user_of(desk: DeskWorld, case: Case) -> User:
    """The user of a row: a model where the operator names one, else its script."""
    told = case.instructions
    return User(
        goal=wish_of(case),
        persona=persona_of(case),
        knows=[str(told[n]) for n in ("known_info", "unknown_info") if told.get(n)],
        script=script_of(case),
        tools=[user_tool_of(desk, rule) for rule in case.domain.user_calls],
        model=os.environ.get("HUD_MCP_USER_MODEL") or None,
        chars=20_000,
    )


def instructions_of(case: Case) -> str:
    """The policy, and what was said before where a row begins in the middle."""
    lines = [f"{m['role']}: {m['content']}" for m in case.history if m.get("content")]
    before = SO_FAR.format(lines="\n".join(lines)) if lines else ""
    return INSTRUCTIONS.format(policy=case.policy) + before


def talk_of(case: Case, user: User) -> list[tuple[str, str]]:
    """All that was said, in order: what a row begins with, and then by turns."""
    talk = [(m["role"], m["content"]) for m in case.history if m.get("content")]
    told = [("assistant", text) for text in user.told]
    said = [("user", text) for text in user.said]
    for i in range(max(len(told), len(said))):
        talk += [*told[i : i + 1], *said[i : i + 1]]
    return [each for each in talk if each[1]]


retail = declare("retail")
airline = declare("airline")
telecom = declare("telecom")
mock = declare("mock")
