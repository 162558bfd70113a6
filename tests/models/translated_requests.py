"""One conversation in the words of each dialect: a question, two calls, their results.

first = WAYS["messages"].first(stream=True)
then = WAYS["messages"].second(stream=True, calls=[("call_1", {"a": 1}), …])
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import ReadTurn
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS

__all__ = ["PICTURE", "SCHEMA", "WAYS", "Way", "read_reply"]

Json = dict[str, Any]
Calls = list[tuple[str, Json]]

SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "integer"}}}
PICTURE = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
SYSTEM, ASK, SAID, THOUGHT = "Be brief.", "Add twice.", "I add.", "Two sums."
RESULTS = ("One.", "Two.")


def read_reply(dialect: str, body: Json, path: str, content: bytes, content_type: str) -> ReadTurn:
    """Read a reply with the dialect's own reader."""
    form = DIALECTS[dialect]
    reader = form.reader(form.request(path, json.dumps(body).encode(), {}), 200, content_type)
    for at in range(0, len(content), 7):
        reader.feed(content[at : at + 7])
    reader.end()
    assert reader.is_complete
    return reader.turn()


@dataclass(frozen=True)
class Way:
    """A dialect.

    Attributes:
        start: The body of the first request.
        answer: The messages of a reply of text, reasoning and two calls, and of their results; the
            second result has a picture.
        items: The name of the messages in a body.
    """

    name: str
    start: Json
    answer: Callable[[Calls], list[Json]]
    items: str

    def path(self, *, stream: bool = False) -> str:
        """The path of a request."""
        if self.name != "gemini":
            return {
                "messages": "/v1/messages",
                "chat": "/v1/chat/completions",
                "responses": "/v1/responses",
            }[self.name]
        action = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/gemini-x:{action}"

    def first(self, *, stream: bool = False, **more: Any) -> Json:
        """The first request, with more in its body."""
        streams = {} if self.name == "gemini" else {"stream": stream}
        return {**self.start, **streams, **more}

    def second(self, calls: Calls, *, stream: bool = False, **more: Any) -> Json:
        """The request with the results of two calls."""
        body = self.first(stream=stream, **more)
        return {**body, self.items: [*body[self.items], *self.answer(calls)]}


def _messages(calls: Calls) -> list[Json]:
    picture = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    contents: list[Any] = [
        RESULTS[0],
        [{"type": "text", "text": RESULTS[1]}, {"type": "image", "source": picture}],
    ]
    used = [{"type": "tool_use", "id": i, "name": "add", "input": given} for i, given in calls]
    results = [
        {"type": "tool_result", "tool_use_id": call[0], "content": content}
        for call, content in zip(calls, contents, strict=True)
    ]
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": "eA=="}
    said = {"type": "text", "text": SAID}
    return [
        {"role": "assistant", "content": [thought, said, *used]},
        {"role": "user", "content": results},
    ]


def _chat(calls: Calls) -> list[Json]:
    made = [
        {
            "id": i,
            "type": "function",
            "function": {"name": "add", "arguments": json.dumps(given)},
        }
        for i, given in calls
    ]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    text = {"type": "text", "text": RESULTS[1]}
    return [
        {"role": "assistant", "content": SAID, "tool_calls": made},
        {"role": "tool", "tool_call_id": calls[0][0], "content": RESULTS[0]},
        {"role": "tool", "tool_call_id": calls[1][0], "content": [text, picture]},
    ]


def _responses(calls: Calls) -> list[Json]:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}
    outputs: list[Any] = [RESULTS[0], [{"type": "input_text", "text": RESULTS[1]}, picture]]
    return [
        {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": SAID}],
        },
        *(
            {
                "type": "function_call",
                "call_id": i,
                "namespace": "mcp__hud",
                "name": "add",
                "arguments": json.dumps(given),
            }
            for i, given in calls
        ),
        *(
            {"type": "function_call_output", "call_id": call[0], "output": output}
            for call, output in zip(calls, outputs, strict=True)
        ),
    ]


def _gemini(calls: Calls) -> list[Json]:
    made = [{"functionCall": {"id": i, "name": "add", "args": given}} for i, given in calls]
    results: list[Json] = [
        {"functionResponse": {"id": call[0], "name": "add", "response": {"output": result}}}
        for call, result in zip(calls, RESULTS, strict=True)
    ]
    results[1]["functionResponse"]["parts"] = [
        {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    ]
    return [
        {"role": "model", "parts": [{"text": SAID}, *made]},
        {"role": "user", "parts": results},
    ]


WAYS = {
    "messages": Way(
        "messages",
        {
            "model": "claude-opus-5",
            "max_tokens": 2_000,
            "system": SYSTEM,
            "messages": [{"role": "user", "content": ASK}],
            "tools": [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}],
        },
        _messages,
        "messages",
    ),
    "chat": Way(
        "chat",
        {
            "model": "gpt-5",
            "max_completion_tokens": 2_000,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": ASK},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "add", "description": "Adds.", "parameters": SCHEMA},
                }
            ],
        },
        _chat,
        "messages",
    ),
    "responses": Way(
        "responses",
        {
            "model": "gpt-5-codex",
            "max_output_tokens": 2_000,
            "instructions": SYSTEM,
            "input": [{"type": "message", "role": "user", "content": ASK}],
            "store": False,
            "tools": [
                {
                    "type": "namespace",
                    "name": "mcp__hud",
                    "tools": [
                        {
                            "type": "function",
                            "name": "add",
                            "description": "Adds.",
                            "parameters": SCHEMA,
                        }
                    ],
                }
            ],
        },
        _responses,
        "input",
    ),
    "gemini": Way(
        "gemini",
        {
            "generationConfig": {"maxOutputTokens": 2_000},
            "systemInstruction": {"parts": [{"text": SYSTEM}]},
            "contents": [{"role": "user", "parts": [{"text": ASK}]}],
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "add", "description": "Adds.", "parametersJsonSchema": SCHEMA}
                    ]
                }
            ],
        },
        _gemini,
        "contents",
    ),
}
"""The dialects by name."""
