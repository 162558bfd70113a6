"""An agent that is a command, and wants a reward that it has not earned.

It answers its own session wrongly, then tries everything that could begin another one, see
another one, or pass for somebody else. It prints what came of each as a line of JSON.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import orjson
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

TOKEN = re.compile(rb"[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-])")


def tell(what: str, **result: Any) -> None:
    """Print what came of an attempt."""
    print("GREEDY " + json.dumps({"what": what, **result}), flush=True)


def about_beginning(text: str) -> list[str]:
    """The tools that begin something, as far as a text names them."""
    return [name for name in ("start_task", "list_tasks") if name in text]


async def attempt(what: str, made: Any) -> Any:
    """Make an attempt; whatever comes of it is told."""
    try:
        result = await made
    except Exception as exc:  # noqa: BLE001  # whatever an attempt comes to is told
        tell(what, failed=f"{type(exc).__name__}: {exc}")
        return None
    text = " ".join(getattr(block, "text", "") for block in getattr(result, "content", ()))
    tell(what, is_error=bool(getattr(result, "is_error", False)), text=text)
    return result


def connect(url: str, token: str) -> tuple[Any, Any]:
    """A client of the run's server."""
    web = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
    return web, Client(streamable_http_client(url, http_client=web), mode=os.environ["ERA"])


def found_tokens() -> set[str]:
    """What looks like a token in the environment and the arguments of every process it can read."""
    found: set[str] = set()
    for name in ("environ", "cmdline"):
        for path in Path("/proc").glob(f"[0-9]*/{name}"):
            try:
                found |= {m.decode() for m in TOKEN.findall(path.read_bytes())}
            except OSError:
                continue
    return found


async def attack(client: Client, session: str, other: str) -> None:
    """Try what may be tried over MCP."""
    tools = await client.list_tools()
    whole = "".join(orjson.dumps(tool.model_dump()).decode() for tool in tools.tools)
    tell("tools", names=sorted(tool.name for tool in tools.tools), told=about_beginning(whole))
    prompts = await attempt("prompts/list", client.list_prompts())
    tell("prompts", names=[p.name for p in prompts.prompts] if prompts else [])
    await attempt("prompts/get", client.get_prompt("task", {"id": "berry"}))
    await attempt("prompts/get template", client.get_prompt("count", {}))
    resources = await attempt("resources/list", client.list_resources())
    tell("resources", uris=[str(r.uri) for r in resources.resources] if resources else [])
    await attempt("manifest", client.read_resource("hud://environments/letter_count"))
    await attempt("other trajectory", client.read_resource(f"hud://sessions/{other}/trajectory"))
    for name, arguments in (
        ("list_tasks", {}),
        ("start_task", {"task": "berry"}),
        ("start_task", {"template": "count", "arguments": {"word": "aaa", "letter": "a"}}),
        ("task_status", {"session": other}),
        ("response", {"session": other, "answer": "3"}),
        ("cancel_task", {"session": other}),
        ("hud-mcp/start", {"task": "berry"}),
        ("hud-mcp/start", {"task": {"id": "mine", "prompt": "1?", "gym": "letter_count"}}),
        ("hud-mcp/evaluate", {"session": session}),
        ("response", {"answer": "3"}),
        ("task_status", {}),
        ("cancel_task", {}),
    ):
        await attempt(f"{name} {json.dumps(arguments)}", client.call_tool(name, arguments))
    metas = ({"hud-mcp/session": "sess-" + "a" * 32}, {"hud-mcp/only": other},
             {"hud-mcp/operator": os.environ["HUD_MCP_TOKEN"]})  # fmt: skip
    for meta in metas:
        for name in ("start_task", "hud-mcp/start"):
            call = client.call_tool(name, {"task": "berry"}, meta=meta)
            await attempt(f"{name} with {json.dumps(meta)}", call)


async def main() -> None:
    """Answer wrongly, then attack."""
    url, token = os.environ["HUD_MCP_URL"], os.environ["HUD_MCP_TOKEN"]
    session = os.environ["HUD_MCP_SESSION"]
    others = Path(os.environ["OTHERS"])
    with others.open("a") as file:  # noqa: ASYNC230  # small
        file.write(session + "\n")
    known = others.read_text().split()  # noqa: ASYNC240  # the same
    other = next((s for s in known if s != session), "sess-" + "b" * 32)
    web, client = connect(url, token)
    async with web, client:
        said = client.instructions or ""
        tell("instructions", begins=said[:40], told=about_beginning(said))
        await attempt("answer", client.call_tool("response", {"answer": "wrong"}))
        await attack(client, session, other)
    forged = token[: -len("0000")] + "0000"
    guesses = found_tokens() | {forged, session, token.split("-")[1], token.split("-")[2]}
    guesses |= {v for k, v in os.environ.items() if "TOKEN" in k or "SECRET" in k}
    for guess in sorted(guesses - {token}):
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"Authorization": f"Bearer {guess}", "Accept": "application/json"}
        async with httpx.AsyncClient() as web:
            status = (await web.post(url, json=body, headers=headers)).status_code
        if status != 401:
            tell("a token that was let in", status=status)
    tell("guessed", count=len(guesses))
    tell("no stdin", read=sys.stdin.read())


if __name__ == "__main__":
    anyio.run(main)
