"""The agent that plays probes: it solves, answers, attacks or looks, as the probe says."""

import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import orjson
from pydantic import Field, ValidationError

from hud_mcp.agents.agent import Agent, Reply
from hud_mcp.agents.baselines import OracleAgent
from hud_mcp.environment import Environment
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.rollout.checking.leaks import candidates, occurs
from hud_mcp.rollout.checking.pages import PageReader
from hud_mcp.rollout.checking.probes import (
    WORDS,
    Probe,
    has_oracle,
    hud_calls,
    original,
    read_probe,
)
from hud_mcp.rollout.checking.shell import (
    find_author_files,
    leave_changed_as,
    named_files,
    read_author_files,
    read_lines,
    search_for,
    shell_attacks,
)
from hud_mcp.rollout.checking.surface import Seen, look_at_environment, look_at_session, replies_of
from hud_mcp.rollout.conversation import AgentStopped
from hud_mcp.rollout.link import ConnectionLost, ServerLost
from hud_mcp.rollout.server import RunServer
from hud_mcp.values.action import Value
from hud_mcp.values.call import ACT, MESSAGE_USER, RESPONSE, STEP, TASK_STATUS

_MARK = "hud-mcp check: "
"""The beginning of the line with the report in a probe's log."""

_COMMAND_S = 30
"""The bound of one command of an attack."""

_ORACLE_S = 60.0
"""The time to wait for the answer of an oracle that plays at the same time."""


_MOST_ASKED = 20
"""The questions of one conversation that are answered."""


class Report(Value):
    """The report of a probe, beside its grade. It is a line of the record's log."""

    answer: str | None = Field(default=None, description="The submitted answer.")
    refused: str | None = Field(default=None, description="The reason why the answer was refused.")
    error: str | None = Field(default=None, description="The error of the player.")
    left_out: bool = Field(
        default=False, description="Whether there was nothing to try: the prompt has the value."
    )
    seen: tuple[Seen, ...] = ()
    findings: tuple[str, ...] = Field(default=(), description="Other faults, a sentence each.")
    notes: tuple[str, ...] = Field(default=(), description="Other notes.")
    opened: tuple[str, ...] = Field(default=(), description="The addresses that were opened.")


def read_report(logs: str | None) -> Report | None:
    """Return the report in a record's log; None while the probe has not ended."""
    for line in reversed((logs or "").splitlines()):  # a resumed probe may have written two
        _, mark, text = line.partition(_MARK)
        if mark:
            try:
                return Report.model_validate_json(text)
            except ValidationError:
                continue
    return None


