"""Replies of models in the forms that servers send them, before a library reads them."""

import re
from collections.abc import Mapping
from typing import Any, cast

import orjson

from hud_mcp.base.text import clip_repr

__all__ = [
    "REDIRECTED",
    "UNREADABLE",
    "NotAReply",
    "mend_surrogates",
    "mend_text",
    "objects_in",
    "read_completion",
    "read_json",
]

Json = dict[str, Any]

REDIRECTED = "redirected"
"""The code of the error that stands for a redirect."""
UNREADABLE = "unreadable_reply"
"""The code of the error for a body that is not a reply."""

_ERRORS = range(400, 600)
_NEEDED = {"id": "", "object": "chat.completion", "created": 0, "model": ""}
_OPENS, _CLOSES = "<think>", "</think>"
_HALVES = re.compile("[\\ud800-\\udfff]")
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, which is a character
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)


class NotAReply(Exception):  # what is in its place may be an error or anything
    """A body of status 200 that is no reply; `status` and `code` are those it should have had."""

    def __init__(self, message: str, *, status: int = 502, code: str = UNREADABLE) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def mend_surrogates(json: str) -> str:
    """Return JSON text with U+FFFD for each escape of half a character."""
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], json)


def mend_text(text: str) -> str:
    """Return a text with U+FFFD for each half of a character, which no JSON can have."""
    return _HALVES.sub("\ufffd", text)


def read_json(body: bytes) -> Json:
    """Return a body's object; raise `NotAReply` for anything else, such as a proxy's page."""
    text = body.decode("utf-8", "replace")
    try:
        read: Any = orjson.loads(mend_surrogates(text))
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise NotAReply(f"Its reply is no JSON object: {clip_repr(text)}")
    return cast("Json", read)


def read_completion(reply: Json) -> Json:
    """Return a chat completion with the parts that its server left out or wrote differently.

    - The arguments of a call are an object (llama.cpp, Ollama) or null: they become text.
    - A call has no type or no id, and the reply no id, date or model.
    - The reasoning stands in the text, and one of its two tags is missing, because the server's
      template wrote the first one into the prompt.

    Raises:
        NotAReply: It has an error in the place of a reply (OpenRouter), or no message.
    """
    message = _message(reply)
    for name, default in _NEEDED.items():
        if reply.get(name) is None:
            reply[name] = default
    for call in objects_in(message.get("tool_calls")):
        call.setdefault("type", "function")
        call["id"] = call.get("id") or ""
        function = call.get("function")
        if isinstance(function, dict):
            _mend_call(cast("Json", function))
    if isinstance(text := message.get("content"), str):
        message["content"] = _with_both_tags(text)
    return reply


def _message(reply: Json) -> Json:
    choices = objects_in(reply.get("choices"))[:1]
    message: Any = choices[0].get("message") if choices else None
    if isinstance(message, dict):
        choices[0].setdefault("index", 0)
        return cast("Json", message)
    error: Any = reply.get("error") or (reply if reply.get("object") == "error" else None)
    if isinstance(error, dict):
        raise _error_in(cast("Json", error))
    if isinstance(error, str):
        raise NotAReply(error)
    raise NotAReply("Its reply has no choices" if not choices else "Its reply has no message")


def _error_in(error: Mapping[str, Any]) -> NotAReply:
    code: Any = error.get("code")
    status = int(code) if str(code).isdigit() and int(code) in _ERRORS else 502
    named = next((n for n in (code, error.get("type")) if isinstance(n, str)), f"status_{status}")
    return NotAReply(
        str(error.get("message") or "Its reply is an error"), status=status, code=named
    )


def _mend_call(function: Json) -> None:
    given: Any = function.get("arguments")
    function["name"] = function.get("name") or ""
    if given is None:
        function["arguments"] = "{}"
    elif not isinstance(given, str):
        try:
            function["arguments"] = orjson.dumps(given).decode()
        except TypeError:  # too deep to be written: the model is told that it is no JSON
            function["arguments"] = "too deeply nested"


def _with_both_tags(text: str) -> str:
    """Complete the tags of a text's reasoning; the library tells it apart by these."""
    first = text.find(_OPENS)
    reasoning, closed, said = text.rpartition(_CLOSES)
    if closed and not 0 <= first < text.find(_CLOSES):
        return f"{_OPENS}{reasoning.replace(_CLOSES, '')}{_CLOSES}{said}"
    if text.lstrip().startswith(_OPENS) and text.rfind(_OPENS) > text.rfind(_CLOSES):
        return f"{text}{_CLOSES}"
    return text


def objects_in(given: Any) -> list[Json]:
    """Return the objects of a list; none for anything else."""
    items = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]
