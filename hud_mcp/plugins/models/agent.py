"""A model that works on tasks: it is asked, calls tools, and is shown their results."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson

from hud_mcp.agents.agent import Agent, BoundReached, MachineFailed, OperatorFailed
from hud_mcp.agents.agent import Reply as AgentReply
from hud_mcp.agents.kind import AgentKind, ListTools, Workplace
from hud_mcp.base.text import clip, clip_repr
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.conversation import (
    History,
    Screen,
    defined_tools,
    read_arguments,
    refused_result,
    tool_result,
)
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.plugins.models.replies import failed_here
from hud_mcp.plugins.models.requests import Reply, Requests
from hud_mcp.record.values import utc_now
from hud_mcp.session.caller import LOOK
from hud_mcp.values.call import CANCEL_TASK, MESSAGE_USER, RESPONSE, TASK_STATUS

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart, ToolReturnPart
    from pydantic_ai.tools import ToolDefinition

_FIRST_GUESS_TOKENS = 2_000
_CHARS_A_TOKEN = 4
_SCREEN_TOKENS = 5_000
"""More than a provider's own computer tool takes, and what a dialect puts around tools."""
_NAMED_CHARS = 100
_ARGUMENT_CHARS = 1_000
"""The length of recorded arguments that a model wrote and that are no call."""
_REMINDERS = 2
_REMINDER = (
    "Your reply had neither text nor a call. Call a tool, or submit the answer with `response`."
)


class ModelAgent:
    """An agent that asks a model for its next calls, and makes them.

    Raises:
        HudMcpError: The system prompt cannot be read, or has changed since the job began.
    """

    is_remote = False

    def __init__(self, requests: Requests, options: ModelOptions, *, list_tools: ListTools) -> None:
        self.name = options.name
        self._requests = requests
        self._options = options
        self._list_tools = list_tools
        self._system = options.system_text()
        self._defined: list[ToolDefinition] | None = None

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._requests.aclose()

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Work on a task, until the model submits an answer or ends with text, which is one.

        Raises:
            BoundReached: The model has used up what it may use; that is its result.
            OperatorFailed: The provider refused.
            MachineFailed: This program or a library failed. Whatever a model writes is read or
                refused to it, so that this is never its doing.
        """
        try:
            tools = await self._tools(agent)
            await _Dialogue(self._requests, self._options, agent, tools, self._system).work()
        except HudMcpError:
            raise
        except Exception as exc:  # the one place that attributes it
            raise failed_here(exc) from exc

    async def _tools(self, agent: Agent) -> "list[ToolDefinition]":
        if self._defined is None:
            listed = await self._list_tools(agent.session)
            self._defined = defined_tools(listed, self._options.look)
        return self._defined


class _Dialogue:
    def __init__(
        self,
        requests: Requests,
        options: ModelOptions,
        agent: Agent,
        tools: "Sequence[ToolDefinition]",
        system: str,
    ) -> None:
        self._requests = requests
        self._options = options
        self._agent = agent
        self._screen = _screen_of(requests, agent)
        self._tools = tools if self._screen is None else self._screen.tools(tools)
        self._waits_for: str | None = agent.started.get("waits_for")
        # Where it has a user, its own words are for them.
        self._tools = [tool for tool in self._tools if tool.name != MESSAGE_USER]
        self._names = [tool.name for tool in self._tools]
        self._history = History(system, keep_images=options.keep_images)
        self._spending = requests.spending.of_run()
        self._tokens = _FIRST_GUESS_TOKENS
        # A token has at least one byte, so that bytes are a bound.
        self._given = _SCREEN_TOKENS + len(system.encode()) + sum(map(_size, self._tools))
        self._asked = False

    async def work(self) -> None:
        look = self._options.look if self._screen is None else "image"
        if look != "both":
            self._agent.meta[LOOK] = look
        first = _first_words(self._agent, self._screen, sees=look != "text")
        self._history.say(first)
        self._tokens += len(first) // _CHARS_A_TOKEN
        reminders = 0
        while True:
            reply = await self._ask()
            calls = self._history.reply(reply.response)
            if reply.is_cut:
                of = " (--max-tokens)" if self._options.max_tokens is not None else ""
                raise BoundReached(f"as a reply was cut off at the most tokens it may have{of}")
            if calls:
                if await self._perform(reply.response.tool_calls, calls):
                    return
                continue
            text = (reply.response.text or "").strip()
            if not text and reminders < _REMINDERS:
                reminders += 1
                self._history.say(_REMINDER)
                continue
            if not await self._say(text):
                return

    async def _say(self, text: str) -> bool:
        """Hand the model's own words on, as its answer or to the user; tell whether it goes on."""
        tool = self._waits_for
        if tool is None:
            await self._agent.respond(text)
            return False
        given = {"text" if tool == MESSAGE_USER else "answer": text}
        reply = await self._agent.ask(tool, given)
        if not self._goes_on(reply) or await self._may_be_over(tool, {}, refused=reply.is_error):
            return False
        self._history.say(reply.text)  # the user's turn is one of its user's
        return True

    def _goes_on(self, reply: AgentReply) -> bool:
        """Whether a conversation goes on after a reply, and with which tool."""
        self._waits_for = reply.structured.get("waits_for", self._waits_for)
        goes_on = reply.is_error or reply.structured.get("state") == "open"
        self._agent.note_answered(answered=not goes_on)
        return goes_on

    async def _ask(self) -> Reply:
        began, self._asked = utc_now(), False
        try:
            reply = await self._requests.reply(
                self._history.messages(),
                self._tools,
                pauses=self._agent.pauses,
                guess=self._tokens,
                given=self._given + self._history.new_tokens,
                run=self._spending,
                check=self._check,
            )
        except (BoundReached, MachineFailed, OperatorFailed) as exc:
            if self._asked:
                self._agent.report(self._requests.failed_turn(exc, began))
            raise
        self._agent.heard()
        self._agent.report(reply.turn)
        usage = reply.turn.usage
        self._tokens = (usage.input or self._tokens) + (usage.output or 0)
        self._given = self._tokens
        self._requests.spending.need_count(reply.turn.cost_usd)
        return reply

    def _check(self) -> None:
        """Check the limits of cost, as a request is about to be made; its time begins."""
        self._spending.check()
        self._asked = True
        self._agent.asks()

    async def _perform(
        self, written: "Sequence[ToolCallPart]", calls: "Sequence[ToolCallPart]"
    ) -> bool:
        """Make the calls of one reply in order; tell whether the session is over then."""
        results: list[ToolReturnPart] = []
        for said, call in zip(written, calls, strict=True):
            arguments = _arguments_of(said)
            if self._screen is not None and self._screen.takes(said.tool_name):
                results.append(await self._screen.perform(call, arguments or {}))
                continue
            if said.tool_name not in self._names:
                named = clip_repr(said.tool_name, _NAMED_CHARS)
                text = f"There is no tool {named}; there are {', '.join(self._names)}."
                results.append(refused_result(call, text))
                continue
            if arguments is None:
                text = (
                    "Its arguments are no JSON object; nothing was done. Write the call again. "
                    f"They were: {clip(str(said.args), _ARGUMENT_CHARS)}"
                )
                results.append(refused_result(call, text))
                continue
            reply = await self._agent.ask(call.tool_name, arguments)
            ends = call.tool_name in (RESPONSE, CANCEL_TASK) and not reply.is_error
            over = ends and (self._waits_for is None or not self._goes_on(reply))
            if over or await self._may_be_over(call.tool_name, arguments, refused=reply.is_error):
                return True
            results.append(tool_result(call, reply, self._options.look))
        self._history.results(results)
        return False

    async def _may_be_over(self, tool: str, arguments: dict[str, Any], *, refused: bool) -> bool:
        """Whether the session is over, where the call may have ended it or met its end."""
        answers = '"type":"response"' in orjson.dumps(arguments).decode()
        if tool == TASK_STATUS or not (answers or refused):
            return False
        status = await self._agent.ask(TASK_STATUS, {})
        return status.structured.get("state") in ("grading", "ended")


