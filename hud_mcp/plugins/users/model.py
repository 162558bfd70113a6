"""A user by a model: its conversation with the agent, its calls, and each of its turns."""

import logging
import os
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import anyio.to_thread

from hud_mcp.base.contention import Pauses
from hud_mcp.environment.conversation import UserTurn
from hud_mcp.environment.tool import Tool
from hud_mcp.environment.user import User
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.plugins.users.role import BEGIN, instructions, spoken
from hud_mcp.plugins.users.tools import call_tool, repeated_calls, tools_of
from hud_mcp.registry import service

__all__ = ["by_model"]

MODEL, ADDRESS = "HUD_MCP_USER_MODEL", "HUD_MCP_USER_URL"
"""The variables that name the model of users without one, and its address."""

TURN_S = 120.0
MOST_CALLS = 20
"""Of one turn; the last request has no tools, so that it has words."""
REPLY_TOKENS = 4_000
MOST_CHARS = 400_000
"""Of one conversation; more of it ends it, as its tokens would cost too much."""
_CHARS_A_TOKEN = 4

_log = logging.getLogger(__name__)


async def by_model(user: User, text: str) -> UserTurn:
    """Return a user's next turn, by its model; `text` is the agent's message.

    Raises:
        EnvironmentFailed: The model cannot be asked, gives no words, or takes too long. This is
            never the agent's result.
    """
    if sum(map(len, (*user.told, *user.said))) > MOST_CHARS:
        return UserTurn(text="", ends=True, by="limit", name=user.name)
    try:
        options = _options(user)
        requests = await anyio.to_thread.run_sync(_requests, options, user)
        with anyio.fail_after(TURN_S):
            return await _asked(user, text, requests)
    except TimeoutError:
        raise _failed(f"its model took longer than {TURN_S:g} s") from None
    except EnvironmentFailed:
        raise
    except HudMcpError as exc:
        # The agent is told of the failure, and a provider may quote what it was asked.
        _log.warning("The model of %r failed: %s", user.name, exc)
        raise _failed("its model failed; the server's log says why") from exc


def _failed(why: str) -> EnvironmentFailed:
    return EnvironmentFailed(f"The user of this conversation cannot answer: {why.rstrip('.')}.")


def _options(user: User) -> Any:
    """Return the options of a user's model, without any agent's key or bound."""
    name = user.model or os.environ.get(MODEL, "").strip()
    if not name:
        raise _failed(f"no model speaks for it. Set {MODEL}, or give User a model or a script")
    kind: Any = service("model options")
    try:
        return kind(
            name=name,
            base_url=os.environ.get(ADDRESS) or None,
            look="text",
            max_tokens=REPLY_TOKENS,
        )
    except ValueError as exc:
        raise _failed(f"{MODEL} or {ADDRESS} is wrong: {exc}") from None


class _Spoken:
    """The messages that a user's model has read and written so far.

    Attributes:
        history: Its conversation.
        turns: How many turns of its user it has.
    """

    def __init__(self, user: User) -> None:
        self.history: Any = service("model history")(instructions(user), keep_images=None)
        self.turns = 0


_spoken: "WeakKeyDictionary[User, _Spoken]" = WeakKeyDictionary()


async def _asked(user: User, text: str, requests: Any) -> UserTurn:
    try:
        # Not kept while it is asked: a turn that fails leaves no half of itself.
        known = _spoken.pop(user, None)
        if known is None or known.turns != len(user.said):  # it was resumed
            known = _restored(user)
        known.history.say(text or BEGIN)
        made = await _turn(user, requests, known.history)
        known.turns += 1
        _spoken[user] = known
        return made
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5.0):
            await requests.aclose()


def _requests(options: Any, user: User) -> Any:
    # On a thread: a provider's library takes seconds to load, in which other sessions go on.
    requests = service("model requests")(options)
    requests.settings = {"temperature": user.temperature, "seed": user.seed}
    return requests


def _restored(user: User) -> _Spoken:
    """Return the conversation so far of a user whose turns come from a record."""
    known, kinds = _Spoken(user), service("model libraries").messages
    heard = list(user.told)[: len(user.said) + 1]
    opens = len(heard) <= len(user.said)
    earlier = [BEGIN, *heard] if opens else heard
    for text, words in zip(earlier, user.said, strict=False):
        known.history.say(text)
        for call, result in repeated_calls(user, known.turns):
            part = kinds.ToolCallPart(call["name"], call["arguments"])
            known.history.reply(kinds.ModelResponse(parts=[part]))
            known.history.results([_result(part, result, is_refused=False)])
        known.history.reply(kinds.ModelResponse(parts=[kinds.TextPart(words)]))
        known.turns += 1
    return known


async def _turn(user: User, requests: Any, history: Any) -> UserTurn:
    """Ask for words, with calls of the user's own tools before them."""
    tools = tools_of(user)
    entries = service("model tools")(map(_entry, tools.values()), "text")
    turns: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    while True:
        more: list[Any] = entries if len(calls) < MOST_CALLS else []
        guess = sum(map(len, (*user.told, *user.said))) // _CHARS_A_TOKEN + 1
        reply = await requests.reply(history.messages(), more, pauses=Pauses(), guess=guess)
        turns.append(reply.turn.model_dump(mode="json", exclude_defaults=True))
        wanted = history.reply(reply.response)
        words, ends = spoken(user, reply.response.text or "")
        if not wanted or not more:
            break
        results: list[Any] = []
        for call in wanted:
            result, is_refused = await call_tool(tools, call.tool_name, call.args)
            if not is_refused:
                calls.append({"name": call.tool_name, "arguments": call.args})
            results.append(_result(call, result, is_refused=is_refused))
        history.results(results)
    if not words and not ends:
        raise _failed("its model gave an empty reply")
    usages = [turn.get("usage", {}) for turn in turns]
    return UserTurn(
        text=words,
        ends=ends,
        name=user.name,
        turns=tuple(turns),
        calls=tuple(calls),
        tokens=sum((use.get("input") or 0) + (use.get("output") or 0) for use in usages),
        cost=sum(turn.get("cost_usd") or 0.0 for turn in turns),
    )


def _entry(tool: Tool) -> SimpleNamespace:
    schema = dict(tool.arguments.schema)
    return SimpleNamespace(name=tool.name, description=tool.description, input_schema=schema)


def _result(call: Any, text: str, *, is_refused: bool) -> Any:
    kinds = service("model libraries").messages
    outcome = "failed" if is_refused else "success"
    return kinds.ToolReturnPart(call.tool_name, text, call.tool_call_id, outcome=outcome)
