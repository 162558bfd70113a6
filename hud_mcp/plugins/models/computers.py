"""Providers' own computer tools, for models in a job: on the wire, and as actions.

To the models' library such a tool is a function, whose description is the provider's entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from hud_mcp.plugins.models.computer_use import (
    ANTHROPIC_BETAS,
    AnthropicComputer,
    Frame,
    Wanted,
    anthropic_computer_tool,
    gemini_computer_tool,
    gemini_frame,
    openai_computer_tool,
    read_anthropic_computer,
    read_gemini_computer,
    read_openai_computer,
)
from hud_mcp.plugins.models.computer_use.anthropic import ANTHROPIC_ACTIONS
from hud_mcp.plugins.models.computer_use.gemini import GEMINI_ACTIONS
from hud_mcp.plugins.models.options import ComputerVersion
from hud_mcp.plugins.models.replies import objects_in

__all__ = ["STAND_IN", "Computer", "find_computer"]

Json = dict[str, Any]

STAND_IN = "computer"
"""The function that stands for the tool."""

_MOST_PX = 1568
"""Anthropic makes pictures smaller whose longer side has more, and points would be off."""


@dataclass(frozen=True)
class Computer:
    """The computer tool of one provider, by the functions that a model calls.

    `send` and `receive` rewrite bodies on the wire. `resizes` gives pictures the size that points
    are in. `failures` is the content of a refused call's reply.
    """

    names: frozenset[str]
    frame: Callable[[int, int], Frame]
    tool: Callable[[Frame], Json]
    read: Callable[[str, Mapping[str, Any], Frame], Wanted]
    send: Callable[[Json], Json]
    receive: Callable[[Json], Json] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    resizes: bool = True
    failures: Literal["text", "picture"] = "picture"


def find_computer(provider: str, version: ComputerVersion) -> Computer:
    """Return a provider's computer tool; `computer` is its only one, or Anthropic's best known."""
    if provider == "openai":
        return _OPENAI
    if provider == "google":
        return _GEMINI
    return _anthropic("computer_20251124" if version == "computer" else version)


def _anthropic(version: AnthropicComputer) -> Computer:
    is_set = version == "computer_toolset_20260801"

    def send(body: Json) -> Json:
        _put_tool(body)
        for message in body.get("messages", ()):
            for block in objects_in(message["content"]):
                if (
                    is_set
                    and block.get("type") == "tool_use"
                    and block["name"] in ANTHROPIC_ACTIONS
                ):
                    block["toolset_name"] = STAND_IN
        return body

    beta = ANTHROPIC_BETAS[version]
    return Computer(
        names=ANTHROPIC_ACTIONS if is_set else frozenset({STAND_IN}),
        frame=_smaller,
        tool=lambda frame: anthropic_computer_tool(version, frame),
        read=lambda name, given, frame: read_anthropic_computer(
            {"name": name, "input": given}, frame
        ),
        send=send,
        headers={} if beta is None else {"anthropic-beta": beta},
        failures="text",
    )


def _smaller(width_px: int, height_px: int) -> Frame:
    part = min(1.0, _MOST_PX / max(width_px, height_px))
    return Frame((round(width_px * part), round(height_px * part)), (width_px, height_px))


def _put_tool(body: Json) -> None:
    body["tools"] = [
        orjson.loads(tool["description"]) if tool.get("name") == STAND_IN else tool
        for tool in body.get("tools", ())
    ]


def _send_openai(body: Json) -> Json:
    _put_tool(body)
    items: list[Json] = []
    calls: set[str] = set()
    for item in objects_in(body["input"]):
        if item.get("type") == "function_call" and item["name"] == STAND_IN:
            calls.add(item["call_id"])
            items.append(orjson.loads(item["arguments"]))
        elif item.get("type") == "function_call_output" and item["call_id"] in calls:
            items += _openai_output(item)
        else:
            items.append(item)
    return {**body, "input": items} if calls else body


def _openai_output(item: Json) -> list[Json]:
    given = item["output"]
    parts = objects_in(given) or [{"type": "input_text", "text": str(given)}]
    shots = [part for part in parts if part["type"] == "input_image"]
    texts = [part for part in parts if part["type"] == "input_text"]
    shown = {"type": "computer_screenshot", "image_url": shots[0]["image_url"] if shots else _BLANK}
    output = {"type": "computer_call_output", "call_id": item["call_id"], "output": shown}
    said: list[Json] = [{"role": "user", "content": texts}] if texts else []
    return [output, *said]


_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""The picture in the place of an omitted picture, if the provider accepts nothing else."""


def _receive_openai(reply: Json) -> Json:
    reply["output"] = [
        {
            "type": "function_call",
            "id": item.get("id"),
            "call_id": item["call_id"],
            "name": STAND_IN,
            "arguments": orjson.dumps(item).decode(),
            "status": "completed",
        }
        if item.get("type") == "computer_call"
        else item
        for item in reply["output"]
    ]
    return reply


def _send_gemini(body: Json) -> Json:
    tools: list[Json] = []
    for tool in body.get("tools", ()):
        declared = objects_in(tool.get("functionDeclarations"))
        others = [each for each in declared if each["name"] != STAND_IN]
        tools += [{**tool, "functionDeclarations": others}] if others or not declared else []
        tools += [orjson.loads(each["description"]) for each in declared if each not in others]
    waiting: list[Json] = []
    moved = [
        {**content, "parts": _gemini_parts(content.get("parts", ()), waiting)}
        for content in body.get("contents", ())
    ]
    return {**body, "tools": tools, "contents": [content for content in moved if content["parts"]]}


def _gemini_parts(parts: Any, waiting: list[Json]) -> list[Json]:
    """Move pictures to the waiting results that they follow, and return all other parts."""
    kept: list[Json] = []
    for part in parts:
        result, text = part.get("functionResponse"), str(part.get("text", ""))
        if result is not None and result["name"] in GEMINI_ACTIONS:
            said = orjson.dumps(result["response"]).decode()
            waiting += [result] * said.count("See file ")
            error = result["response"].get("error")
            result["response"] = {"url": "", **({} if error is None else {"error": error})}
        elif "inlineData" in part and waiting:  # the library puts it after its result
            waiting.pop(0).setdefault("parts", []).append({"inlineData": part["inlineData"]})
            continue
        elif text.startswith(_TAGS):
            continue
        kept.append(part)
    return kept


_TAGS = ("<pyai:tool_result ", "</pyai:tool_result")
"""Around pictures that are no part of their result."""

_OPENAI = Computer(
    names=frozenset({STAND_IN}),
    frame=Frame.same,
    tool=lambda _frame: openai_computer_tool(),
    read=lambda _name, given, frame: read_openai_computer(given, frame),
    send=_send_openai,
    receive=_receive_openai,
)

_GEMINI = Computer(
    names=GEMINI_ACTIONS,
    frame=gemini_frame,
    tool=lambda _frame: gemini_computer_tool(),
    read=lambda name, given, frame: read_gemini_computer({"name": name, "args": given}, frame),
    send=_send_gemini,
    resizes=False,
)
