"""The texts that a client can see of a server and of a session, each with its place.

Each request may be made twice, so a request that is lost with a server goes to the next server.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import orjson

from hud_mcp.agents.agent import Agent, Reply
from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.rollout.link import ConnectionLost, repeat
from hud_mcp.rollout.server import RunServer
from hud_mcp.server.own_tools import safe_names
from hud_mcp.session.caller import CHOSEN_SESSION
from hud_mcp.values.action import Value
from hud_mcp.values.call import ACT, CANCEL_TASK, CORE_TOOLS, LIST_TASKS, START_TASK, TASK_STATUS

if TYPE_CHECKING:
    from mcp.client.client import Client


SeenKind = Literal[
    "default", "schema", "metadata", "error", "prompt", "observation", "graded",
    "file", "outside", "hidden", "open",
]  # fmt: skip
"""The kinds of texts that an agent can see.

A `graded` text comes after the grade. A `file` is in the session's folder, an `outside` text
elsewhere in its sandbox, a `hidden` one in a page where no person sees it. An address of the site
answers an `open` one.
"""

_DATA = frozenset({"const", "default", "enum", "examples"})
_PAGE_S = 3.0
_PAGE_CHARS = 200_000
_TEXT_CHARS = 20_000
_JUNK: Mapping[str, Any] = {
    "string": "zzz-nothing", "integer": -987_001, "number": -987_001.5, "boolean": False,
    "array": [], "object": {},
}  # fmt: skip
_NO_ARGUMENT = "zzz_no_such_argument"


class Seen(Value):
    """A text that an agent can see.

    Short values are searched for in an author's `own` text alone: elsewhere they stand by chance. A
    `shared` text is there for all tasks of an environment, or of one `template`. `named` is its
    author's name for it.
    """

    place: str
    kind: SeenKind
    text: str
    own: bool = False
    shared: bool = False
    template: str | None = None
    named: str = ""


async def look_at_environment(server: RunServer, environment: Environment) -> list[Seen]:
    """Look at all that an environment shows to anybody before a task begins."""
    tools = await _ask(server, lambda client: client.list_tools())
    prompts = await _ask(server, lambda client: client.list_prompts())
    resources = await _ask(server, lambda client: client.list_resources())
    found: list[Seen] = []
    prefix = f"{safe_names([environment.name])[environment.name]}_".lower()
    for tool in tools.tools:
        if tool.name in CORE_TOOLS or tool.name.removeprefix(prefix) in environment.tools:
            where = f"tools/list, tool {tool.name}"
            found += walk_json(where, _dump(tool), "schema", own=tool.name not in CORE_TOOLS)
    for prompt in prompts.prompts:
        template = prompt.name.rpartition(".")[2]
        if template in environment.templates and environment.name in (prompt.description or ""):
            where = f"prompts/list, prompt {prompt.name}"
            found += _of_template(template, walk_json(where, _dump(prompt), "schema", own=True))
            found += _of_template(
                template,
                await _completions(
                    server, prompt.name, environment.templates[template].arguments.names
                ),
            )
    for resource in resources.resources:
        if resource.name == safe_names([environment.name])[environment.name]:
            where = f"resources/list, {resource.uri}"
            found += walk_json(where, _dump(resource), "metadata", own=False)
            found += await _manifest(server, str(resource.uri))
    for template in environment.templates:
        asked = {"environment": environment.name, "template": template}
        listed = await _call(server, LIST_TASKS, asked)
        for row in listed.structured.get("templates", ()):
            where = f"list_tasks, template {template}"
            # The features of a context are the world's, such as a scale of fonts from 1 to 3.
            for key, each in row.items():
                seen = walk_json(where, {key: each}, "schema", own=key != "context")
                found += _of_template(template, seen)
    return [each.model_copy(update={"shared": True}) for each in found]


async def look_at_session(
    server: RunServer, agent: Agent, task: Task, environment: Environment
) -> list[Seen]:
    """Look at all that the agent of a session can see of it before it answers."""
    found: list[Seen] = []
    listed = await _call(server, LIST_TASKS, {"environment": task.env, "filter": task.id})
    for row in listed.structured.get("tasks", ()):
        if row.get("id") == task.id:
            found += walk_json("list_tasks, the task's row", row, "metadata", own=True)
    started = await _call(
        server, START_TASK, {"task": task.id}, {CHOSEN_SESSION: agent.session}
    )  # again, with its id: the same session and the same reply
    found += replies_of(START_TASK, started, "metadata")
    found += replies_of(TASK_STATUS, await agent.ask(TASK_STATUS, {}), "metadata")
    found += await _wrong_calls(server, agent, task, environment)
    found += await _trajectory(server, agent.session)
    found += await repeat(lambda _suspect: _live_page(agent))
    return found


def replies_of(place: str, reply: Any, kind: SeenKind) -> list[Seen]:
    """Return a reply's texts. Those of a refusal are errors."""
    shown: SeenKind = "error" if reply.is_error else kind
    found = [Seen(place=f"{place}, its text", kind=shown, text=reply.text[:_TEXT_CHARS])]
    for name in ("structured", "meta"):
        value: Mapping[str, Any] = getattr(reply, name, None) or {}
        # Anybody may read that.
        kept = {key: each for key, each in value.items() if key != "prompt"}
        found += walk_json(f"{place}, {name}", kept, shown, own=False)
    return found


