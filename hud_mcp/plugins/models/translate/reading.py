"""A request of any dialect as the models' library has it."""

import hashlib
import re
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hud_mcp.plugins import models
from hud_mcp.plugins.models.gateway.dialects import Asked, Json
from hud_mcp.plugins.models.gateway.dialects.body import Body, clean, dict_of, dicts_of, text_of
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.dialects.requests import Media
from hud_mcp.plugins.models.translate.wishes import WISHES, Tool, Wishes, refuse

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestParameters

__all__ = ["Memory", "Translated", "read_request"]

_CHARS = 20_000_000
"""The length of all replies of one run that are remembered."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_CHARS = 64
_LOST = {"redacted_thinking", "thoughtSignature", "thought_signature", "thought"}
"""Parts of replies that only their provider reads; the memory has those of this one."""
_PICTURES = "image/"
_TAKEN: dict[str, tuple[str, ...]] = {
    "anthropic": (_PICTURES, "application/pdf", "text/"),
    "openai": (_PICTURES, "application/pdf", "text/"),
    "google": (_PICTURES, "application/pdf", "text/", "audio/", "video/"),
    "openai-compatible": (_PICTURES, "text/"),
}
"""The media that providers take with their bytes."""
_BY_URL: dict[str, tuple[str, ...]] = {
    "anthropic": (_PICTURES, "application/pdf"),
    "openai": (_PICTURES, "application/pdf"),
    "google": (),  # the library would get them from here, and so reach what the agent cannot
    "openai-compatible": (_PICTURES,),
}


@dataclass
class Translated:
    """A request for the models' library.

    Attributes:
        tools: The tools by the names that the model calls them by.
    """

    messages: "list[ModelMessage]"
    parameters: "ModelRequestParameters"
    settings: dict[str, Any]
    tools: dict[str, Tool]


class Memory:
    """The replies of one run, with what only their provider reads: signatures and reasoning.

    An agent sends a reply back in its own dialect, which has no place for that.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[bytes, tuple[ModelResponse, int]] = OrderedDict()
        self._chars = 0

    def keep(self, response: "ModelResponse") -> None:
        """Remember a reply; the oldest are forgotten."""
        key, chars = _key_of(response.parts), sum(len(str(part)) for part in response.parts)
        self._chars += chars - self._replies.pop(key, (None, 0))[1]
        self._replies[key] = response, chars
        while self._chars > _CHARS:
            self._chars -= self._replies.popitem(last=False)[1][1]

    def find(self, response: "ModelResponse") -> "ModelResponse":
        """Return the reply that was sent back; another one as it came."""
        found = self._replies.get(_key_of(response.parts))
        if found is None:
            return response
        known = found[0]
        calls = {part.tool_call_id: part.args for part in response.tool_calls}
        parts = [
            replace(part, args=calls[part.tool_call_id])
            if isinstance(part, models.messages.ToolCallPart)
            else part
            for part in known.parts
        ]
        return replace(known, parts=parts)


def _key_of(parts: "Sequence[Any]") -> bytes:
    kinds = models.messages
    texts = "".join(part.content for part in parts if isinstance(part, kinds.TextPart))
    ids = [part.tool_call_id for part in parts if isinstance(part, kinds.ToolCallPart)]
    told = "\0".join(["".join(texts.split()), *ids])
    return hashlib.sha256(told.encode("utf-8", "replace")).digest()


def read_request(
    dialect: Dialect, asked: Asked, body: bytes, provider: str, memory: Memory
) -> Translated:
    """Read a request.

    Args:
        dialect: Its dialect.
        asked: The request as its dialect has read it.
        body: Its body.
        provider: The provider that is asked in its place.
        memory: The replies of its run.

    Raises:
        Refused: It has what that provider cannot do.
    """
    if asked.previous is not None:
        raise refuse('"previous_response_id"')
    if asked.choices > 1:
        raise refuse("a request for several replies")
    value = clean(Body(body).value)
    wishes = WISHES[dialect.name](value)
    tools = _named(wishes.tools)
    conversation = _Conversation(provider, tools, _failed(asked))
    conversation.system(clean(asked.system or ""))
    for item in asked.items:
        conversation.add(*dialect.spoken(clean(item)))
    settings = _settings(wishes, tools)
    return Translated(conversation.end(memory), _parameters(wishes, tools), settings, tools)


def _named(tools: list[Tool]) -> dict[str, Tool]:
    """Return tools by names that every provider takes."""
    named: dict[str, Tool] = {}
    for tool in tools:
        name = _plain_name(tool.full_name)
        while name in named:
            name = f"{name[: _NAME_CHARS - 4]}_{len(named)}"
        named[name] = tool
    return named


def _plain_name(name: str) -> str:
    plain = _NO_NAME.sub("_", name)
    return (plain if plain[:1].isalpha() else f"_{plain}")[:_NAME_CHARS]


def _parameters(wishes: Wishes, tools: dict[str, Tool]) -> "ModelRequestParameters":
    defined = [
        models.ToolDefinition(
            name=name, description=tool.about, parameters_json_schema=tool.schema,
            strict=tool.is_strict,
        )
        for name, tool in tools.items()
    ]  # fmt: skip
    if wishes.schema is None:
        return models.ModelRequestParameters(function_tools=defined)
    output = models.OutputObjectDefinition(
        json_schema=wishes.schema or {"type": "object"}, name=wishes.schema_name
    )
    mode = "native" if wishes.schema else "prompted"
    return models.ModelRequestParameters(
        function_tools=defined, output_mode=mode, output_object=output
    )


