"""`hud-mcp lint`: what hosts refuse, cut or pay for in the tools of an MCP server.

The server runs in its sandbox, over a copy of its files. Tools that say they only read, and need no
argument, are called once.
"""

import json
import re
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

import anyio
import click

from hud_mcp.base.text import clip
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import json_option
from hud_mcp.cli.output import cell, make_console
from hud_mcp.environment.environment import Environment
from hud_mcp.environment.spec import Opening
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.listing import Listing, tokens
from hud_mcp.plugins.servers.peer import Json, RemoteError, as_list, as_object
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.world import ToolServerWorld

__all__ = ["Finding", "find_in_list", "find_in_schema"]

Section = Literal["refused", "cut", "costly", "unclear", "protocol"]

_HEADINGS: dict[Section, str] = {
    "refused": "Refused by some hosts",
    "cut": "Cut by some hosts",
    "costly": "Costly",
    "unclear": "Unclear to a model",
    "protocol": "Against the protocol",
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_CHARS, _DESCRIPTION_CHARS, _INSTRUCTIONS_CHARS = 64, 1024, 2048
_TOOL_TOKENS, _LIST_TOKENS, _RESULT_TOKENS = 1000, 10_000, 25_000
_RESULT_BYTES = 1_000_000
"""The largest result that Claude Desktop takes."""
_BOUND = re.compile(
    "_(count|cursor|depth|first|head|last|length|limit|lines|max|maximum|n|number|offset|page|per|"
    "results|since|size|tail|top)_"
)
_LISTING = re.compile("_(all|dump|fetch|find|history|list|log|query|read|search|tree)_")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_ORDERS = re.compile(
    r"ignore (all |any )?(previous|prior|other)|do not (tell|mention|inform)|\bsystem prompt|"
    r"<(important|system|instructions?|secret|admin)\b|before (using|calling) any other",
    re.IGNORECASE,
)
_ROOT_WORDS = ("allOf", "anyOf", "enum", "not", "oneOf")
_CALLS, _CALL_S, _LINT_S = 20, 30.0, 300.0
_SHOWN, _SHOWN_CHARS = 6, 200


@dataclass(frozen=True)
class Finding:
    """A finding on one tool of a server, or on the server; `tool` is "" then."""

    section: Section
    tool: str
    text: str

    @property
    def is_error(self) -> bool:
        """Whether hosts refuse the tool, or fail with the server."""
        return self.section in ("refused", "protocol")


@click.command("lint", Command)
@click.argument("source", metavar="SOURCE")
@json_option
def command(source: str, *, as_json: bool) -> None:
    """Say what hosts refuse, cut or pay for in the tools of an MCP server.

    SOURCE is a command, as in 'mcp:npx -y PACKAGE', or a file with a ToolServer as its world.

    Exit status: 1 for what hosts refuse and for breaches of the protocol, else 0.
    """
    found = [each for each in load_environments([source]) if isinstance(each.world, ToolServer)]
    if not found:
        raise InvalidEnvironment(
            f"{source} has no MCP server. Write mcp:COMMAND, or name a file with a ToolServer."
        )
    named = [(of, spec) for of in found for spec in cast("ToolServer", of.world).members.values()]
    sys.exit(max([anyio.run(_lint, of, spec, as_json) for of, spec in named]))


async def _lint(environment: Environment, spec: ToolServer, as_json: bool) -> int:  # noqa: FBT001  # by position alone
    is_apart = spec.options["isolation"] == "bwrap" and not spec.options.get("url")
    calls = _CALLS if is_apart else 0  # a tool that says it only reads may do anything
    with anyio.fail_after(_LINT_S):
        world = await spec.open(Opening(folder=environment.folder))
        try:
            listing = _as_offered(await world.list(), spec.options)
            found = [*find_in_list(listing, environment.name)]
            found += [each async for each in _find_in_answers(world, listing, calls=calls)]
        finally:
            with anyio.CancelScope(shield=True):
                await world.close()
    if as_json:
        for each in found:
            click.echo(json.dumps({"environment": environment.name, **asdict(each)}))
    else:
        _print(environment.name, listing, found)
    return int(any(each.is_error for each in found))


def _as_offered(listing: Listing, options: Mapping[str, Any]) -> Listing:
    """Return the list with a declaration's descriptions, and without what it leaves out."""
    described = as_object(options["describe"])
    tools = (
        {**each, "description": described.get(str(each.get("name")), each.get("description"))}
        for each in listing.tools
        if str(each.get("name")) not in options["without"]
    )
    return replace(listing, tools=tuple(tools))


def _print(name: str, listing: Listing, found: Sequence[Finding]) -> None:
    console = make_console()
    told = f"{listing.server.get('name', name)} {listing.server.get('version', '')}".strip()
    total = sum(map(tokens, listing.tools))
    text = f"{told}: {len(listing.tools)} tools, about {total:,} tokens, MCP {listing.era}"
    console.print(cell(text, "bold"), soft_wrap=True)
    for section, heading in _HEADINGS.items():
        mine = [each for each in found if each.section == section]
        if mine:
            console.print(f"\n{heading}", style="bold")
        for each in mine:
            text = f"  {f'{each.tool} {each.text}'.strip()}"
            console.print(cell(text, "red" if each.is_error else ""), soft_wrap=True)
    errors = sum(each.is_error for each in found)
    console.print(f"\nErrors: {errors}. Remarks: {len(found) - errors}.")


def find_in_list(listing: Listing, server: str) -> Iterator[Finding]:
    """Find what hosts refuse, cut or pay for in the lists. `server` is its name in a host."""
    if (size := len(listing.instructions)) > _INSTRUCTIONS_CHARS:
        text = f"Its instructions have {size:,} characters; hosts cut at {_INSTRUCTIONS_CHARS:,}."
        yield Finding("cut", "", text)
    costs = {str(each.get("name")): tokens(each) for each in listing.tools}
    if (total := sum(costs.values())) > _LIST_TOKENS:
        most = ", ".join(sorted(costs, key=lambda name: -costs[name])[:_SHOWN])
        text = f"Its list costs about {total:,} tokens in each request; most for {most}."
        yield Finding("costly", "", text)
    seen: set[str] = set()
    for entry in listing.tools:
        name = clip(str(entry.get("name")), 2 * _NAME_CHARS)
        for is_so, section, text in _checks(entry, name, f"mcp__{server}__{name}"):
            if is_so:
                yield Finding(section, name, text)
        for fault in dict.fromkeys(find_in_schema(entry.get("inputSchema"))):
            yield Finding("refused", name, fault)
        if name in seen:
            yield Finding("refused", name, "is listed twice.")
        seen.add(name)


def _checks(entry: Json, name: str, whole: str) -> Iterator[tuple[Any, Section, str]]:
    """Yield each check of a tool: whether it fails, its section, and the end of a sentence."""
    said, cost = str(entry.get("description") or ""), tokens(entry)
    fields = as_object(as_object(entry.get("inputSchema")).get("properties"))
    silent = [each for each, field in fields.items() if not as_object(field).get("description")]
    more = f" and {len(silent) - _SHOWN} more" if len(silent) > _SHOWN else ""
    shown = clip(", ".join(silent[:_SHOWN]), _SHOWN_CHARS) + more
    is_named, order = _NAME.fullmatch(name), _ORDERS.search(said)
    is_bounded = any(_BOUND.search(_words(field)) for field in fields)
    text = f"has a name that is not of letters, digits, _ and -, at most {_NAME_CHARS}."
    yield not is_named, "refused", text
    text = f"is {whole} in some hosts, which has over {_NAME_CHARS} characters."
    yield is_named and len(whole) > _NAME_CHARS, "cut", text
    text = f"has a description of {len(said):,} characters; hosts cut at {_DESCRIPTION_CHARS:,}."
    yield len(said) > _DESCRIPTION_CHARS, "cut", text
    yield cost > _TOOL_TOKENS, "costly", f"costs about {cost:,} tokens in each request."
    is_endless = _LISTING.search(_words(name)) and not is_bounded
    yield is_endless, "costly", "has no argument that bounds its result."
    yield not said.strip(), "unclear", "has no description."
    yield silent, "unclear", f"has arguments without a description: {shown}."
    text = f"has {order and order[0]!r} in its description, which hosts may take for an attack."
    yield order, "unclear", text
    text = "runs as a task of MCP 2025-11-25 alone; hosts leave it out, and sessions too."
    yield _needs_task(entry), "protocol", text


def _words(name: str) -> str:
    """Return a name in snake, kebab or camel case as `_words_of_it_`."""
    return f"_{'_'.join(_WORDS.findall(name)).lower()}_"


def _needs_task(entry: Json) -> bool:
    return as_object(entry.get("execution")).get("taskSupport") == "required"


def find_in_schema(schema: Any) -> Iterator[str]:
    """Find what strict hosts refuse in a schema of arguments; each is the end of a sentence."""
    root = as_object(schema)
    if root.get("type") != "object":
        yield "has a schema that is not that of an object."
        return
    if words := [word for word in _ROOT_WORDS if word in root]:
        yield f"has {', '.join(words)} at the top of its schema."
    try:
        libraries.Draft202012Validator.check_schema(root)
        for node, where in _nodes({**root, "type": None}, ""):
            for fault in _faults(node):
                yield f"has {fault}{f' in {where}' if where else ''}."
    except libraries.SchemaError as exc:
        yield f"has a schema that is none: {clip(exc.message, _SHOWN_CHARS)}."
    except RecursionError:
        yield "has a schema that is too deep."


def _nodes(schema: Any, where: str) -> Iterator[tuple[Any, str]]:
    """Yield a schema and every schema in it, with the path of its argument; data is none."""
    yield schema, where
    for keyword, value in as_object(schema).items():
        if keyword in ("properties", "patternProperties"):
            for name, each in as_object(value).items():
                path = clip(f"{where}.{name}".removeprefix("."), _SHOWN_CHARS)
                yield from _nodes(each, path)
        elif keyword not in ("const", "default", "enum", "examples"):
            inner = cast("list[Any]", value) if isinstance(value, list) else [value]
            for each in inner:
                if isinstance(each, dict):
                    yield from _nodes(each, where)


def _faults(node: Any) -> Iterator[str]:
    found = as_object(node)
    kind = found.get("type")
    yield from (word for word in ("$ref", "$defs") if word in found)
    if isinstance(node, bool):
        yield f"{json.dumps(node)} in place of a schema"
    elif isinstance(kind, list):
        yield "a list of types"
    elif kind == "array" and not isinstance(found.get("items"), dict):
        yield "an array without items"
    elif kind == "object" and "properties" not in found:
        yield "an object without properties"


async def _find_in_answers(
    world: ToolServerWorld, listing: Listing, *, calls: int
) -> AsyncGenerator[Finding]:
    """Find what the running server does against the protocol, and results that cost much."""
    try:
        if listing.era != "2026-07-28":  # which has no ping any more
            await world.request("ping", {}, timeout_s=_CALL_S)
    except (RemoteError, TimeoutError) as exc:
        yield Finding("protocol", "", f"It answers no ping: {exc or 'it is silent'}.")
    try:
        for entry in [each for each in listing.tools if _is_callable(each)][:calls]:
            params: Json = {"name": entry["name"], "arguments": {}}
            try:
                result = await world.request("tools/call", params, timeout_s=_CALL_S)
            except TimeoutError:
                yield Finding("costly", str(entry["name"]), f"did not answer within {_CALL_S:g} s.")
            except RemoteError:
                continue  # it may need what is not here
            else:
                for each in _find_in_result(entry, result):
                    yield each
    except EnvironmentFailed as exc:
        yield Finding("protocol", "", clip(str(exc), _DESCRIPTION_CHARS))
    if banner := world.banner:
        text = f"It writes text to its standard output beside messages: {banner!r}."
        yield Finding("protocol", "", text)


def _is_callable(entry: Json) -> bool:
    hints, schema = as_object(entry.get("annotations")), as_object(entry.get("inputSchema"))
    is_free = hints.get("readOnlyHint") is True and not schema.get("required")
    return is_free and not _needs_task(entry)


def _find_in_result(entry: Json, result: Json) -> Iterator[Finding]:
    name, structured = str(entry["name"]), result.get("structuredContent")
    texts = [str(as_object(each).get("text") or "") for each in as_list(result.get("content"))]
    cost = (sum(map(len, texts)) + len(json.dumps(structured or ""))) // 4
    if (size := len(json.dumps(result))) > _RESULT_BYTES:
        yield Finding("costly", name, f"answers with {size:,} bytes, which some hosts refuse.")
    elif cost > _RESULT_TOKENS:
        yield Finding("costly", name, f"answers with about {cost:,} tokens, which hosts cut.")
    schema = as_object(entry.get("outputSchema"))
    if not schema or result.get("isError") is True:
        return
    if structured is None:
        yield Finding("protocol", name, "has an output schema, and answers without such content.")
        return
    try:
        libraries.Draft202012Validator.check_schema(schema)
        # A registry of its own: a schema must not have this process fetch addresses.
        made: Any = libraries.Draft202012Validator(schema, registry=libraries.Registry())
        why = next((str(error.message) for error in made.iter_errors(structured)), None)
    except (libraries.SchemaError, libraries.Unresolvable, RecursionError) as exc:
        why = f"it is none: {exc}"
    if why is not None:
        yield Finding("protocol", name, f"breaks its output schema: {clip(why, _SHOWN_CHARS)}.")
