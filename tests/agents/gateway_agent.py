"""An agent that asks a model in one of four wire forms, and works through its session's server.

    python gateway_agent.py messages|chat|responses|gemini [MODEL]

The first tool call of a reply is made, and its result is told, until the task has its answer. What
it finds of keys goes to the file that AGENT_FINDS names.
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

FORM, MODEL = sys.argv[1], (*sys.argv[2:], "some-model")[0]
REPORT = json.loads(os.environ.get("AGENT_REPORTS", "{}"))
STREAMS = os.environ.get("AGENT_STREAMS") == "1"


def post(base: str, path: str, key: dict[str, str], body: dict[str, Any]) -> bytes:
    """Send a request to the model; an error ends the agent, and it prints the text."""
    data, headers = json.dumps(body).encode(), {"content-type": "application/json", **key}
    request = urllib.request.Request(f"{base}{path}", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read()
    except urllib.error.HTTPError as exc:
        sys.exit(f"{exc.code} {exc.read().decode()}")


def events(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream, or the one reply without a stream."""
    if not STREAMS:
        return [json.loads(raw)]
    lines = [line[5:].strip() for line in raw.decode().splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def ask_messages(said: list[str], tools: list[Any]) -> tuple[str, dict[str, Any], str] | None:
    """Ask in Anthropic's form."""
    body = {
        "model": MODEL, "max_tokens": 500, "stream": STREAMS,
        "messages": [{"role": "user", "content": text} for text in said],
        "tools": [{"name": t.name, "input_schema": t.input_schema} for t in tools],
    }  # fmt: skip
    key = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    found = events(post(os.environ["ANTHROPIC_BASE_URL"], "/v1/messages", key, body))
    if not STREAMS:
        calls = [each for each in found[0]["content"] if each["type"] == "tool_use"]
        return (calls[0]["name"], calls[0]["input"], calls[0]["id"]) if calls else None
    begun = [e["content_block"] for e in found if e["type"] == "content_block_start"]
    (call,) = [each for each in begun if each["type"] == "tool_use"][:1]
    parts = [
        e["delta"].get("partial_json", "") for e in found if e["type"] == "content_block_delta"
    ]
    return call["name"], json.loads("".join(parts)), call["id"]


def ask_chat(said: list[str], tools: list[Any]) -> tuple[str, dict[str, Any], str] | None:
    """Ask in the form of Chat Completions."""
    functions = [{"name": t.name, "parameters": t.input_schema} for t in tools]
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": text} for text in said],
        "tools": [{"type": "function", "function": each} for each in functions],
    }
    key = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = json.loads(post(os.environ["OPENAI_BASE_URL"], "/chat/completions", key, body))
    for call in reply["choices"][0]["message"].get("tool_calls") or []:
        return call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"]
    return None


def ask_responses(said: list[str], tools: list[Any]) -> tuple[str, dict[str, Any], str] | None:
    """Ask in the form of OpenAI's Responses."""
    body = {
        "model": MODEL,
        "input": [{"role": "user", "content": text} for text in said],
        "tools": [
            {"type": "function", "name": t.name, "parameters": t.input_schema} for t in tools
        ],
    }
    key = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = json.loads(post(os.environ["OPENAI_BASE_URL"], "/responses", key, body))
    for item in reply["output"]:
        if item["type"] == "function_call":
            return item["name"], json.loads(item["arguments"]), item["call_id"]
    return None


def ask_gemini(said: list[str], tools: list[Any]) -> tuple[str, dict[str, Any], str] | None:
    """Ask in Gemini's form."""
    declared = [{"name": t.name, "parametersJsonSchema": t.input_schema} for t in tools]
    body = {
        "contents": [{"role": "user", "parts": [{"text": text}]} for text in said],
        "tools": [{"functionDeclarations": declared}],
    }
    key = {"x-goog-api-key": os.environ["GEMINI_API_KEY"]}
    path = f"/v1beta/models/{MODEL}:generateContent"
    reply = json.loads(post(os.environ["GOOGLE_GEMINI_BASE_URL"], path, key, body))
    for part in reply["candidates"][0]["content"]["parts"]:
        if call := part.get("functionCall"):
            return call["name"], call["args"], call.get("id", "")
    return None


ASK = {
    "messages": ask_messages,
    "chat": ask_chat,
    "responses": ask_responses,
    "gemini": ask_gemini,
}


def look_for_keys() -> None:
    """Write down what this process sees: its variables, its home, and those of other processes."""
    seen: dict[str, Any] = {"variables": dict(os.environ), "home": [], "processes": []}
    seen |= {"user": os.getuid(), "entered": [], "read": []}
    seen["home"] = sorted(str(p.name) for p in Path.home().iterdir())
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            seen["processes"].append(place.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    for place in ("/proc/1/root", *map(str, Path("/tmp").glob("hud-mcp-*"))):
        if os.access(place, os.R_OK):
            seen["entered"].append(place)
    for place in map(Path, filter(None, os.environ.get("AGENT_LOOKS", "").split(":"))):
        for each in (place, *place.rglob("*")):
            if each.is_file() and os.access(each, os.R_OK):
                seen["read"].append(each.read_text(errors="replace"))
    Path(os.environ["AGENT_FINDS"]).write_text(json.dumps(seen))


async def work() -> None:
    """Ask the model for calls, and make them, until there is none."""
    if "AGENT_FINDS" in os.environ:
        look_for_keys()
    headers = {"Authorization": f"Bearer {os.environ['HUD_MCP_TOKEN']}"}
    said = [os.environ["HUD_MCP_PROMPT"]]
    async with (
        httpx2.AsyncClient(headers=headers) as web,
        Client(streamable_http_client(os.environ["HUD_MCP_URL"], http_client=web)) as client,
    ):
        tools = (await client.list_tools()).tools
        while call := await asyncio.to_thread(ASK[FORM], said, tools):
            name, arguments, of = call
            meta: Any = dict(REPORT)
            if of:
                meta["hud-mcp/tool-call"] = of
            arguments = {**arguments, "session": os.environ["HUD_MCP_SESSION"]}
            result = await client.call_tool(name, arguments, meta=meta)
            if name == "response" and not result.is_error:
                return
            said.append("\n".join(getattr(each, "text", "") for each in result.content))


asyncio.run(work())