class ProbeSolver:
    """The player of probes, with the known answers of oracles by the task's id."""

    name = "check"
    is_remote = False

    def __init__(
        self,
        environments: Iterable[Environment],
        server: RunServer,
        answers: Mapping[str, str | None],
        pages: PageReader,
    ) -> None:
        self._environments = {e.name: e for e in environments}
        self._oracle = OracleAgent(self._environments.values())
        self._server = server
        self._answers = dict(answers)
        self._pages = pages
        self._played: dict[str, anyio.Event] = {}

    async def solve(self, agent: Agent, task: Task) -> None:
        """Play a probe, and write its report to the log.

        Raises:
            ServerLost, ConnectionLost, AgentStopped: It was cut off, and has no report.
        """
        play = _Play(agent, self._server)
        error: str | None = None
        try:
            await self._play(play, read_probe(task), task)
        except (ServerLost, ConnectionLost, AgentStopped):  # the runner decides about these
            raise
        except HudMcpError as exc:
            error = str(exc)
        except Exception as exc:  # noqa: BLE001  # an oracle's failure is a finding about its task
            frame = traceback.extract_tb(exc.__traceback__)[-1]
            error = f"{frame.filename}:{frame.lineno}: {type(exc).__name__}: {exc}"
        agent.note_answered(answered=play.agent.answered)  # the inner handle alone saw the calls
        report = Report(
            answer=play.answer, refused=play.refused, error=error, left_out=play.left_out,
            seen=tuple(play.seen), findings=tuple(play.findings),
            notes=tuple(play.notes), opened=tuple(play.opened),
        )  # fmt: skip
        text = orjson.dumps(report.model_dump(mode="json", exclude_defaults=True)).decode()
        for line in play.agent.lines:  # the inner handle's, which no record has otherwise
            agent.log(line)
        agent.log(f"{_MARK}{text}")

    async def _play(self, play: "_Play", probe: Probe, task: Task) -> None:
        agent = play.agent
        if probe.kind == "oracle":
            try:
                await self._solve(agent, original(task))
            finally:
                # Set also after a failure: probes that need the answer must not wait for it.
                self._answers.setdefault(probe.task, play.answer)
                self._event(probe.task).set()
            return
        if probe.kind in ("value", "asks"):
            await (self._try(play, probe) if probe.kind == "value" else play.ask_user(probe))
            return
        if probe.shape is not None:
            await play.leave_outputs_as(probe.shape)
            await self._solve(agent, original(task))
            return
        if probe.kind == "gets":
            await self._open_addresses(play, task)
        if probe.kind in ("leaks", "look"):
            await self._look(play, probe, task)
        for command in _commands(probe, agent.prompt):
            reply = await agent.ask(ACT, _run(command))
            if reply.is_error:
                agent.log(f"a command of the attack was refused: {reply.text}")
        environment = self._environments[task.env]
        if probe.attack in environment.world.attacks:
            await environment.world.attack(probe.attack, agent, environment)
        reply = await _respond(agent, _answer(probe, agent, play.seen))
        agent.note_answered(answered=not reply.is_error)
        if probe.kind == "leaks":
            play.seen.extend(replies_of(RESPONSE, reply, "graded"))
            await self._after(play)

    async def _try(self, play: "_Play", probe: Probe) -> None:
        value = probe.answer
        if value is None:
            value = await self._oracle_answer(probe.task)  # known only once it has played
        # An answer that the prompt tells proves nothing.
        play.left_out = not value or occurs(_value(value), play.agent.prompt)
        reply = await _respond(play.agent, "" if play.left_out or value is None else value)
        play.agent.note_answered(answered=not reply.is_error)

    async def _look(self, play: "_Play", probe: Probe, task: Task) -> None:
        environment = self._environments[task.env]
        if environment.world.actions - {"wait"}:
            text = (await play.agent.ask(STEP, {"actions": []})).text
            play.seen.append(Seen(place="the observation", kind="observation", text=text, own=True))
        if probe.kind != "leaks":
            return
        if probe.whole:
            play.seen.extend(await look_at_environment(self._server, environment))
        play.seen.extend(await look_at_session(self._server, play.agent, task, environment))
        values = await self._answers_of(original(task), environment)
        if environment.world.runs_commands:
            await self._search_files(play, values, environment.world)
        read = await self._pages.read(original(task), environment, values)
        play.seen.extend(read.seen)
        play.notes += [f"A GET of {each} changes the site's state." for each in read.changing]
        if read.failed is not None:
            play.notes.append(f"The source of its pages was not read: {read.failed}")

    async def _search_files(self, play: "_Play", values: Iterable[str], world: WorldSpec) -> None:
        if (find := find_author_files()) is not None:
            play.findings += read_author_files((await play.agent.ask(ACT, _run(find))).text)
        for command in search_for(values):
            reply = await play.agent.ask(ACT, _run(command))
            play.seen.extend(read_lines(reply.text, world))

    async def _open_addresses(self, play: "_Play", task: Task) -> None:
        known, environment = original(task), self._environments[task.env]
        values = await self._answers_of(known, environment)
        for path in (await self._pages.read(known, environment, values)).changing:
            goto = {"type": "custom", "action": "goto", "args": {"url": path}}
            await play.agent.ask(ACT, goto)
            play.opened.append(path)
        play.left_out = not play.opened

    async def _answers_of(self, task: Task, environment: Environment) -> list[str]:
        found = [each.text for each in candidates(task, environment) if each.may_answer]
        if has_oracle(task, environment) and (answer := await self._oracle_answer(task.id)):
            found.append(answer)
        return found

    async def _solve(self, agent: Agent, task: Task) -> None:
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
        if not agent.answered:  # a grade needs an answer, and such a row may have none
            await agent.respond("")

    async def _oracle_answer(self, task_id: str) -> str | None:
        """Return the oracle's answer, whose probe began before this one; None if it gives none."""
        if task_id not in self._answers:
            with anyio.move_on_after(_ORACLE_S):  # it may have been cut off
                await self._event(task_id).wait()
        return self._answers.get(task_id)

    def _event(self, task_id: str) -> anyio.Event:
        return self._played.setdefault(task_id, anyio.Event())

    async def _after(self, play: "_Play") -> None:
        calls: tuple[tuple[str, dict[str, Any]], ...] = ((TASK_STATUS, {}), (ACT, {"type": "wait"}))
        for name, arguments in calls:
            reply = await play.agent.ask(name, arguments)
            play.seen.extend(replies_of(f"{name}, afterwards", reply, "graded"))