def _settings(wishes: Wishes, tools: dict[str, Tool]) -> dict[str, Any]:
    choice = wishes.choice
    if isinstance(choice, list):
        choice = [name for name, tool in tools.items() if {tool.name, tool.full_name} & {*choice}]
        if not choice:
            raise refuse('a "tool_choice" of a tool that is not there')
    return {**wishes.settings, "tool_choice": choice} if tools else wishes.settings


def _failed(asked: Asked) -> set[str]:
    """Return the ids of the calls whose results are said to be errors."""
    blocks = [each for item in asked.items for each in dicts_of(item.get("content"))]
    return {text_of(each.get("tool_use_id")) for each in blocks if each.get("is_error") is True}


def _with_file(result: Any, media: Any) -> Any:
    shown: Any = result.content
    listed: list[Any] = [*shown] if isinstance(shown, list) else [shown] if shown else []
    return replace(result, content=[*listed, media])


class _Conversation:
    """The messages of a request, while its items are read."""

    def __init__(self, provider: str, tools: dict[str, Tool], failed: set[str]) -> None:
        self._provider, self._tools, self._failed = provider, tools, failed
        self._system: list[str] = []
        self._messages: list[Any] = []
        self._names: dict[str, str] = {}  # of the tools, by the ids of their calls
        self._unnamed: list[str] = []  # the calls that came without an id and have no result yet

    def system(self, text: str) -> None:
        """Add to the system prompt."""
        self._system += [text] if text else []

    def add(self, role: str, parts: list[Any]) -> None:
        """Add a message of a role."""
        is_told = role in ("system", "developer")
        if role == "assistant":
            self._reply(parts)
        elif is_told and not self._messages:
            self._system += [part["text"] for part in parts if "text" in part]
        else:
            self._request(parts, "<system>\n{}\n</system>" if is_told else "{}")

    def end(self, memory: Memory) -> "list[ModelMessage]":
        """Return all messages, with the replies that are remembered."""
        kinds = models.messages
        found = [
            memory.find(m) if isinstance(m, kinds.ModelResponse) else m for m in self._messages
        ]
        if self._system:
            parts: list[Any] = [kinds.SystemPromptPart("\n\n".join(self._system))]
            if found and isinstance(found[0], kinds.ModelRequest):
                parts += found.pop(0).parts
            found.insert(0, kinds.ModelRequest(parts))
        return found

    def _put(self, kind: "Callable[[list[Any]], Any]", parts: list[Any]) -> None:
        """Add parts to the last message, if it is of the kind, or in another one."""
        before: Any = self._messages[-1] if self._messages else None
        made = kind(parts)
        if type(before) is type(made):
            self._messages[-1] = replace(before, parts=[*before.parts, *parts])
        elif parts:
            self._messages.append(made)

    def _reply(self, parts: list[Any]) -> None:
        kinds, made = models.messages, list[Any]()
        for part in parts:
            if isinstance(part, Media):
                raise refuse("a reply with a picture")
            if text := part.get("text"):
                made.append(kinds.TextPart(text))
            elif call := part.get("call"):
                made.append(self._call(call))
            elif "other" in part and part["other"] not in _LOST:
                raise refuse(f"a reply's {part['other']!r}")
        self._put(kinds.ModelResponse, made)

    def _call(self, call: Json) -> Any:
        call_id = call["id"] or f"call_{len(self._names)}"
        self._unnamed += [] if call["id"] else [call_id]
        found = (n for n, tool in self._tools.items() if tool.full_name == call["name"])
        self._names[call_id] = name = next(found, _plain_name(call["name"]))
        given = call["arguments"]
        text = {"input": given} if isinstance(given, str) and given else {}
        return models.messages.ToolCallPart(name, dict_of(given) or text, call_id)

    def _request(self, parts: list[Any], form: str) -> None:
        kinds, made, content = models.messages, list[Any](), list[Any]()
        for part in parts:
            before: Any = made[-1] if made and not content else None
            if isinstance(part, Media):
                media = self._media(part)
                if isinstance(before, kinds.ToolReturnPart):  # it is of that result
                    made[-1] = _with_file(before, media)
                else:
                    content.append(media)
            elif "result" in part:
                made += [kinds.UserPromptPart(content)] if content else []
                content = []
                made.append(self._result(part))
            elif text := part.get("text"):
                content.append(form.format(text))
            elif "other" in part:
                raise refuse(f"a message's {part['other']!r}")
        if content:
            is_text = all(isinstance(each, str) for each in content)
            made.append(kinds.UserPromptPart("\n\n".join(content) if is_text else content))
        self._put(kinds.ModelRequest, made)

    def _result(self, part: Json) -> Any:
        call_id = part["id"] or (self._unnamed.pop(0) if self._unnamed else "")
        outcome = "failed" if call_id in self._failed else "success"
        name, text = self._names.get(call_id, "tool"), part["result"]
        return models.messages.ToolReturnPart(name, text, call_id, outcome=outcome)

    def _media(self, media: Media) -> Any:
        kinds, mime = models.messages, media.mime
        if not media.data:
            if not media.url.startswith(("https://", "http://")):
                raise refuse("a file that is only named")
            if not mime.startswith(_BY_URL[self._provider]):
                raise refuse(f"the address of a file ({mime})")
            is_picture = mime.startswith(_PICTURES)
            return kinds.ImageUrl(media.url) if is_picture else kinds.DocumentUrl(media.url)
        if not mime.startswith(_TAKEN[self._provider]):
            raise refuse(f"a file of {mime}")
        try:
            data = b64decode(media.data)
        except ValueError:
            raise refuse("a file that is not base64") from None
        is_text = mime.startswith("text/")
        return (
            data.decode("utf-8", "replace")
            if is_text
            else kinds.BinaryContent(data, media_type=mime)
        )
