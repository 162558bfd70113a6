"""Plays probes: whoever solves, answers, attacks or looks, as the recorded task says."""

import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import orjson
from pydantic import Field, ValidationError

from hud_mcp.action import Value
from hud_mcp.agents.agent import Agent, ToolReply
from hud_mcp.agents.oracle import OracleAgent
from hud_mcp.checking.probes import Probe, hud_calls, original, read_probe
from hud_mcp.checking.references import occurs
from hud_mcp.checking.surface import (
    Seen,
    look_at_environment,
    look_at_session,
    replies_of,
)
from hud_mcp.core_tools import ACT, RESPONSE, STEP, TASK_STATUS
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError
from hud_mcp.rollout.conversation import AgentStopped
from hud_mcp.rollout.link import ConnectionLost
from hud_mcp.rollout.server import RunServer, ServerLost
from hud_mcp.task import Task
from hud_mcp.worlds.shell.attacks import named_files, shell_attacks

__all__ = ["ProbeSolver", "Report", "read_report"]

_MARK = "hud-mcp check: "
"""How the line of a probe's log begins that says what came of it."""


_COMMAND_S = 30
"""How long a command of an attack may take."""


_ORACLE_S = 60.0
"""How long the answer of an oracle that plays at the same time is waited for."""


class Report(Value):
    """What came of a probe, beside its grade; a line of its record's log."""

    answer: str | None = Field(default=None, description="What was submitted.")
    refused: str | None = Field(default=None, description="Why the answer was not taken.")
    error: str | None = Field(default=None, description="What went wrong with who played.")
    left_out: bool = Field(
        default=False, description="Whether there was nothing to try: the prompt has the value."
    )
    seen: tuple[Seen, ...] = ()


def read_report(logs: str | None) -> Report | None:
    """The report in a record's log; None while the probe has not come to its end."""
    for line in reversed((logs or "").splitlines()):
        _, mark, text = line.partition(_MARK)
        if mark:
            try:
                return Report.model_validate_json(text)
            except ValidationError:
                continue
    return None


