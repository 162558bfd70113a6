"""The process of one agent in Python: `python -m hud_mcp.rollout.agent_process REFERENCE`.

The environment names its session, whose credential is all that it has. A server that dies is
started again at the same address. With `--check`, the process only checks that there is such an
agent.
"""

import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hud_mcp.agents.agent import Agent, Reply
from hud_mcp.agents.given import GivenAgent, load_reference
from hud_mcp.base.reaper import reaped
from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidAgent, sole_cause
from hud_mcp.rollout.link import (
    ConnectionLost,
    CurrentLink,
    Link,
    Meta,
    repeat,
    settled,
    step_once,
    web_link,
)
from hud_mcp.server.tools import CORE
from hud_mcp.values.call import ACT, STEP, TASK_STATUS

_PATIENCE_S = 90.0
"""The time that a server may take to come back."""
_PAUSES_S = (0.05, 0.2, 0.5, 1.0)
_TAIL = re.compile(r"\s*Pass after_step=\d+ with your next call\.\s*\Z")


class RemoteConversation:
    """The calls of one session, by its address, its credential and its id."""

    def __init__(self, url: str, token: str, session: str) -> None:
        self._url = url
        self._token = token
        self._session = session
        self._current = CurrentLink()
        self._turn = anyio.Lock()  # the number of steps is that of one call at a time
        self._steps: int | None = 0  # None if the server has to be asked

    async def __call__(self, name: str, arguments: dict[str, Any], meta: Meta = None) -> Reply:
        """Call a tool, as an agent does.

        Raises:
            EnvironmentFailed: No server has answered in the time that it may take, or the reply of
                a call was lost that cannot be made twice.
        """
        tool = CORE.get(name)
        if name in (STEP, ACT):
            async with self._turn:
                return await self._step(name, arguments, meta)
        if tool is not None and tool.idempotent:
            return await self._repeat(name, arguments, meta)
        async with self._turn:
            # The call may count as a step: the server is asked before the next one.
            self._steps = None
            try:
                return await self._once(name, arguments, meta)
            except ConnectionLost as exc:
                raise EnvironmentFailed(
                    f"The reply to {name} was lost with its server, which may have done it. "
                    "Call step to look."
                ) from exc

    async def keep(self, *, task_status: TaskStatus[None]) -> None:
        """Keep one connection after the other until this is cancelled.

        If the first one fails, it raises `EnvironmentFailed`.
        """
        begun = False
        failures = 0
        while True:
            try:
                async with web_link(self._url, self._token) as link:
                    self._current.change(link)
                    if not begun:
                        task_status.started()
                    begun, failures = True, 0
                    await link.died.wait()
            except Exception as exc:
                if not begun:
                    raise EnvironmentFailed(
                        f"The server of this run does not answer: {sole_cause(exc)}."
                    ) from exc
            self._current.change(None)
            await anyio.sleep(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
            failures += 1  # longer pauses: a server that starts is not asked all the time

    async def _step(self, name: str, arguments: dict[str, Any], meta: Meta) -> Reply:
        # An earlier call may have counted as a step.
        seen = self._steps if self._steps is not None else await self._count()
        self._steps = None

        async def send(seen: int) -> Reply:
            return await self._repeat(name, {**arguments, "after_step": seen}, meta)

        seen, reply = await step_once(seen, send, self._count)
        if not reply.is_error:
            self._steps = seen + 1
        # This caller counts by itself, so no agent reads that.
        return replace(reply, text=_TAIL.sub("", reply.text))

    async def _count(self) -> int:
        status = await self._repeat(TASK_STATUS, {"session": self._session}, None)
        return int(status.structured.get("steps", 0))

    async def _repeat(self, name: str, arguments: dict[str, Any], meta: Meta) -> Reply:
        until_s = time.monotonic() + _PATIENCE_S

        def give_up(exc: ConnectionLost, _losses: int) -> None:
            if time.monotonic() > until_s:
                raise EnvironmentFailed(f"The server no longer answers: {exc}") from exc

        return await repeat(lambda _suspect: self._once(name, arguments, meta), give_up=give_up)

    async def _once(self, name: str, arguments: dict[str, Any], meta: Meta) -> Reply:
        return await settled(lambda: self._called(name, arguments, meta))

    async def _called(self, name: str, arguments: dict[str, Any], meta: Meta) -> Reply:
        link = await self._ready()
        try:
            return await link.call(name, arguments, meta)
        except ConnectionLost:
            # The server behind the address is another one now; this connection has no use.
            link.die()
            raise

    async def _ready(self) -> Link:
        with anyio.move_on_after(_PATIENCE_S):
            while (link := self._current.link) is None or link.died.is_set():
                await self._current.changed()
            return link
        raise EnvironmentFailed(f"The server at {self._url} no longer answers.")


@asynccontextmanager
async def remote_conversation(
    url: str, token: str, session: str
) -> AsyncGenerator[RemoteConversation]:
    """Keep a connection while the block runs; raise `EnvironmentFailed` without an answer."""
    conversation = RemoteConversation(url, token, session)
    try:
        async with anyio.create_task_group() as group:
            await group.start(conversation.keep)
            try:
                yield conversation
            finally:
                group.cancel_scope.cancel()  # the keeper waits for a death that need not come
    except BaseExceptionGroup as found:
        cause = sole_cause(found)
        if isinstance(cause, HudMcpError):
            raise cause from None
        raise cause from cause.__cause__  # an agent's own exception keeps its reason


_CHECK = "--check"


def main(arguments: list[str]) -> int:
    """Work on the task that the environment names, and return the exit status."""
    try:
        # The agent's file may do anything as it loads: only this process meets it.
        agent = load_reference(arguments[0])
        if _CHECK in arguments:
            return 0
        anyio.run(_work, agent)
    except HudMcpError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except Exception:  # noqa: BLE001  # the agent's own: its run's log has it
        traceback.print_exc()
        return 1
    return 0


async def _work(given: GivenAgent) -> None:
    session = os.environ["HUD_MCP_SESSION"]
    url, token = os.environ["HUD_MCP_URL"], os.environ["HUD_MCP_TOKEN"]
    async with remote_conversation(url, token, session) as conversation:
        agent = Agent(conversation, session=session, prompt=os.environ["HUD_MCP_PROMPT"])
        try:
            await given.work(agent, os.environ["HUD_MCP_TASK"])
        finally:
            for line in agent.lines:
                sys.stdout.write(f"{line}\n")  # the job's runner reads the output into the record


_CHECK_S = 120.0


def process_command(reference: str) -> list[str]:
    """Return the command of a process that works on one task as an agent in Python."""
    return [sys.executable, "-P", "-m", "hud_mcp.rollout.agent_process", reference]


async def check_reference(reference: str) -> None:
    """Check in a process of its own that there is such an agent: its file may do anything.

    Raises:
        InvalidAgent: There is no such agent, or it cannot work; the text says what to write.
    """
    # What the file starts as it is loaded may hold the output open.
    command = reaped([*process_command(reference), "--check"])
    done = None  # it stays None after the bound
    with anyio.move_on_after(_CHECK_S):
        done = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False
        )
    if done is None:
        raise InvalidAgent(f"{reference} takes more than {_CHECK_S:g} s to load.")
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()
        raise InvalidAgent(said or f"{reference} ends its process while it is loaded.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
