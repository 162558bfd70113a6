"""A peer's declarations as ours: the tasks and rows of a HUD server, and the tools of MCP servers.

A JSON schema describes their arguments, instead of the signature of a function.
"""

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from hud_mcp.base.reading import Fault, place_of, tell
from hud_mcp.base.schema import plain_schema
from hud_mcp.environment import Environment
from hud_mcp.environment.arguments import Arguments, withhold_answers
from hud_mcp.environment.prompt import AnswerType
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import (
    ActionFailed,
    CapabilityNotFound,
    GradingFailed,
    HudMcpError,
    InvalidEnvironment,
    InvalidTask,
    sole_cause,
)
from hud_mcp.plugins.hud.bridge.proxy import ToolServer, list_tools, server_problem
from hud_mcp.plugins.hud.bridge.world import BridgeWorld
from hud_mcp.session.session_end import PARKED, SessionOver
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.capability import Capability
from hud_mcp.values.grade import Grade, SubScore
from hud_mcp.values.observation import Observation

if TYPE_CHECKING:
    import mcp_types as types

logger = logging.getLogger(__name__)

_NAME_CHARS = 40
_SESSION = "session"
_PORTS = {"http": 80, "https": 443}
_SHOWN_ERRORS = 5


class SchemaArguments(Arguments):
    """Arguments with the schema of a peer: they are checked, and passed on unchanged.

    Args:
        schema: The JSON schema of an object.
        noun: The name of the tool or template in errors.
        where: The place of its declaration, for the author's errors.
        worlds: The parameters that receive the session's world.
        renamed: The peer's name of each argument that has another name here.

    A schema that is not that of an object raises InvalidEnvironment.
    """

    def __init__(
        self,
        schema: Any,
        *,
        noun: str,
        where: str,
        worlds: Mapping[str, type],
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.noun = noun
        self.where = where
        self.world_types = dict(worlds)
        self._renamed = dict(renamed or {})
        given = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        try:
            Draft202012Validator.check_schema(given)
            plain = plain_schema({"type": "object", **given})
        except (SchemaError, RecursionError) as exc:
            reason = getattr(exc, "message", None) or "it contains itself"
            raise InvalidEnvironment(f"{where}: {noun} has no usable schema: {reason}") from None
        if plain.get("type", "object") != "object" or not isinstance(plain["properties"], dict):
            raise InvalidEnvironment(f"{where}: the arguments of {noun} are not an object.")
        self.schema = _rename(plain, {old: new for new, old in self._renamed.items()})
        self.schema["type"] = "object"
        withhold_answers(self.schema)
        self.names = tuple(self.schema["properties"])
        # A schema from outside must not have us fetch what it refers to.
        self._check = Draft202012Validator(self.schema, registry=Registry[Any]())

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return checked JSON arguments for the peer.

        InvalidTask names each wrong one and its form.
        """
        plain = dict(given)
        try:
            self._refuse_non_finite(plain)
            found = cast("Iterator[ValidationError]", self._check.iter_errors(plain))  # pyright: ignore[reportUnknownMemberType]
            errors = list(islice(found, _SHOWN_ERRORS))
        except RecursionError:
            raise InvalidTask(f"{self.noun}: its arguments are nested too deeply.") from None
        if errors:
            raise InvalidTask(f"{self.noun}: {tell(map(self._fault, errors))}")
        return {self._renamed.get(name, name): value for name, value in plain.items()}

    def _fault(self, error: ValidationError) -> Fault:
        path = place_of(error.absolute_path)
        instance, wanted = cast("Any", error.instance), cast("Any", error.validator_value)
        if error.validator == "required":
            return Fault.missing(path, next(name for name in wanted if name not in instance))
        if error.validator == "additionalProperties" and not path:
            return Fault.unknown(path, min(set(instance) - set(self.names)), self.names)
        schema = cast("dict[str, Any]", error.schema)
        return Fault.of(path, schema, instance, other=error.message[:200])


def _rename(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if not names:
        return schema
    required = [names.get(name, name) for name in schema.get("required", ())]
    properties = {names.get(name, name): each for name, each in schema["properties"].items()}
    return {**schema, "properties": properties, **({"required": required} if required else {})}


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


def tool_name(server: str, tool: str, taken: Collection[str]) -> str:
    """Return a free name for a tool, with its server's name as a prefix."""
    plain = re.sub(r"[^a-z0-9_]+", "_", f"{server}_{tool}".lower()).strip("_") or "tool"
    name, count = plain[:_NAME_CHARS], 1
    while name in taken:
        count += 1
        name = f"{plain[: _NAME_CHARS - len(str(count)) - 1]}_{count}"
    return name


async def offer_published_tools(environment: Environment) -> None:
    """Offer the tools of every MCP server that an environment publishes now.

    The environment's notes, which agents read too, name the tools that cannot be offered.
    """
    for capability in list(environment.capabilities):
        if capability.protocol.partition("/")[0] != "mcp":
            continue
        problem = await _offer(environment, capability)
        if problem is not None:
            note = f"The tools of {capability.name!r} ({capability.protocol}) are not offered"
            environment.tell_agents(f"{note}: {problem}")
            logger.warning("%s: %s", note, problem)


async def _offer(environment: Environment, capability: Capability) -> str | None:
    """Offer the tools of one server; return the reason if that fails, else None."""
    binding = capability.to_manifest()
    problem = server_problem(binding, carried=False)
    if problem is not None:
        return problem
    try:
        declared = await list_tools(_address_of(capability), binding)
    except Exception as exc:  # noqa: BLE001  # whatever another's server does is named
        cause = sole_cause(exc)
        return f"it does not list its tools: {type(cause).__name__}: {cause}"
    for each in declared:
        name = tool_name(capability.name, each.name, {*environment.tools, *CORE_TOOLS})
        try:
            tool = PublishedTool(each, environment=environment, server=capability.name, name=name)
        except InvalidEnvironment as exc:
            return f"{each.name!r} cannot be offered ({exc})"
        environment.offer(tool)
    return None


class PublishedTool(ServerTool):
    """A tool of an MCP server that an environment of ours publishes; see `ServerTool`."""

    def __init__(self, declared: Any, *, environment: Environment, server: str, name: str) -> None:
        super().__init__(declared, server=server, name=name, world=environment.world.world_type)
        self.where = f"MCP server {server!r} of environment {environment.name!r}"
        self._environment = environment

    async def call_in(
        self,
        args: Mapping[str, Any],
        world: Any,
        services: dict[str, SharedService],
        exchange: Exchange | None = None,  # noqa: ARG002  # nothing goes beside these calls yet
    ) -> Any:
        """Call it over the session's own connection, and connect first if needed.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; it did not run.
            ActionFailed: The tool reports an error, or the server does not answer.
        """
        del world  # it works on what the author's server holds
        given = self.arguments.parse(args)
        key = f"mcp:{self._server}"
        try:
            found = services.get(key)
            if not isinstance(found, ToolServer) or not found.is_open:
                found = await self._connect()
                services[key] = found
            return await found.call(self._tool, given)
        except HudMcpError:
            raise
        except (Exception, asyncio.CancelledError) as exc:
            if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
                raise
            cause = sole_cause(exc)
            reason = f"{cause}".partition("\n")[0][:200].rstrip(". ") or type(cause).__name__
            logger.info("%s: %s: %s", self.where, type(cause).__name__, cause)
            raise ActionFailed(
                f"{self._server!r}, which has this tool, does not answer: {reason}. Try again."
            ) from exc

    async def _connect(self) -> ToolServer:
        try:
            capability = self._environment.capability(self._server)
        except CapabilityNotFound as exc:
            raise ActionFailed(f"{exc} Its tools are gone.") from exc
        return await ToolServer.open(_address_of(capability), capability.to_manifest())


def _address_of(capability: Capability) -> tuple[str, int]:
    parts = urlsplit(capability.url)
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)


def _is_cancelled() -> bool:
    """Whether this task is cancelled, and not only the call that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
