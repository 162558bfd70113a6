"""How four providers' requests are read, and their replies written, as their references have them.

Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini's generateContent. Only
what a client of tools uses is here.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

__all__ = ["FORMATS", "Call", "Format", "Heard", "Says"]

_ids = count(1)


@dataclass(frozen=True)
class Call:
    """A tool call that a model makes; arguments that are no mapping are sent as they are."""

    name: str
    arguments: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Says:
    """A model's reply.

    Attributes:
        text: What it says.
        calls: The tools that it calls.
        reasoning: What it thought, where the format has a place for that.
        tokens: Of the input and of the output; None where the provider does not say.
        cached: Of the input, how many came from a cache.
        stop: The provider's word; None for the usual one.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    tokens: tuple[int, int] | None = (100, 10)
    cached: int = 0
    stop: str | None = None


@dataclass
class Heard:
    """What a request has, whichever the format.

    Attributes:
        system: The system prompt.
        prompt: The first text of the user.
        results: What tools gave back, in words, in order.
        pictures: How many pictures it has.
        tools: The schema of each tool's arguments, by name.
        turns: How many replies of the model it repeats.
    """

    system: str = ""
    prompt: str = ""
    results: list[str] = field(default_factory=list)
    pictures: int = 0
    tools: dict[str, Any] = field(default_factory=dict)
    turns: int = 0

    def user(self, text: str) -> None:
        """Note a text of the user."""
        self.prompt = self.prompt or text


@dataclass(frozen=True)
class Format:
    """One provider's.

    Attributes:
        provider: What a reply is called by.
        hear: Reads a request.
        write: Writes a reply, for the model that was asked.
        refuse: Writes an error, of a status and a message.
        overflow: What it says where the context is full.
        stream: Writes a reply as server-sent events: each with its name, or None, and its data.
    """

    provider: str
    hear: Callable[[Mapping[str, Any]], Heard]
    write: Callable[[str, Says], dict[str, Any]]
    refuse: Callable[[int, str], dict[str, Any]]
    overflow: str
    stream: Callable[[dict[str, Any]], Iterator[tuple[str | None, dict[str, Any]]]] | None = None


def _texts(content: Any, heard: Heard) -> str:
    """The text of a content, whose pictures are counted."""
    if isinstance(content, str):
        return content
    found: list[str] = []
    for block in content or []:
        kind = block.get("type", "")
        if kind in ("image", "image_url", "input_image"):
            heard.pictures += 1
        elif "text" in block:
            found.append(block["text"])
    return "\n".join(found)


def _anthropic_heard(body: Mapping[str, Any]) -> Heard:
    heard = Heard()
    heard.system = _texts(body.get("system", ""), heard)
    named = [tool for tool in body.get("tools", []) if "name" in tool]
    heard.tools = {tool["name"]: tool.get("input_schema") for tool in named}
    for message in body["messages"]:
        if message["role"] == "assistant":
            heard.turns += 1
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result":
                heard.results.append(_texts(block.get("content", ""), heard))
            elif block["type"] == "image":
                heard.pictures += 1
            else:
                heard.user(block.get("text", ""))
    return heard