class ProbeSolver:
    """Plays the probe that a task is.

    Args:
        environments: Those whose tasks it may meet.
        server: Reaches the server of the run.
        answers: What oracles have answered before, by the task's id.
    """

    name = "check"
    is_remote = False

    def __init__(
        self,
        environments: Iterable[Environment],
        server: RunServer,
        answers: Mapping[str, str | None],
    ) -> None:
        self._environments = {e.name: e for e in environments}
        self._oracle = OracleAgent(self._environments.values())
        self._server = server
        self._answers = dict(answers)
        self._played: dict[str, anyio.Event] = {}

    async def solve(self, agent: Agent, task: Task) -> None:
        """Play it, and leave its report in the log.

        Raises:
            ServerLost, ConnectionLost, AgentStopped: It was cut off, and has no report.
        """
        play = _Play(agent, self._server)
        error: str | None = None
        try:
            await self._play(play, read_probe(task), task)
        except (ServerLost, ConnectionLost, AgentStopped):
            raise
        except HudMcpError as exc:
            error = str(exc)
        except Exception as exc:  # noqa: BLE001  # an oracle's failure is a finding about its task
            frame = traceback.extract_tb(exc.__traceback__)[-1]
            error = f"{frame.filename}:{frame.lineno}: {type(exc).__name__}: {exc}"
        agent.note_answered(answered=play.agent.answered)
        report = Report(
            answer=play.answer, refused=play.refused, error=error, left_out=play.left_out,
            seen=tuple(play.seen),
        )  # fmt: skip
        text = orjson.dumps(report.model_dump(mode="json", exclude_defaults=True)).decode()
        for line in play.agent.lines:
            agent.log(line)
        agent.log(f"{_MARK}{text}")

    async def _play(self, play: "_Play", probe: Probe, task: Task) -> None:
        agent = play.agent
        if probe.kind == "oracle":
            try:
                await self._solve(agent, original(task))
            finally:
                self._answers.setdefault(probe.task, play.answer)
                self._event(probe.task).set()
            return
        if probe.kind == "value":
            await self._try(play, probe)
            return
        if probe.kind in ("leaks", "look"):
            await self._look(play, probe, task)
        for command in _commands(probe, agent.prompt):
            run = {"command": command, "timeout_s": _COMMAND_S}
            reply = await agent.ask(ACT, {"type": "custom", "action": "run", "args": run})
            if reply.is_error:
                agent.log(f"a command of the attack was refused: {reply.text}")
        reply = await agent.ask(RESPONSE, {"answer": _answer(probe, agent, play.seen)})
        agent.note_answered(answered=not reply.is_error)
        if probe.kind == "leaks":
            play.seen.extend(replies_of(RESPONSE, reply, "graded"))
            await self._after(play)

    async def _try(self, play: "_Play", probe: Probe) -> None:
        """Submit a value, or nothing where the prompt tells it."""
        value = probe.answer
        if value is None:
            value = await self._oracle_answer(probe.task)
        play.left_out = not value or occurs(_value(value), play.agent.prompt)
        reply = await play.agent.ask(RESPONSE, {"answer": "" if play.left_out else value})
        play.agent.note_answered(answered=not reply.is_error)

    async def _look(self, play: "_Play", probe: Probe, task: Task) -> None:
        """Look at the world; and, for leaks, at all that there is to see."""
        environment = self._environments[task.env]
        if environment.world.actions - {"wait"}:
            text = (await play.agent.ask(STEP, {"actions": []})).text
            play.seen.append(Seen(place="the observation", kind="observation", text=text, own=True))
        if probe.kind != "leaks":
            return
        if probe.whole:
            play.seen.extend(await look_at_environment(self._server, environment))
        play.seen.extend(await look_at_session(self._server, play.agent, task, environment))

    async def _solve(self, agent: Agent, task: Task) -> None:
        """Solve a task: by the calls in its row, where HUD's have some; else by the oracle."""
        calls = hud_calls(task)
        if calls is None:
            await self._oracle.solve(agent, task)
            return
        for name, arguments in calls:
            reply = await agent.ask(name, arguments)
            if reply.is_error:
                raise HudMcpError(
                    f"The call of {name} in the row's validation failed: {reply.text}"
                )
            agent.note_answered(answered=name == RESPONSE)
        if not agent.answered:
            await agent.respond("")

    async def _oracle_answer(self, task_id: str) -> str | None:
        """What the oracle has answered; it began before whoever asks. None where it does not."""
        if task_id not in self._answers:
            with anyio.move_on_after(_ORACLE_S):
                await self._event(task_id).wait()
        return self._answers.get(task_id)

    def _event(self, task_id: str) -> anyio.Event:
        """Set once the oracle has played a task."""
        return self._played.setdefault(task_id, anyio.Event())

    async def _after(self, play: "_Play") -> None:
        """What is told of a session that is over."""
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            (TASK_STATUS, {}),
            (ACT, {"type": "wait"}),
        )
        for name, arguments in calls:
            reply = await play.agent.ask(name, arguments)
            play.seen.extend(replies_of(f"{name}, afterwards", reply, "graded"))


def _commands(probe: Probe, prompt: str) -> list[str]:
    """What an attack does in the shell: it knows no more of the task than its prompt."""
    if probe.attack is None:
        return []
    return [a.command for a in shell_attacks(named_files(prompt)) if a.name == probe.attack]


class _Play:
    """An agent's handle that notes what was answered."""

    def __init__(self, agent: Agent, server: RunServer) -> None:
        self._inner = agent
        self._server = server
        self.answer: str | None = None
        self.refused: str | None = None
        self.left_out = False
        self.seen: list[Seen] = []
        self.agent = Agent(self._call, session=agent.session, prompt=agent.prompt)

    async def _call(
        self, name: str, arguments: dict[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> ToolReply:
        del meta  # no model makes a check's calls
        reply = await self._inner.ask(name, arguments)
        if name == RESPONSE:
            self.answer = str(arguments.get("answer", ""))
            self.refused = reply.text if reply.is_error else None
        return reply


def _answer(probe: Probe, agent: Agent, seen: Iterable[Seen]) -> str:
    """What a probe submits."""
    if probe.kind == "prompt":
        return agent.prompt
    if probe.kind == "last-line":
        return agent.prompt.strip().rpartition("\n")[2]
    if probe.kind == "look":
        return "\n".join(each.text for each in seen if each.kind == "observation")
    return probe.answer or ""


def _value(text: str) -> str | float:
    """The value that a text is: a number where it is one."""
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, int | float) and not isinstance(found, bool) else text
