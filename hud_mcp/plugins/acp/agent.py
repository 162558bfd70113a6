"""The kind of an agent that speaks the Agent Client Protocol, and its run on one task."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio.to_thread

from hud_mcp.agents.agent import Agent, BoundReached
from hud_mcp.agents.command import CommandDied, given_model, log_output
from hud_mcp.agents.kind import AgentKind, AgentOptions, RunModel, Workplace
from hud_mcp.agents.programs import TOLD, UNREAD
from hud_mcp.agents.surroundings import Surroundings
from hud_mcp.environment.task import Task
from hud_mcp.plugins.acp.connection import (
    METHOD_NOT_FOUND,
    Connection,
    Json,
    RequestRefused,
    connected,
)
from hud_mcp.plugins.acp.known import check, start
from hud_mcp.plugins.acp.permits import Permits, Person
from hud_mcp.plugins.acp.session import Session
from hud_mcp.plugins.acp.shell import Shell, has_shell
from hud_mcp.plugins.acp.updates import Updates
from hud_mcp.session.caller import session_token
from hud_mcp.values.call import MESSAGE_USER

__all__ = ["ACP", "AcpAgent"]

_ONCE_MORE = "The task has no answer yet. Submit the final answer with the tool `response`."
_GO_ON = "You were interrupted. Go on with the task, and submit the final answer with `response`."
_READ = "The words that end your turn are said to the user, and the reply is your next prompt."
_BOUNDS = {
    "max_tokens": "at the longest reply of its model",
    "max_turn_requests": "at its own limit of requests",
    "refusal": "as its model refused to go on",
}
"""The ends of an agent's work that are no end of its own, by their reasons."""


