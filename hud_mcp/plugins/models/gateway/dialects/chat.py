"""OpenAI's Chat Completions: `POST /v1/chat/completions`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Action, Asked, Json
from hud_mcp.plugins.models.gateway.dialects.body import (
    contents_of,
    count_of,
    dict_of,
    dicts_of,
    digest_of,
    first_of,
    number_of,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.dialect import (
    MODELS,
    Dialect,
    openai_error,
    openai_usage,
)
from hud_mcp.plugins.models.gateway.dialects.replies import Came, Draft
from hud_mcp.plugins.models.gateway.dialects.requests import (
    Media,
    Part,
    call_of,
    media_at,
    results_of,
    say,
    without,
)
from hud_mcp.plugins.models.gateway.dialects.tokens import read_chat_tokens

__all__ = ["CHAT"]

_SYSTEM = ("system", "developer")
_UNSTABLE = ("reasoning", "reasoning_content", "reasoning_details", "refusal", "annotations")


class _Chat(Dialect):
    """OpenAI's Chat Completions, and its likes of other providers and engines."""

    name = "chat"
    actions: Mapping[tuple[str, str], Action] = {("POST", "/v1/chat/completions"): "turn"}
    models, caps = MODELS, ("max_completion_tokens", "max_tokens")

    def asked(self, value: Json) -> tuple[Asked, Any]:
        items = dicts_of(value.get("messages"))
        begin = next((n for n, m in enumerate(items) if m.get("role") not in _SYSTEM), len(items))
        said = [p for m in items[:begin] for p in self.spoken(m)[1] if not isinstance(p, Media)]
        asked = Asked(
            items=tuple(items[begin:]),
            cap=max((n for name in self.caps if (n := count_of(value.get(name)))), default=None),
            choices=number_of(value.get("n")),
            system="\n\n".join(text_of(part.get("text")) for part in said) or None,
            system_digest=digest_of([self.stable(each) for each in items[:begin]]).hex(),
        )
        form = text_of(dict_of(value.get("response_format")).get("type"))
        return asked, form.startswith("json")

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        return {"error": openai_error(status, message)}, ""

    def stable(self, item: Json, /) -> Json:
        kept = without(item, "cache_control", *_UNSTABLE)
        kept["content"] = [
            without(each, "cache_control") for each in contents_of(item.get("content"))
        ]
        return {name: value for name, value in kept.items() if value is not None}

    def spoken(self, item: Json, /) -> tuple[str, list[Part]]:
        role = text_of(item.get("role")) or "user"
        parts = [part for each in contents_of(item.get("content")) for part in _parts(each)]
        if role in ("tool", "function"):
            return "tool", results_of(parts, item.get("tool_call_id"))
        thought = say(item.get("reasoning_content") or item.get("reasoning"), "reasoning")
        calls = [(dict_of(each.get("function")), each) for each in dicts_of(item.get("tool_calls"))]
        return role, [
            *thought,
            *parts,
            *(call_of(f.get("name"), f.get("arguments"), each.get("id")) for f, each in calls),
        ]

    def event(self, draft: Draft, chunk: Json, /) -> Came:
        draft.named(chunk)
        if chunk.get("error"):
            draft.fail(chunk["error"])
        openai_usage(draft, dict_of(chunk.get("usage")), "prompt", "completion")
        choice = first_of(chunk.get("choices"))
        read_chat_tokens(draft.tokens(0), chunk, choice)
        said = dict_of(choice.get("delta") or choice.get("message"))
        for part in contents_of(said.get("content")):
            draft.say((0, 0), part.get("text"))
        draft.say((0, 0), said.get("refusal"))
        draft.think((0, 0), said.get("reasoning_content") or said.get("reasoning"))
        for place, call in enumerate(dicts_of(said.get("tool_calls"))):
            index, function = count_of(call.get("index")), dict_of(call.get("function"))
            if index is None:  # some engines send each call whole, and do not count them
                index = draft.calls_so_far() if call.get("id") or place else 0
            given = function.get("arguments")
            draft.call(
                (index, 0),
                name=function.get("name"),
                call_id=call.get("id"),
                **{"given" if isinstance(given, dict) else "text": given},
            )
        draft.stop_reason = text_of(choice.get("finish_reason")) or draft.stop_reason
        return "last" if draft.stop_reason else "more"


def _parts(part: Json) -> list[Part]:
    kind = text_of(part.get("type"))
    match kind:
        case "text" | "refusal":
            return say(part.get(kind))
        case "image_url":
            url = part.get("image_url")
            return [media_at(url if isinstance(url, str) else dict_of(url).get("url"), "image/*")]
        case "file":
            file = dict_of(part.get("file"))
            return [media_at(file.get("file_data") or file.get("file_id"), "application/pdf")]
        case "input_audio":
            return [Media("audio/*", text_of(dict_of(part.get("input_audio")).get("data")))]
        case _:
            return [{"other": kind}] if kind else []


CHAT = _Chat()