def _arguments_of(call: "ToolCallPart") -> dict[str, Any] | None:
    given = read_arguments(call)
    if given is None:
        return None
    return {name: value for name, value in given.items() if name != "session"}


def _size(tool: "ToolDefinition") -> int:
    schema = orjson.dumps(tool.parameters_json_schema)
    return len(f"{tool.name}{tool.description}".encode()) + len(schema)


def _screen_of(requests: Requests, agent: Agent) -> Screen | None:
    """Return the screen of the provider's own tool; None if the model has the generic tools."""
    size = agent.started.get("screen")
    if requests.computer is None or size is None:
        return None
    return Screen(requests.computer, agent, size["width"], size["height"])


def _first_words(agent: Agent, screen: Screen | None, *, sees: bool) -> str:
    """Return the first message: the prompt, the form of the answer, the screen's size."""
    parts = [agent.prompt]
    started = agent.started
    if (schema := started.get("answer_schema")) is not None:
        parts.append(f"The answer is JSON of this schema: {orjson.dumps(schema).decode()}")
    if screen is None and sees and (size := started.get("screen")) is not None:
        parts.append(f"The screen is {size['width']} x {size['height']} pixels.")
    return "\n\n".join(parts)


@asynccontextmanager
async def _open(options: ModelOptions, place: Workplace) -> AsyncGenerator[ModelAgent]:
    requests = Requests(options, spent_usd=place.spent_usd)
    agent = ModelAgent(requests, options, list_tools=place.list_tools)
    try:
        yield agent
    finally:
        await agent.aclose()


def _check(options: ModelOptions) -> None:
    """Find out whether the model can be asked, without a request; raise as `Requests` does."""
    options.system_text()
    Requests(options)


MODEL = AgentKind(_open, check=_check, options=ModelOptions, lists_tools=True)