class AcpAgent:
    """An agent that runs a program of the protocol for each task.

    The program gets an empty folder, and the token of its own session. Files and terminals are
    those of the session's shell, if it has one; none of this machine is served to it.

    Args:
        name: Its name, with the scheme.
        place: The job's surroundings.
        person: The person who is asked for permissions, if one is.
    """

    is_remote = True

    def __init__(self, name: str, place: Workplace, *, person: Person | None = None) -> None:
        self.name = name
        self.place = place
        self.person = person

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Run the program, prompt it, and wait until it has worked.

        Raises:
            BoundReached: It stopped at a bound of its own, without an answer.
            CommandDied: It ended, or breaks the protocol.
            InvalidAgent: It is not there any more, or wants a login.
            HudMcpError: Its model was refused to it, and it ended without an answer.

        If this call is cancelled, the program is asked to stop, and then killed, with everything
        that it started.
        """
        check(self.name)
        async with given_model(self.place.gateway, agent) as model:
            with Surroundings(model, self.place.note) as here:
                # To ask a program for its list of models takes a while.
                run = await anyio.to_thread.run_sync(_Run, self, agent, here, model)
                await run.work()


class _Run:
    """One run of a program on one task."""

    def __init__(
        self, kind: AcpAgent, agent: Agent, here: Surroundings, model: RunModel | None
    ) -> None:
        self._kind = kind
        self._agent = agent
        self._here = here
        self._model = model
        self._folder = here.folder / "work"
        self._start = start(kind.name, model, self._folder)
        token = session_token(kind.place.token, agent.session)
        self._session = Session(self._start, here, kind.place.url, token, model)
        self._updates = Updates(agent, reports=model is None)
        self._permits = Permits(kind.place.permit, kind.person)
        self._shell: Shell | None = None
        self._folder.mkdir(mode=0o700)
        for name, content in self._start.files.items():
            here.write(f"work/{name}", content)
        for name, text in self._start.home.items():
            path = here.folder / "home" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    async def work(self) -> None:
        """Let the program work until the session of its task is over, or its work is."""
        tools = await self._kind.place.list_tools(self._agent.session)
        self._permits.tools = frozenset(each.name for each in tools)
        session = self._session
        if self._kind.place.permit != "none" and has_shell(tools):
            self._shell = Shell(self._agent, self._folder, self._permits.allows)
        session.has_shell = self._shell is not None
        try:
            talks = self._agent.started.get("waits_for") is not None
            told = TOLD.replace(UNREAD, _READ) if talks else TOLD
            await self._talk(f"{self._agent.prompt}{told}")
        except CommandDied:
            # Its own death, at most once: a session that it kept goes on.
            if not (session.number and session.loads) or not await self._goes_on():
                raise
            self._updates.log("loads its session again, after its program has ended")
            await self._talk(_GO_ON)
        finally:
            self._updates.close()

    async def _talk(self, text: str) -> None:
        start, folder = self._start, self._folder
        async with connected(
            await anyio.to_thread.run_sync(self._here.command, start.command, folder),
            {**self._here.variables, **start.variables},
            folder=folder,
            title=f"agent {self._kind.name}",
            on_request=self._answer,
            on_notice=self._take,
            log=lambda status, said: log_output(self._agent, f"{self._kind.name}: {status}", said),
        ) as connection:
            self._updates.is_replay = bool(self._session.number)
            try:
                await self._session.open(connection, self._folder)
                self._updates.is_replay = False
                self._updates.model = self._session.model
                reason = await self._converse(connection, text)
            except RequestRefused as exc:
                raise connection.died("failed", said=str(exc)) from None
        if reason in _BOUNDS and await self._goes_on():
            raise BoundReached(f"{_BOUNDS[reason]} ({reason})")

    async def _converse(self, connection: Connection, text: str) -> str:
        """Prompt the program, then with each reply of the task's user, and at last once more."""
        reason, is_reminded = await self._prompt(connection, text), False
        while reason == "end_turn" and await self._goes_on():
            told = await self._hand_on()
            if told is None and (is_reminded or not await self._goes_on()):
                break
            is_reminded = is_reminded or told is None
            reason = await self._prompt(connection, _ONCE_MORE if told is None else told)
        return reason

    async def _hand_on(self) -> str | None:
        """Say the words that ended the agent's turn to its user; None if no reply is there."""
        agent, words = self._agent, self._updates.words.strip()
        if agent.started.get("waits_for") is None or not words:
            return None
        reply = await agent.ask(MESSAGE_USER, {"text": words})
        if reply.is_error:  # its answer is waited for, or the session is over
            return None
        is_open = reply.structured.get("state") == "open"
        agent.note_answered(answered=not is_open)
        return reply.text if is_open else None

    async def _goes_on(self) -> bool:
        refused = self._model is not None and self._model.refused is not None
        return not refused and await self._agent.is_open()

    async def _prompt(self, connection: Connection, text: str) -> str:
        reply = await self._session.prompt(connection, text)
        self._updates.close(str(reply.stop_reason), reply.usage)
        await self._updates.record()
        return str(reply.stop_reason)

    async def _take(self, method: str, params: Json) -> None:
        if method == "session/update" and params.get("sessionId") == self._session.number:
            self._updates.take(params.get("update"))
            await self._updates.record()

    async def _answer(self, method: str, params: Json) -> Json:
        shell, is_own = self._shell, params.get("sessionId") == self._session.number
        if shell is not None and is_own and method in shell.methods:
            return await shell.answer(method, params)
        if method != "session/request_permission":
            raise RequestRefused(METHOD_NOT_FOUND, f"This client has no {method}.")
        call, options = params.get("toolCall"), params.get("options")
        listed = cast("list[Any]", options) if isinstance(options, list) else []
        known = self._updates.asked(cast("Json", call) if isinstance(call, dict) else {})
        await self._updates.record()
        offered = [cast("Json", each) for each in listed if isinstance(each, dict)]
        with self._agent.pauses.pause():  # a person may take their time
            outcome, line = await self._permits.answer(known, offered)
        self._updates.log(f"asks for {line}")
        return {"outcome": outcome}


@asynccontextmanager
async def _open(options: AgentOptions, place: Workplace) -> AsyncGenerator[AcpAgent]:
    yield AcpAgent(options.name, place, person=Person(place) if place.permit == "ask" else None)


ACP = AgentKind(_open, check=lambda options: check(options.name), is_remote=True)