def _anthropic_reply(model: str, says: Says) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if says.reasoning:
        content.append({"type": "thinking", "thinking": says.reasoning, "signature": "c2lnbmVk"})
    if says.text:
        content.append({"type": "text", "text": says.text})
    for call in says.calls:
        block = {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": call.name}
        given = call.arguments
        if isinstance(given, dict) and "toolset_name" in given:  # it stands beside the input
            block["toolset_name"] = given["toolset_name"]
            given = {k: v for k, v in given.items() if k != "toolset_name"}
        content.append({**block, "input": given})
    tokens = says.tokens or (0, 0)
    return {
        "id": f"msg_{next(_ids)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": says.stop or ("tool_use" if says.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens[0] - says.cached,
            "cache_read_input_tokens": says.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": tokens[1],
        },
    }


def _anthropic_events(reply: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    begun = {**reply, "content": [], "stop_reason": None}
    yield "message_start", {"type": "message_start", "message": begun}
    for index, block in enumerate(reply["content"]):
        kind = block["type"]
        empty = {
            "text": {"type": "text", "text": ""},
            "thinking": {"type": "thinking", "thinking": "", "signature": ""},
            "tool_use": {**block, "input": {}},
        }[kind]
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": empty},
        )
        deltas: list[dict[str, Any]] = {
            "text": lambda b: [{"type": "text_delta", "text": b["text"]}],
            "thinking": lambda b: [
                {"type": "thinking_delta", "thinking": b["thinking"]},
                {"type": "signature_delta", "signature": b["signature"]},
            ],
            "tool_use": lambda b: [
                {"type": "input_json_delta", "partial_json": json.dumps(b["input"])}
            ],
        }[kind](block)
        for delta in deltas:
            yield (
                "content_block_delta",
                {"type": "content_block_delta", "index": index, "delta": delta},
            )
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield (
        "message_delta",
        {"type": "message_delta", "delta": ended, "usage": reply["usage"]},
    )
    yield "message_stop", {"type": "message_stop"}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _anthropic_error(status: int, message: str) -> dict[str, Any]:
    kind = _ANTHROPIC_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _chat_heard(body: Mapping[str, Any]) -> Heard:
    heard = Heard()
    tools = [tool["function"] for tool in body.get("tools", [])]
    heard.tools = {tool["name"]: tool.get("parameters") for tool in tools}
    for message in body["messages"]:
        text = _texts(message.get("content"), heard)
        match message["role"]:
            case "system" | "developer":
                heard.system += text
            case "assistant":
                heard.turns += 1
            case "tool":
                # Its text is JSON where a picture belongs to it, which another message has.
                listed = json.loads(text) if text.startswith('["') else text
                heard.results.append("\n".join(_strings(listed)))
            case _:
                heard.user(text)
    return heard


def _chat_reply(model: str, says: Says) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{next(_ids)}",
            "type": "function",
            "function": {"name": call.name, "arguments": _json(call.arguments)},
        }
        for call in says.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": says.text or None}
    if calls:
        message["tool_calls"] = calls
    if says.reasoning:
        message["reasoning_content"] = says.reasoning
    stop = says.stop or ("tool_calls" if calls else "stop")
    reply: dict[str, Any] = {
        "id": f"chatcmpl-{next(_ids)}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
    }
    if says.tokens is not None:
        given, made = says.tokens
        reply["usage"] = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": says.cached},
        }
    return reply


