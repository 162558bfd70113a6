"""A peer's declarations as ours: the tasks and rows of a HUD server, and its MCP servers' tools."""

import math
from collections.abc import AsyncGenerator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import orjson

from hud_mcp.environment.prompt import AnswerType
from hud_mcp.environment.schema_arguments import SchemaArguments
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import GradingFailed, InvalidTask
from hud_mcp.plugins.hud.bridge.world import BridgeWorld
from hud_mcp.session.session_end import PARKED, SessionOver
from hud_mcp.values.grade import Grade, SubScore
from hud_mcp.values.observation import Observation

if TYPE_CHECKING:
    import mcp_types as types

_SESSION = "session"


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
    except (ValueError, TypeError, AttributeError):
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


def listed_tasks(
    rows: list[dict[str, Any]],
    *,
    hud_name: str,
    env: str,
    templates: Mapping[str, Template],
    notes: list[str],
) -> list[Task]:
    """Return rows as tasks of ours. `notes` gets the reason for each row that cannot be offered.

    Rows of other environments than `hud_name`, its own name for itself, are left out.
    """
    found: list[Task] = []
    for row in rows:
        if row["env"] != hud_name:
            continue
        slug, template = str(row["slug"]), templates.get(str(row["id"]))
        try:
            if template is None:
                raise InvalidTask("its template cannot be bridged")  # noqa: TRY301  # one of several
            if row["verified"]:  # with HUD, the verifier's grade counts
                raise InvalidTask("it is graded by a verifier of HUD's")  # noqa: TRY301  # the same
            template.arguments.parse(row["args"])
            found.append(
                Task(
                    id=slug[:200],
                    env=env,
                    template=template.id,
                    args=row["args"],
                    description=template.description,
                    metadata=row["columns"] or {},
                )
            )
        except (InvalidTask, ValueError) as exc:
            notes.append(f"The row {slug!r:.80} cannot be offered: {exc}")
    return found


class ServerTool(Tool):
    """A tool of an MCP server behind a HUD server. An unusable schema is InvalidEnvironment."""

    def __init__(self, declared: "types.Tool", *, server: str, name: str, world: type[Any]) -> None:
        self._server = server
        self._tool = declared.name
        self.function = self._call
        self.name = name
        self.where = f"MCP server {server!r} of the HUD environment"
        hints = declared.annotations
        self.read_only = bool(hints is not None and hints.read_only_hint)
        self.replayable = False
        self.open_world = None if hints is None else hints.open_world_hint
        self.description = declared.description or declared.title or ""
        # Ours adds an argument of this name, for the session that is meant.
        taken = _SESSION in (declared.input_schema.get("properties") or {})
        self.arguments = SchemaArguments(
            declared.input_schema,
            noun=f"tool {name!r}",
            where=self.where,
            worlds={"world": world},
            renamed={f"{server}_{_SESSION}": _SESSION} if taken else {},
        )

    async def call(self, args: Mapping[str, Any], world: Any) -> Any:
        """Run it.

        A wrong argument is InvalidTask, and nothing ran; else as for the world's `call_tool`.
        """
        return await self._call(world, self.arguments.parse(args))

    async def _call(self, world: Any, args: Mapping[str, Any]) -> Observation:
        return await world.call_tool(self._server, self._tool, args)
