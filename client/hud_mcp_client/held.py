"""A held task as a client knows it, and the calls on it over the wire.

Its methods are pieces of work; `session.Session` and `sync.Session` perform them.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hud_mcp_client.errors import (
    AlreadyAnswered,
    ConnectionFailed,
    EnvironmentFailed,
    GradingFailed,
    InvalidAction,
    SessionEnded,
    SessionResuming,
    refusal,
)
from hud_mcp_client.values import Observation, Receipt, Row, Screenshot, Step, ToolReply, as_row
from hud_mcp_client.wire import Pause, Wire, Work

__all__ = ["HeldSession", "begin", "listed", "resumed"]

_LOOK, _PLAIN = "hud-mcp/look", "hud-mcp/plain"
_RESUMING_S, _GRADING_S = 1.0, 0.5
_MOST_PAUSES = 900
"""The most repeated calls to a session that is being resumed or graded."""


class HeldSession:
    """A session, as far as its client knows it.

    Attributes:
        id: Its id, which opens it from anywhere: a secret.
        task: The task's id.
        environment: The environment's name.
        prompt: The prompt.
        answer_schema: The JSON schema of the answer, if it has a type.
        steps: The number of steps.
        trajectory: The id of its record, if known.
        job: The id of its job, or None.
        live_url: The address where people can watch it, or None.
        final_response: The agent's last answer; None before it.
        reward: The reward; None until the end, and without a grade.
        outcome: The outcome; None until the end.
        receipt: The server's receipt; None until the end.
    """

    def __init__(self, wire: Wire, begun: Row, *, job: str | None, asked: Row | None) -> None:
        self._wire = wire
        self._asked = asked  # None for a resumed session, whose start is not known here
        self._take(begun, job)

    def _take(self, begun: Row, job: str | None) -> None:
        self.id = str(begun["session"])
        self.task = str(begun.get("task", ""))
        self.environment = str(begun.get("environment", ""))
        self.prompt = str(begun.get("prompt", ""))
        self.answer_schema: Row | None = begun.get("answer_schema")
        self.steps = int(begun.get("steps") or 0)
        self.trajectory = str(begun.get("trajectory", ""))
        self.job = job
        self.live_url: str | None = begun.get("live_url")
        self.final_response: str | None = None
        self.reward: float | None = None
        self.outcome: str | None = None
        self.receipt: Receipt | None = None
        self._closed = False
        if begun.get("receipt"):
            self._end(begun["receipt"])

    def __repr__(self) -> str:
        where = self.outcome or f"{self.steps} steps"
        return f"<{type(self).__module__}.Session of {self.task!r}: {where}>"

    def _end(self, receipt: Row) -> None:
        self.receipt = Receipt.model_validate(receipt)
        self.outcome, self.reward = self.receipt.outcome, self.receipt.reward
        self.trajectory = self.receipt.trajectory or self.trajectory

    def work_step(self, actions: Any, look: str | None, *, changes: bool) -> Work[Step]:
        """Perform actions in order, and look. An answer among them is kept, and ends nothing."""
        rows, answer = _rows(actions)
        asked = {"actions": rows, "after_step": self.steps, "session": self.id}
        if changes:
            asked["observe"] = "changes"
        meta = {_PLAIN: True} | ({} if look is None else {_LOOK: look})
        reply = yield from self._call("step", asked, meta=meta)
        told = reply.meta.get("hud-mcp/step")
        if told is None:
            raise refusal(reply.meta.get("hud-mcp/error"), reply.text)
        self.steps = int(told["steps"])
        if answer is not None:
            self.final_response = answer
        shot = None
        if reply.image is not None:
            size = as_row(told.get("screenshot"))
            shot = Screenshot(
                reply.image,
                reply.mime_type,
                int(size.get("width", 0)),
                int(size.get("height", 0)),
                float(size.get("scale", 1.0)),
            )
        seen = Observation(reply.text or None, shot, told.get("values"))
        return Step.of(seen, told, told.get("error"))

    def work_answer(self, answer: Any) -> Work[float | None]:
        """Submit the answer, and wait for its grade."""
        if self.outcome is not None:
            raise SessionEnded(f"The session has ended already: {self.outcome}.")
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        reply = yield from self._call("response", {"answer": text, "session": self.id})
        self.final_response = text
        if not reply.is_error and reply.structured.get("state") == "ended":
            self._end(reply.structured)
        else:
            problem = refusal(reply.meta.get("hud-mcp/error"), reply.text)
            if reply.is_error and isinstance(problem, AlreadyAnswered):
                raise problem
            yield from self.work_wait()
            if self.receipt is None:
                raise problem
        return self._reward_of(reply.text)

    def _reward_of(self, said: str) -> float | None:
        """Return the reward of the session's end; an end without a grade raises."""
        if self.outcome == "grading_failed":
            raise GradingFailed(said)
        if self.outcome == "environment_failed":
            raise EnvironmentFailed(said)
        if self.outcome != "graded":
            raise SessionEnded(said)
        return self.reward

    def work_wait(self) -> Work[None]:
        """Wait while the session is being graded, and note its end."""
        for _ in range(_MOST_PAUSES):
            reply = yield from self._call("task_status", {"session": self.id})
            if reply.is_error:
                raise refusal(reply.meta.get("hud-mcp/error"), reply.text)
            if reply.structured.get("receipt"):
                self._end(reply.structured["receipt"])
                return
            if reply.structured.get("state") != "grading":
                return
            yield Pause(_GRADING_S)
        raise ConnectionFailed("The server is still grading. Resume the session later.")

    def work_reset(self) -> Work[tuple[Observation, dict[str, Any]]]:
        """Begin the task again, in another session."""
        if self._asked is None:
            raise SessionEnded(
                "A resumed session cannot be reset: its client has not started it. Start another."
            )
        yield from self.work_close()
        begun, job = yield from begin(self._wire, self._asked)
        self._take(begun, job)
        step = yield from self.work_step(None, None, changes=False)
        text = "\n\n".join(part for part in (self.prompt, step.observation.text) if part)
        seen = step.observation
        return Observation(text or None, seen.image, seen.values), step.info

    def work_screenshot(self, kind: str) -> Work[Screenshot]:
        """Take a picture, which is no step."""
        reply = yield from self._call("screenshot", {"session": self.id, "format": kind})
        if reply.is_error or reply.image is None:
            raise refusal(reply.meta.get("hud-mcp/error") or "ActionFailed", reply.text)
        size = as_row(reply.meta.get("hud-mcp/screenshot"))
        width, height = int(size.get("width", 0)), int(size.get("height", 0))
        scale = float(size.get("scale", 1.0))
        return Screenshot(reply.image, reply.mime_type, width, height, scale)

    def work_tool(self, name: str, arguments: Row) -> Work[ToolReply]:
        """Call an own tool of the environment. A repeated call may act twice."""
        asked = {**arguments, "session": self.id}
        return (yield from self._call(name, asked, repeats=False))

    def work_close(self) -> Work[None]:
        """Give the session up, unless it has ended."""
        if self._closed:
            return
        self._closed = True
        if self.outcome is None:
            reply = yield from self._call("cancel_task", {"session": self.id})
            self.outcome = reply.structured.get("outcome")

    def _call(
        self, name: str, arguments: Row, *, repeats: bool = True, meta: Row | None = None
    ) -> Work[ToolReply]:
        return (yield from _resumed_call(self._wire, name, arguments, repeats=repeats, meta=meta))