def _chat_events(reply: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    head = {key: reply[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    (choice,) = reply["choices"]
    message = choice["message"]
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls", []))]
    delta = {"role": "assistant", "content": message["content"] or ""}
    if calls:
        delta["tool_calls"] = calls
    if "reasoning_content" in message:
        thought = {"reasoning_content": message["reasoning_content"]}
        yield None, {**head, "choices": [{"index": 0, "delta": thought, "finish_reason": None}]}
    yield None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield None, {**head, "choices": [last]}
    if "usage" in reply:
        yield None, {**head, "choices": [], "usage": reply["usage"]}


def _openai_error(status: int, message: str) -> dict[str, Any]:
    kinds = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    code = kinds.get(status)
    if "maximum context length" in message or "context window" in message:
        code = "context_length_exceeded"
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    }


def _responses_heard(body: Mapping[str, Any]) -> Heard:
    heard = Heard(system=body.get("instructions") or "")
    tools = [tool for tool in body.get("tools", []) if tool["type"] == "function"]
    heard.tools = {tool["name"]: tool.get("parameters") for tool in tools}
    for space in (tool for tool in body.get("tools", []) if tool["type"] == "namespace"):
        named = {
            f"{space['name']}/{each['name']}": each.get("parameters") for each in space["tools"]
        }
        heard.tools |= named
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    replied = False
    for item in items:
        kind = item.get("type", "message")
        is_reply = (
            kind in ("function_call", "computer_call", "reasoning")
            or item.get("role") == "assistant"
        )
        heard.turns += is_reply and not replied
        replied = is_reply
        if kind == "computer_call_output":
            heard.pictures += item["output"]["type"] == "computer_screenshot"
        elif kind == "function_call_output":
            heard.results.append(_texts(item["output"], heard))
        elif kind == "message" and not is_reply:
            text = _texts(item["content"], heard)
            if item["role"] in ("system", "developer"):
                heard.system += text
            else:
                heard.user(text)
    return heard


def _responses_reply(model: str, says: Says) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if says.reasoning:
        summary = [{"type": "summary_text", "text": says.reasoning}]
        output.append({"id": f"rs_{next(_ids)}", "type": "reasoning", "summary": summary})
    if says.text:
        part = {"type": "output_text", "text": says.text, "annotations": [], "logprobs": []}
        output.append(
            {
                "id": f"msg_{next(_ids)}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "id": f"cu_{next(_ids)}",
            "type": "computer_call",
            "call_id": f"call_{next(_ids)}",
            "pending_safety_checks": [],
            "status": "completed",
            **call.arguments,
        }
        if call.name == "computer_call"
        else {
            "id": f"fc_{next(_ids)}",
            "type": "function_call",
            "call_id": f"call_{next(_ids)}",
            "name": call.name.rpartition("/")[2],
            **({"namespace": call.name.rpartition("/")[0]} if "/" in call.name else {}),
            "arguments": _json(call.arguments),
            "status": "completed",
        }
        for call in says.calls
    ]
    given, made = says.tokens or (0, 0)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": says.cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }
    return {
        "id": f"resp_{next(_ids)}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "incomplete" if says.stop else "completed",
        "incomplete_details": {"reason": says.stop} if says.stop else None,
        "error": None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "instructions": None,
        "usage": usage if says.tokens is not None else None,
    }


def _responses_events(reply: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    number = count()

    def event(kind: str, **more: Any) -> tuple[str | None, dict[str, Any]]:
        return kind, {"type": kind, "sequence_number": next(number), **more}

    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    for index, item in enumerate(reply["output"]):
        yield event("response.output_item.added", output_index=index, item=item)
        at = {"output_index": index, "item_id": item["id"]}
        for place, part in enumerate(item.get("content", ())):
            at |= {"content_index": place}
            yield event("response.output_text.delta", **at, delta=part["text"], logprobs=[])
        for place, part in enumerate(item.get("summary", ())):
            at |= {"summary_index": place}
            yield event("response.reasoning_summary_text.delta", **at, delta=part["text"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=reply)


def _google_heard(body: Mapping[str, Any]) -> Heard:
    heard = Heard()
    for part in body.get("systemInstruction", {}).get("parts", []):
        heard.system += part.get("text", "")
    for tool in body.get("tools", []):
        for declared in tool.get("functionDeclarations", []):
            schema = declared.get("parameters_json_schema", declared.get("parametersJsonSchema"))
            heard.tools[declared["name"]] = schema or declared.get("parameters")
    for content in body["contents"]:
        if content.get("role") == "model":
            heard.turns += 1
            continue
        for part in content["parts"]:
            result = part.get("functionResponse")
            if result is not None:
                heard.results.append(_google_result(result))
                heard.pictures += sum("inlineData" in each for each in result.get("parts", []))
            elif "inlineData" in part:
                heard.pictures += 1
            elif "text" in part:
                heard.user(part["text"])
    return heard


def _google_result(result: Mapping[str, Any]) -> str:
    return "\n".join(_strings(result["response"]))


def _strings(value: Any) -> list[str]:
    """Every text in a value, in order; texts of pictures' places are left out."""
    if isinstance(value, str):
        return [] if value.startswith("See file ") else [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _strings(each)]


def _google_reply(model: str, says: Says) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if says.reasoning:
        parts.append({"text": says.reasoning, "thought": True})
    if says.text:
        parts.append({"text": says.text})
    parts += [{"functionCall": {"name": c.name, "args": c.arguments}} for c in says.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": says.stop or "STOP"}
    reply: dict[str, Any] = {
        "candidates": [{**candidate, "index": 0}],
        "modelVersion": model,
        "responseId": f"resp{next(_ids)}",
    }
    if says.tokens is not None:
        given, made = says.tokens
        reply["usageMetadata"] = {
            "promptTokenCount": given,
            "cachedContentTokenCount": says.cached,
            "candidatesTokenCount": made,
            "totalTokenCount": given + made,
        }
    return reply


def _google_events(reply: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    yield None, reply


_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def _google_error(status: int, message: str) -> dict[str, Any]:
    word = _GOOGLE_STATUSES.get(status, "UNKNOWN")
    return {"error": {"code": status, "message": message, "status": word}}


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


FORMATS = {
    "anthropic": Format(
        "anthropic",
        _anthropic_heard,
        _anthropic_reply,
        _anthropic_error,
        "prompt is too long: 212345 tokens > 200000 maximum",
        _anthropic_events,
    ),
    "openai-chat": Format(
        "openai-chat",
        _chat_heard,
        _chat_reply,
        _openai_error,
        "This model's maximum context length is 128000 tokens.",
        _chat_events,
    ),
    "openai": Format(
        "openai",
        _responses_heard,
        _responses_reply,
        _openai_error,
        "Your input exceeds the context window of this model.",
        _responses_events,
    ),
    "google": Format(
        "google",
        _google_heard,
        _google_reply,
        _google_error,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        _google_events,
    ),
}
