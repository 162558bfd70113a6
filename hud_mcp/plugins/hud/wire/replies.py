"""What a control connection is asked, and what it answers, as the wire has both."""

from collections.abc import Mapping
from typing import Any, cast

from hud_mcp.environment.template import Prompt
from hud_mcp.plugins.hud.wire.frames import FRAME_BYTES, encode_frame
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Cause, Outcome, cause_of

__all__ = [
    "FAILED",
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "NO_METHOD",
    "UNAUTHORIZED",
    "RpcError",
    "error",
    "fitting",
    "graded",
    "known_of",
    "read_request",
    "started",
]

INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32600, -32601, -32602, -32603
FAILED, UNAUTHORIZED = -32000, -32001


class RpcError(Exception):
    """What a request is answered with in place of a result."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def read_request(frame: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A request's method and parameters.

    Raises:
        RpcError: It has none, or they are of the wrong kind.
    """
    method, params = frame.get("method"), frame.get("params")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "a request has a `method`, a string")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, f"{method}: `params` is an object")
    return method, cast("dict[str, Any]", params or {})


def error(code: int, text: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a request is answered with that failed."""
    said = {"code": code, "message": text or "it failed, and nothing is known of why"}
    return {"error": {**said, "data": data} if data else said}


def fitting(frame: dict[str, Any]) -> bytes:
    """A reply as its line; one that no client could read says so instead."""
    line = encode_frame(frame)
    if len(line) <= FRAME_BYTES:
        return line
    note = f"the reply has {len(line)} bytes, and a frame at most {FRAME_BYTES}"
    result: dict[str, Any] = frame.get("result", {})
    if "score" in result:  # what was graded is told; the record has the rest
        kept = {k: result[k] for k in ("score", "done", "trajectory", "graded_at")}
        return encode_frame({**frame, "result": {**kept, "content": f"{note}; the record has it"}})
    return encode_frame({"jsonrpc": "2.0", "id": frame["id"], **error(FAILED, note)})


def started(session: Session) -> dict[str, Any]:
    """A task that was started, as the wire has it: its prompt is text, or messages."""
    prompt = session.prompt or Prompt(())
    shown: Any = [m.original or {"role": m.role, "content": m.text} for m in prompt.messages]
    if [(m.role, m.original) for m in prompt.messages] == [("user", None)]:
        shown = prompt.messages[0].text
    return {"trajectory": session.trajectory_id, **prompt.extra, "prompt": shown}


def known_of(receipt: Receipt | None) -> dict[str, Any]:
    """What the error about a session that has ended says beside its text: its grade, stored."""
    if receipt is None:
        return {}
    known: dict[str, Any] = {"outcome": receipt.outcome.value}
    if receipt.said_cause:
        known["cause"] = cause_of(receipt.outcome, receipt.cause).value
    if receipt.outcome is Outcome.GRADED and receipt.reward is not None:
        known |= {"grade": graded(receipt), "answer_digest": receipt.answer_digest}
    return known


def graded(receipt: Receipt) -> dict[str, Any]:
    """A receipt as the wire has it: `score` is HUD's word for the reward."""
    if receipt.outcome is not Outcome.GRADED or receipt.reward is None:
        how = " ".join(part for part in (receipt.outcome.value, receipt.said_cause) if part)
        raise RpcError(FAILED, f"the task ended without a grade: {how}")
    frame: dict[str, Any] = {
        "score": float(receipt.reward),
        "done": True,
        "info": receipt.info,
        "trajectory": receipt.trajectory,
        "graded_at": receipt.ended_at.isoformat(),
    }
    if receipt.is_by_agent:
        frame["cause"] = Cause.AGENT.value
    if receipt.content is not None:
        frame["content"] = receipt.content
    if receipt.subscores:
        frame["subscores"] = [s.model_dump(mode="json") for s in receipt.subscores]
    return frame