async def _respond(agent: Agent, answer: str) -> Reply:
    """Answer; a conversation that still asks something gets the same answer each time."""
    reply = await agent.ask(RESPONSE, {"answer": answer})
    for _ in range(_MOST_ASKED):
        if reply.is_error or reply.structured.get("state") != "open":
            break
        reply = await agent.ask(RESPONSE, {"answer": answer})
    return reply


def _run(command: str) -> dict[str, Any]:
    args = {"command": command, "timeout_s": _COMMAND_S}
    return {"type": "custom", "action": "run", "args": args}


def _commands(probe: Probe, prompt: str) -> list[str]:
    if probe.attack is None:
        return []
    return [a.command for a in shell_attacks(named_files(prompt)) if a.name == probe.attack]


class _Play:
    def __init__(self, agent: Agent, server: RunServer) -> None:
        self._inner = agent
        self._server = server
        self.answer: str | None = None
        self.refused: str | None = None
        self.left_out = False
        self.seen: list[Seen] = []
        self.findings: list[str] = []
        self.notes: list[str] = []
        self.opened: list[str] = []
        self._before_answer: str | None = None
        self.agent = Agent(self._call, session=agent.session, prompt=agent.prompt)

    async def ask_user(self, probe: Probe) -> None:
        """Ask the task's user for something, and submit the user's words as the answer."""
        said = await self.agent.ask(MESSAGE_USER, {"text": probe.answer or ""})
        self.left_out = said.is_error  # it has nobody to ask now
        if not said.is_error and said.structured.get("state") != "open":
            self.agent.note_answered()
            return
        reply = await _respond(self.agent, str(said.structured.get("reply") or ""))
        self.agent.note_answered(answered=not reply.is_error)

    async def leave_outputs_as(self, shape: str) -> None:
        """Leave every file that is made from now on in a shape, just before the answer."""
        mark = f"/tmp/.check-{id(self):x}"  # noqa: S108  # of the sandbox
        await self._inner.ask(ACT, _run(f": > {mark}"))
        self._before_answer = leave_changed_as(shape, mark)

    async def _spoil(self, command: str) -> None:
        """Leave the outputs in their shape. Without an output, no reward is too high."""
        reply = await self._inner.ask(ACT, _run(command))
        wanted = named_files(self.agent.prompt)
        lines = reply.text.splitlines()
        self.left_out = not any(line in wanted for line in lines)

    async def _call(
        self, name: str, arguments: dict[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> Reply:
        del meta  # no model makes a check's calls
        if name == RESPONSE and self._before_answer is not None:
            # Once: the answer may be repeated.
            command, self._before_answer = self._before_answer, None
            await self._spoil(command)
        reply = await self._inner.ask(name, arguments)
        if name == RESPONSE:
            self.answer = str(arguments.get("answer", ""))
            self.refused = reply.text if reply.is_error else None
        return reply


def _answer(probe: Probe, agent: Agent, seen: Iterable[Seen]) -> str:
    if probe.kind == "prompt":
        return agent.prompt
    if probe.kind == "last-line":
        return agent.prompt.strip().rpartition("\n")[2]
    if probe.kind == "words":
        return f"{' '.join(sorted(set(agent.prompt.split())))} {WORDS}"
    if probe.kind == "look":
        return "\n".join(each.text for each in seen if each.kind == "observation")
    return probe.answer or ""


def _value(text: str) -> str | float:
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    # JSON true is no number.
    return found if isinstance(found, int | float) and not isinstance(found, bool) else text