def begin(wire: Wire, asked: Row) -> Work[tuple[Row, str | None]]:
    """Start a session. The client chooses its id, so that a lost reply starts no second one.

    Returns:
        The server's reply, and the id of the session's job.

    Raises:
        InvalidTask: There is no such task, or its arguments are wrong.
        CallRefused: The server starts no session; the text says why.
    """
    job = asked.get("job")
    wanted = {name: value for name, value in asked.items() if value is not None and name != "job"}
    wanted.setdefault("session", f"sess-{secrets.token_hex(16)}")
    meta = {} if job is None else {"hud-mcp/job": job}
    reply = yield from _resumed_call(wire, "start_task", wanted, repeats=True, meta=meta)
    if reply.is_error and not reply.structured:
        raise refusal(reply.meta.get("hud-mcp/error"), reply.text)
    begun = as_row(reply.meta.get("hud-mcp/start"))
    of_job = {} if job is None else {"job": begun.get("job")}
    trajectory = {"trajectory": begun["trajectory"]} if "trajectory" in begun else {}
    return {**reply.structured, **trajectory}, of_job.get("job")


def resumed(wire: Wire, session: str) -> Work[Row]:
    """Return the server's description of a started session.

    Raises:
        SessionNotFound: There is no such session, or it is another caller's.
    """
    reply = yield from _resumed_call(wire, "task_status", {"session": session}, repeats=True)
    if reply.is_error:
        raise refusal(reply.meta.get("hud-mcp/error"), reply.text)
    return {**reply.structured, "session": session}


def listed(wire: Wire, like: str | None) -> Work[list[dict[str, Any]]]:
    """Return all listed tasks, or those that match a pattern, page after page."""
    rows: list[dict[str, Any]] = []
    offset = 0
    while True:
        asked: dict[str, Any] = {"offset": offset} | ({} if like is None else {"filter": like})
        reply = yield from wire.call_tool("list_tasks", asked, repeats=True)
        if reply.is_error:
            raise refusal(reply.meta.get("hud-mcp/error"), reply.text)
        rows += reply.structured.get("tasks") or []
        templates: list[Row] = reply.structured.get("templates") or []
        rows += [{"template": row["id"], **row} for row in templates]
        offset = int(reply.structured.get("next_offset") or 0)
        if not offset:
            return rows


def _resumed_call(
    wire: Wire, name: str, arguments: Row, *, repeats: bool, meta: Row | None = None
) -> Work[ToolReply]:
    """Call a tool, and call it again while a server resumes its session."""
    for _ in range(_MOST_PAUSES):
        reply = yield from wire.call_tool(name, arguments, repeats=repeats, meta=meta)
        problem = refusal(reply.meta.get("hud-mcp/error"), reply.text)
        if not (reply.is_error and isinstance(problem, SessionResuming)):
            return reply
        yield Pause(_RESUMING_S)
    raise ConnectionFailed("The server is still bringing the session back. Resume it later.")


def _rows(actions: Any) -> tuple[list[Row], str | None]:
    """Return actions as rows, and the answer that ends them, if there is one.

    Raises:
        InvalidAction: An action is not an object, or follows an answer.
    """
    if actions is None:
        return [], None
    is_one = isinstance(actions, Mapping) or _is_model(actions)
    several: Sequence[Any] = [actions] if is_one else cast("Sequence[Any]", actions)
    rows: list[Row] = []
    for place, each in enumerate(several):
        row: Any = each.model_dump(mode="json", exclude_none=True) if _is_model(each) else each
        if not as_row(row):
            raise InvalidAction(
                f"actions.{place}: {each!r} is not an action. Give an object with a `type`, "
                f'such as {{"type": "wait", "time": 100}}.'
            )
        if row.get("type") == "response":
            if place < len(several) - 1:
                raise InvalidAction(f"actions.{place}: nothing can follow a response.")
            return rows, str(row.get("text", ""))
        rows.append(row)
    return rows, None


def _is_model(value: Any) -> bool:
    return hasattr(value, "model_dump")