async def _wrong_calls(
    server: RunServer, agent: Agent, task: Task, environment: Environment
) -> list[Seen]:
    found: list[Seen] = []
    starts: list[dict[str, Any]] = [{"task": f"{task.id} zzz"}]
    if task.prompt is None:
        names = environment.find_template(task.template).arguments.names
        chosen = {"template": task.template, "environment": task.env}
        starts += [
            {**chosen, "arguments": {_NO_ARGUMENT: 1}},
            *({**chosen, "arguments": {name: [{"zzz": None}]}} for name in names),
            {**chosen, "context": {"zzz_no_such_feature": 1}},
        ]
    for arguments in starts:
        reply = await _call(server, START_TASK, arguments)
        if reply.is_error:
            found += replies_of("start_task, a wrong call", reply, "error")
        elif isinstance(session := reply.structured.get("session"), str):
            await _call(server, CANCEL_TASK, {"session": session})  # an argument of any kind
    steps: list[dict[str, Any]] = [
        {"type": "zzz"}, {"type": "custom", "action": "zzz", "args": {}},
        {"type": "click", "selector": "#zzz-nothing"},
        *(
            {"type": "custom", "action": name, "args": _junk(schema)}
            for name, schema in environment.world.custom_actions.items()
        ),
    ]  # fmt: skip
    for action in steps:
        reply = await agent.ask(ACT, action)
        found += _nonsense_reply(f"act {action.get('action') or action['type']}", reply, own=True)
    for name, tool in environment.tools.items():
        schema = tool.arguments.schema
        for arguments in (_junk(schema), {_NO_ARGUMENT: 1}):
            reply = await agent.ask(name, arguments)
            found += _nonsense_reply(f"tool {name}", reply, own=True)
    return found


def _nonsense_reply(place: str, reply: Any, *, own: bool) -> list[Seen]:
    kind: SeenKind = "error" if reply.is_error else "observation"
    where = f"{place}, called with nonsense"
    return [Seen(place=where, kind=kind, text=reply.text[:_TEXT_CHARS], own=own)]


