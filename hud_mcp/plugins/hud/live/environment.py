"""A live environment: one held task, driven step by step from Python. `gym.make` makes it.

`hud_mcp.Environment` is another thing: a declaration, of which nothing runs.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from hud_mcp.agents.agent import answer_text
from hud_mcp.environment.task import Task
from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidTask, SessionEnded
from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.operating import call_problem
from hud_mcp.record.values import Receipt
from hud_mcp.values.action import CLA, Action, parse_actions
from hud_mcp.values.call import FunctionConfig, HudStyleConfigs, read_calls
from hud_mcp.values.observation import Observation, TaskResult
from hud_mcp.values.outcome import Cause

__all__ = ["Environment", "Observation", "Step", "TaskResult"]

Json = dict[str, Any]


class _Four(NamedTuple):
    """The four values of a step."""

    observation: Observation
    reward: float
    terminated: bool
    info: dict[str, Any]


class Step(_Four):
    """The result of `step`: four values that unpack, and further attributes.

    Attributes:
        truncated: Whether the world was cut off by a limit.
    """

    truncated: bool

    def __new__(
        cls,
        observation: Observation,
        reward: float,
        terminated: bool,  # noqa: FBT001  # the order is the documents'
        info: dict[str, Any],
        *,
        truncated: bool = False,
    ) -> Self:
        """Make one."""
        made = super().__new__(cls, observation, reward, terminated, info)
        made.truncated = truncated
        return made

    @property
    def result(self) -> TaskResult:
        """The same as a value that can be written as JSON."""
        return TaskResult(
            observation=self.observation,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            info=self.info,
        )


class Environment:
    """A running instance in which an agent acts. Made by `gym.make`, and closed by `close`.

    Attributes:
        metadata: Metadata of this instance; the session's record keeps it.
        client: The connection to its session.
        url: The address of the environment's page, or None; `get_urls` fetches it.
        live_url: The address where people can watch the session, or None.
        task: The task; None if the environment was made without one.
        build_data: Facts about how the environment was made.
        final_response: The agent's last answer; None before it.
        prompt: The prompt.
        trajectory: The id of the session's record.
        reward: The trajectory's reward; None until `close`, and if `evaluate` never ran.
        outcome: How the session ended; None until `close`.
        receipt: The record of its end; None until `close`.
    """

    def __init__(
        self,
        client: Client,
        *,
        begun: Mapping[str, Any],
        task: Task | None = None,
        metadata: dict[str, Any] | None = None,
        build_data: dict[str, Any] | None = None,
        job_id: str | None = None,
    ) -> None:
        self.metadata: dict[str, Any] = metadata if metadata is not None else {}
        self.client = client
        self.url: str | None = None
        self.live_url: str | None = None
        self.task = task
        self.build_data: dict[str, Any] = dict(build_data or {})
        self.final_response: str | None = None
        self.reward: float | None = None
        self.outcome: str | None = None
        self.receipt: Receipt | None = None
        self.prompt = ""
        self.trajectory = ""
        self._session = ""
        self._job_id = job_id
        self._is_new = True
        self._closed = False
        self._note_start(begun)

    def __repr__(self) -> str:
        named = self.task.id if self.task is not None else self.build_data.get("name", "")
        return f"<{type(self).__module__}.Environment of {named!r}, {self.trajectory}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def step(
        self, actions: Sequence[CLA | Mapping[str, Any]] | CLA | Mapping[str, Any] | None = None
    ) -> Step:
        """Perform actions in order, and look.

        Args:
            actions: One action or several, as objects or dicts; None only looks. A `ResponseAction`
                must be the last: it sets `final_response`, which `evaluate` reads, and does not end
                the session.

        Returns:
            `(observation, reward, terminated, info)`, with `truncated` beside them. The reward is
            the world's own for this step, or 0.0. If the world refused an action, `info["error"]`
            says which and why, and the observation shows the present state.

        Raises:
            InvalidAction: An action is malformed, or unknown to this environment. None was
                performed.
            SessionEnded: The session is over: it was closed, expired, or graded by a template.
            EnvironmentFailed: The world broke, or its server ended.
        """
        given = [_action_row(action) for action in parse_actions(actions, pointed=False)]
        reply = await self._call("hud-mcp/step", {"actions": given})
        self._is_new = False
        self.final_response = reply.get("final_response")
        return _read_step(reply)

    async def evaluate(self, config: HudStyleConfigs | None = None) -> Any:
        """Measure: call the task's own `evaluate`, or other functions in its place.

        The record has each call. You may call it any number of times; it does not end the session.
        The first evaluation grades a template's task, and later ones return the same until `reset`.

        Args:
            config: Functions in place of the task's own, in any of their forms. The record marks
                their result as an override; it is never the trajectory's reward.

        Returns:
            The function's result, or the list of results of several functions. For a template's
                task it
            is the reward.

        Raises:
            InvalidTask: The task has no `evaluate`, or a function does not exist or does not take
                these arguments. Nothing ran.
            GradingFailed: A function cannot run; the text has its file and line.
            SessionEnded, EnvironmentFailed: As for `step`.
        """
        reply = await self._call("hud-mcp/evaluate", {"calls": _rows(config)})
        self._is_new = False
        return reply["value"]

    async def answer(self, answer: Any) -> float | None:
        """Submit the final answer, have it graded, and end the session.

        Args:
            answer: Text stays unchanged; other values become JSON.

        Returns:
            The reward; None if the task has no grading.

        Raises:
            GradingFailed: The task cannot be graded; the session has ended.
            SessionEnded, EnvironmentFailed: As for `step`.
        """
        await self.step({"type": "response", "text": answer_text(answer)})
        task = self.task
        try:
            if task is not None and (task.prompt is None or task.evaluate):
                await self.evaluate()
        finally:
            await self.close()
        return self.reward

    async def reset(
        self, configs: HudStyleConfigs | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Run the setup again; earlier evaluations and answers no longer count.

        A template's task starts again in a new session. The former session ends as cancelled,
        unless it was graded.

        Args:
            configs: Functions in place of the task's own setup, in any of their forms.

        Returns:
            The observation, whose text begins with the prompt, and its info.

        Raises:
            InvalidTask: A function does not exist or does not take these arguments. Nothing ran.
            ActionFailed: A function raised; the session lives on.
            SessionEnded, EnvironmentFailed: As for `step`.
        """
        asked = {"calls": _rows(configs), "job_id": self._job_id, "unused": self._is_new}
        reply = await self._call("hud-mcp/reset", asked)
        self._note_start(reply)
        self._is_new = False
        self.final_response = None
        step = _read_step(reply)
        text = "\n\n".join(part for part in (self.prompt, step.observation.text) if part)
        seen = step.observation.model_copy(update={"text": text or None})
        return seen, step.info

    async def get_urls(self) -> dict[str, Any]:
        """Fetch the environment's addresses: `url`, and `live_url` for watching it.

        Returns:
            Both, or None for a missing one; the attributes get them too.

        Raises:
            SessionEnded, EnvironmentFailed: As for `step`.
        """
        reply = await self._call("hud-mcp/urls", {})
        self.url, self.live_url = reply.get("url"), reply.get("live_url")
        return {"url": self.url, "live_url": self.live_url}

    async def close(self) -> None:
        """End the session, and release its resources. It may be called twice.

        The last result of the task's own `evaluate` becomes its grade. Without one, the outcome is
        `cancelled`, and there is no reward.

        Raises:
            EnvironmentFailed: Its server ended; the record stays.
        """
        await self.give_up(None)

    async def give_up(self, reason: str | None, *, by_agent: bool = False) -> None:
        """Close it, and record the reason why it was not evaluated.

        `by_agent` says that the agent failed, so that this counts as its result. EnvironmentFailed
        is as for `close`.
        """
        if self._closed:
            return
        self._closed = True
        try:
            cause = Cause.AGENT if by_agent else Cause.OPERATOR
            ended = {"session": self._session, "cause": cause.value, "reason": reason}
            reply = await self.client.call("hud-mcp/conclude", ended)
            self.reward, self.outcome = reply.get("reward"), reply.get("outcome")
            if (receipt := reply.get("receipt")) is not None:
                self.receipt = Receipt.model_validate(receipt)
        finally:
            await self.client.close()

    async def _setup(self, config: HudStyleConfigs | None = None) -> None:
        """Run the task's setup, or other functions in its place; `make` has run it once."""
        calls = _rows(config)
        if calls is None and (self.task is None or not self.task.setup):
            return
        await self._call("hud-mcp/setup", {"calls": calls})
        self._is_new = False

    async def _call(self, operation: str, params: Mapping[str, Any]) -> Json:
        if self._closed:
            raise SessionEnded("This environment is closed. Make another one with gym.make.")
        return await self.client.call(operation, {"session": self._session, **params})

    def _note_start(self, begun: Mapping[str, Any]) -> None:
        try:
            self._session = str(begun["session"])
            self.trajectory = str(begun["trajectory"])
            self.prompt = str(begun["prompt"])
            self.build_data |= begun["environment"]
        except (KeyError, TypeError) as exc:
            raise EnvironmentFailed(
                f"The server's reply to the start is unreadable: {exc!r}."
            ) from exc


def _action_row(action: Any) -> Json:
    if isinstance(action, Action):
        return action.model_dump(mode="json", exclude_none=True)
    return cast("Json", to_jsonable_python(action))


def _rows(config: Any) -> list[Json] | None:
    """Return functions in any of their forms as JSON; None for the task's own."""
    if config is None:
        return None
    try:
        calls: Sequence[FunctionConfig] = read_calls(config)
    except (ValidationError, ValueError) as exc:
        raise InvalidTask(f"config: {call_problem(exc)}.") from None
    return [call.model_dump(mode="json") for call in calls]


def _read_step(reply: Mapping[str, Any]) -> Step:
    try:
        return Step(
            Observation.model_validate(reply["observation"]),
            float(reply.get("reward") or 0.0),
            bool(reply.get("terminated")),
            dict(reply.get("info") or {}),
            truncated=bool(reply.get("truncated")),
        )
    except (KeyError, ValueError, TypeError) as exc:
        raise HudMcpError(f"The server sent an unreadable observation: {exc!r}.") from exc
