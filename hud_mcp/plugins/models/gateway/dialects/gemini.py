"""Gemini's generateContent: `POST /v1beta/models/MODEL:generateContent`, and its stream."""

import json
import re
from typing import Any
from urllib.parse import quote, unquote

from hud_mcp.plugins.models.gateway.dialects import Action, Asked, Json, Unreadable
from hud_mcp.plugins.models.gateway.dialects.body import (
    Body,
    count_of,
    dict_of,
    dicts_of,
    digest_of,
    first_of,
    number_of,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.dialects.replies import Came, Draft
from hud_mcp.plugins.models.gateway.dialects.requests import (
    Media,
    Part,
    call_of,
    results_of,
    role_of,
    say,
    without,
)
from hud_mcp.plugins.models.gateway.dialects.tokens import read_gemini_tokens

__all__ = ["GEMINI", "camel"]

_PATH = re.compile(r"(/v1(?:beta|alpha)?/models/)([^/:?]+)(:(\w+)(?:\?.*)?)")
_MODELS = re.compile(r"/v1(beta|alpha)/models(/[^/:]+)?")
_ACTIONS: dict[str, Action] = {
    "generateContent": "turn",
    "streamGenerateContent": "turn",
    "countTokens": "count",
}
_CONFIG, _CAP = ("generationConfig", "generation_config"), ("maxOutputTokens", "max_output_tokens")
_STATUSES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}  # fmt: skip


class _Gemini(Dialect):
    """Gemini's generateContent."""

    name, models, configs = "gemini", _MODELS, _CONFIG

    def action(self, method: str, path: str) -> Action | None:
        found = _PATH.fullmatch(path) if method == "POST" else None
        return _ACTIONS.get(found[4]) if found else super().action(method, path)

    def named(self, path: str, value: Json) -> tuple[str, bool]:  # noqa: ARG002  # the path has both
        found = _found(path)
        return unquote(found[2]), found[4] == "streamGenerateContent"

    def asked(self, value: Json) -> tuple[Asked, Any]:
        value = camel(value)
        if value.get("cachedContent"):
            raise Unreadable('"cachedContent" names what is not in the request; leave it out.')
        config = camel(dict_of(value.get("generationConfig")))
        thinking = camel(dict_of(config.get("thinkingConfig")))
        texts = [text_of(each.get("text")) for each in _contents(value.get("systemInstruction"))]
        asked = Asked(
            items=tuple(dicts_of(value.get("contents")) or dicts_of([value.get("contents")])),
            cap=count_of(config.get("maxOutputTokens")),
            thinking=count_of(thinking.get("thinkingBudget")),
            choices=number_of(config.get("candidateCount")),
            system="\n\n".join(texts) or None,
            system_digest=digest_of(texts).hex(),
        )
        return asked, any("schema" in name.lower() for name in config)

    def with_model(self, path: str, body: bytes, model: str) -> tuple[str, bytes]:
        """Return path and body with another model; the body of a count may name it too."""
        found, read = _found(path), Body(body)
        if read.has("model"):
            body = read.put("model", f"models/{model}")
        return f"{found[1]}{quote(model, safe='')}{found[3]}", body

    def with_cap(self, body: bytes, tokens: int) -> bytes:
        read = Body(body)
        config = next((name for name in _CONFIG if read.has(name)), _CONFIG[0])
        cap = next((name for name in _CAP if read.has(name, config)), _CAP[0])
        return read.put(cap, tokens, config)

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        kind = _STATUSES.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind}}, ""

    def stable(self, item: Json, /) -> Json:
        parts = [part for part in _contents(item) if part.get("thought") is not True]
        signed = ("thoughtSignature", "thought_signature")
        return {"role": item.get("role"), "parts": [without(part, *signed) for part in parts]}

    def spoken(self, item: Json, /) -> tuple[str, list[Part]]:
        parts = [part for each in _contents(item) for part in _parts(each)]
        role = role_of(item.get("role"), parts)
        return "assistant" if role == "model" else role, parts

    def event(self, draft: Draft, chunk: Json, /) -> Came:
        draft.named(chunk, id_name="responseId", model_name="modelVersion")
        if chunk.get("error"):
            draft.fail(chunk["error"])
        _count(draft, dict_of(chunk.get("usageMetadata")))
        candidate = first_of(chunk.get("candidates"))
        read_gemini_tokens(draft.tokens(0), candidate)
        for part in _contents(candidate.get("content")):
            write = draft.think if part.get("thought") is True else draft.say
            write((0, 0), part.get("text"))
            if call := dict_of(part.get("functionCall")):
                place = (draft.calls_so_far(), 0)
                draft.call(
                    place, name=call.get("name"), call_id=call.get("id"), given=call.get("args")
                )
        blocked = dict_of(chunk.get("promptFeedback")).get("blockReason")
        stop = text_of(candidate.get("finishReason")) or text_of(blocked)
        draft.stop_reason = stop or draft.stop_reason
        return "last" if draft.stop_reason else "more"


def camel(value: Json) -> Json:
    """Return an object with its names as Google's documents have them; it reads both."""
    return {_camel_name(name): each for name, each in value.items()} | value


def _camel_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _found(path: str) -> re.Match[str]:
    found = _PATH.fullmatch(path)
    if found is None:
        raise Unreadable("The path names no model.")
    return found


def _contents(content: Any) -> list[Json]:
    parts = dict_of(content).get("parts")
    return dicts_of([parts] if isinstance(parts, dict) else parts)


def _parts(part: Json) -> list[Part]:
    if "text" in part:
        return say(part["text"], "reasoning" if part.get("thought") is True else "text")
    named = camel(part)
    inline, file = (camel(dict_of(named.get(name))) for name in ("inlineData", "fileData"))
    if inline or file:
        mime = text_of((inline or file).get("mimeType"))
        return [Media(mime, text_of(inline.get("data")), text_of(file.get("fileUri")))]
    if call := dict_of(named.get("functionCall")):
        return [call_of(call.get("name"), call.get("args"), call.get("id"))]
    if result := dict_of(named.get("functionResponse")):
        return _result(result)
    others: list[Part] = [{"other": name} for name in part]
    return others[:1]


def _result(result: Json) -> list[Part]:
    response, media = result.get("response"), [p for e in _contents(result) for p in _parts(e)]
    output = dict_of(response).get("output")
    text = output if isinstance(output, str) else json.dumps(response, ensure_ascii=False)
    return results_of([*say(text), *media], result.get("id"))


def _count(draft: Draft, usage: Json) -> None:
    counts = {name: count_of(usage.get(f"{name}TokenCount")) for name in _COUNTS}
    made = [n for name in ("candidates", "thoughts") if (n := counts[name]) is not None]
    given = [n for name in ("prompt", "toolUsePrompt") if (n := counts[name]) is not None]
    draft.count(
        input=sum(given) if given else None,
        output=sum(made) if made else None,
        cached=counts["cachedContent"],
        reasoning=counts["thoughts"],
    )


_COUNTS = ("prompt", "toolUsePrompt", "cachedContent", "candidates", "thoughts")

GEMINI = _Gemini()
