"""A HUD task as a template: it starts there, is answered here, and is graded there."""

import math
from collections.abc import AsyncGenerator, Mapping
from numbers import Real
from typing import Any, cast

import orjson
from pydantic import ValidationError

from hud_mcp.environment.prompt import AnswerType
from hud_mcp.environment.template import Template
from hud_mcp.errors import GradingFailed
from hud_mcp.plugins.hud.bridge.arguments import SchemaArguments
from hud_mcp.plugins.hud.bridge.world import BridgeWorld
from hud_mcp.session.session_end import PARKED, SessionOver
from hud_mcp.values.grade import Grade, SubScore

__all__ = ["BridgedTemplate"]


class BridgedTemplate(Template):
    """One entry of a HUD server's list of tasks. An unusable schema is InvalidEnvironment."""

    def __init__(self, entry: Mapping[str, Any], *, env: str) -> None:
        self.id = str(entry["id"])
        self.env = env
        self.function = _play
        self.where = f"HUD environment {env}"
        self.noun = f"template {self.id!r}"
        self.description = str(entry.get("description") or "").strip().split("\n")[0]
        self.arguments = SchemaArguments(
            entry.get("args"), noun=self.noun, where=self.where, worlds={"world": BridgeWorld}
        )
        self.input_schema = _schema(entry.get("input"))
        self.returns_schema = _schema(entry.get("returns"))
        self.never_waits = self.prompts_at_once = False  # its start is awaited on the other side
        self._answers = AnswerType(None, where=self.where, noun=self.noun)
        self.reward = None
        self.oracle_function = None
        self.__doc__ = self.description
        self.__name__ = self.id

    def run(
        self,
        args: Mapping[str, Any],
        world: Any,
        context: Mapping[str, Any] | None = None,  # noqa: ARG002  # HUD's wire has none
    ) -> AsyncGenerator[Any, Any]:
        """Create the generator; nothing has started. A wrong argument raises InvalidTask."""
        return _play(world, self.id, self.arguments.parse(args))


async def _play(
    world: BridgeWorld, task_id: str, args: Mapping[str, Any]
) -> AsyncGenerator[Any, Any]:
    prompt = await world.begin(task_id, args)
    try:
        answer: str = yield prompt
    except SessionOver as over:
        if over.args == (PARKED,):
            world.keep()
        raise
    yield read_frame(await world.grade(answer))


def read_frame(frame: Mapping[str, Any]) -> Grade:
    """Read a grade as the HUD wire has it. Malformed fields beside the score are kept in `info`.

    GradingFailed says that it has no finite score, or is marked as an error.
    """
    rest = dict(frame)
    score = rest.pop("score", None)
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
        raise GradingFailed(f"The HUD environment returned no finite score: {score!r:.80}.")
    content = rest.pop("content", None)
    if rest.get("isError") is True:
        said = f" It says: {content}" if content else ""
        raise GradingFailed(f"The HUD environment reports that its grading failed.{said}")
    info: Any = rest.pop("info", None)
    kept: dict[str, Any] = {}
    if isinstance(info, dict):
        kept = cast("dict[str, Any]", info)
    elif info is not None:
        rest["info"] = info
    subscores = _subscores(rest)
    if content is not None and not isinstance(content, str):
        content = orjson.dumps(content).decode()
    kept.update(rest)
    return Grade(reward=float(score), subscores=subscores, content=content or None, info=kept)


def _subscores(rest: dict[str, Any]) -> tuple[SubScore, ...]:
    """Remove and return the subscores of a frame; malformed ones stay in it."""
    given = rest.get("subscores")
    if not given:
        rest.pop("subscores", None)
        return ()
    try:
        read = tuple(_subscore(each) for each in given)
    except (ValidationError, TypeError, AttributeError):
        return ()  # and they stay among the rest
    del rest["subscores"]
    return read


def _subscore(given: Mapping[str, Any]) -> SubScore:
    known = {k: v for k, v in given.items() if k in SubScore.model_fields and v is not None}
    info: dict[str, Any] = {**known.get("info", {}), **(given.get("metadata") or {})}
    children = tuple(_subscore(each) for each in known.pop("children", ()))
    return SubScore.model_validate({**known, "info": info, "children": children})


def _schema(given: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", given) if isinstance(given, dict) and given else None