def _junk(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {
        name: (each.get("enum") or [_JUNK.get(str(each.get("type")), "zzz-nothing")])[0]
        for name, each in properties.items()
        if name != "session"  # the handle adds the right one
    }


async def _completions(server: RunServer, prompt: str, names: Sequence[str]) -> list[Seen]:
    found: list[Seen] = []
    for name in names:
        wanted = libraries.mcp_types.PromptReference(name=prompt)
        try:
            done = await _ask(
                server,
                lambda client, name=name, wanted=wanted: client.complete(
                    wanted, {"name": name, "value": ""}
                ),
            )
        except libraries.MCPError as exc:
            found.append(Seen(place=f"completion of {name}", kind="error", text=exc.error.message))
            continue
        found += [
            Seen(
                place=f"completion of {prompt}, argument {name}",
                kind="default",
                text=text,
                own=True,
            )
            for text in done.completion.values
        ]
    return found


async def _manifest(server: RunServer, uri: str) -> list[Seen]:
    """Return the texts of an environment's resource; those of a template stand under its id."""
    place = f"resources/read, {uri}"
    manifest, refused = await _read(server, uri)
    if refused is not None:
        return [Seen(place=place, kind="error", text=refused)]
    # Each is looked at by itself.
    templates: list[dict[str, Any]] = manifest.pop("templates", None) or []
    found = [*walk_json(place, manifest, "schema", own=True)]
    for template in templates:
        where = f"{place}, template {template.get('id')}"
        found += _of_template(template.get("id"), walk_json(where, template, "schema", own=True))
    return found


async def _trajectory(server: RunServer, session: str) -> list[Seen]:
    place = "resources/read, the session's trajectory"
    value, refused = await _read(server, f"hud://sessions/{session}/trajectory")
    if refused is not None:
        return [Seen(place=place, kind="error", text=refused)]
    return [*walk_json(place, value, "metadata", own=False)]


async def _read(server: RunServer, uri: str) -> tuple[dict[str, Any], str | None]:
    try:
        read = await _ask(server, lambda client: client.read_resource(uri))
    except libraries.MCPError as exc:
        return {}, exc.error.message
    return orjson.loads(read.contents[0].text), None


async def _live_page(agent: Agent) -> list[Seen]:
    status: Any = await agent.ask(TASK_STATUS, {})
    address = status.structured.get("live_url")
    if not isinstance(address, str):
        return []
    found: list[Seen] = []
    async with libraries.httpx.AsyncClient(
        timeout=libraries.httpx.Timeout(10), trust_env=False
    ) as web:
        for tail in ("", "/events"):
            text = ""
            try:
                with anyio.move_on_after(_PAGE_S):
                    async with web.stream("GET", address + tail) as answer:
                        async for part in answer.aiter_text():
                            text += part
                            # A stream of events never ends.
                            if len(text) > _PAGE_CHARS or (tail and "\n\n" in text):
                                break
            except libraries.httpx.HTTPError as exc:
                raise ConnectionLost(f"The live page of a session broke: {exc}.") from exc
            found += (
                [
                    Seen(place=f"the live page{tail}", kind="metadata", text=line)
                    for line in text.splitlines()
                    if tail and line.startswith("data:")  # other lines are of the protocol
                ]
                or [Seen(place=f"the live page{tail}", kind="metadata", text=text[:_TEXT_CHARS])]
            )
    return found


async def _call(
    server: RunServer, name: str, arguments: dict[str, Any], meta: Mapping[str, Any] | None = None
) -> Reply:
    return await repeat(lambda suspect: server.call(name, arguments, meta, suspect=suspect))


async def _ask(server: RunServer, request: "Callable[[Client], Any]") -> Any:
    return await repeat(lambda _suspect: server.ask(request))


def _of_template(template: Any, found: Iterable[Seen]) -> list[Seen]:
    return [each.model_copy(update={"template": str(template)}) for each in found]


def _dump(value: Any) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def walk_json(place: str, value: Any, kind: SeenKind, *, own: bool) -> Iterator[Seen]:
    """Yield the leaves of a JSON value with their paths, without prompts and observations."""
    if isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            if key in ("prompt", "observation_text"):
                continue
            inner: SeenKind = "default" if key == "default" else kind  # a default may be the answer
            named = f"{place}: {key}" if not isinstance(each, dict | list) else f"{place}.{key}"
            yield from walk_json(named, each, inner, own=own and key not in ("id", "name"))
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from walk_json(place, each, kind, own=own)
    elif isinstance(value, str) and value:
        yield Seen(place=place, kind=kind, text=value, own=own)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Other numbers of a schema are bounds.
        said = own and place.rpartition(": ")[2].rpartition(".")[2] in _DATA
        yield Seen(place=place, kind=kind, text=orjson.dumps(value).decode(), own=said)
