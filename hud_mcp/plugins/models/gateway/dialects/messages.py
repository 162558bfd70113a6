"""Anthropic's Messages: `POST /v1/messages`."""

from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Action, Asked, Json
from hud_mcp.plugins.models.gateway.dialects.body import (
    contents_of,
    count_of,
    dict_of,
    dicts_of,
    digest_of,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.dialect import MODELS, Dialect
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

__all__ = ["MESSAGES"]

_ACTIONS: dict[tuple[str, str], Action] = {
    ("POST", "/v1/messages"): "turn",
    ("POST", "/v1/messages/count_tokens"): "count",
    ("HEAD", "/"): "hello",
    ("GET", "/"): "hello",
    ("HEAD", "/api/hello"): "hello",
    ("GET", "/api/hello"): "hello",
}
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
    529: "overloaded_error",
}  # fmt: skip
_BILLING = "x-anthropic-billing-header"
"""The begin of a block of the system prompt that changes from request to request."""

_MIMES = {"image": "image/*", "document": "application/pdf"}
_THOUGHTS = ("thinking", "redacted_thinking")


class _Messages(Dialect):
    """Anthropic's Messages."""

    name, actions = "messages", _ACTIONS
    models, caps = MODELS, ("max_tokens",)

    def asked(self, value: Json) -> tuple[Asked, Any]:
        blocks = [each for each in contents_of(value.get("system")) if not _is_billing(each)]
        asked = Asked(
            items=tuple(dicts_of(value.get("messages"))),
            cap=count_of(value.get("max_tokens")),
            thinking=count_of(dict_of(value.get("thinking")).get("budget_tokens")),
            system="\n\n".join(text_of(each.get("text")) for each in blocks) or None,
            system_digest=digest_of([_stable_block(each) for each in blocks]).hex(),
        )
        form = dict_of(value.get("output_config")).get("format")
        return asked, form or value.get("output_format")

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        kind = _ERRORS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}, "error"

    def stable(self, item: Json, /) -> Json:
        blocks = [
            each for each in contents_of(item.get("content")) if each.get("type") not in _THOUGHTS
        ]
        return {"role": item.get("role"), "content": [_stable_block(each) for each in blocks]}

    def spoken(self, item: Json, /) -> tuple[str, list[Part]]:
        parts = [part for block in contents_of(item.get("content")) for part in _parts(block)]
        return role_of(item.get("role"), parts), parts

    def event(self, draft: Draft, event: Json, /) -> Came:
        index, delta = count_of(event.get("index")) or 0, dict_of(event.get("delta"))
        match event.get("type"):
            case "message_start":
                return self.whole(draft, dict_of(event.get("message")))
            case "content_block_start":
                _block(draft, index, dict_of(event.get("content_block")))
            case "content_block_delta":
                draft.say((index, 0), delta.get("text"))
                draft.think((index, 0), delta.get("thinking"))
                if "partial_json" in delta:
                    draft.call((index, 0), text=delta["partial_json"])
            case "message_delta":
                return _end(draft, delta, event)
            case "message_stop":
                return "end"
            case "error":
                draft.fail(event.get("error"))
            case _:
                pass  # a ping, or what a later version adds
        return "more"

    def whole(self, draft: Draft, message: Json, /) -> Came:
        draft.named(message)
        for index, block in enumerate(dicts_of(message.get("content"))):
            _block(draft, index, block)
        return _end(draft, message, message)


def _is_billing(block: Json) -> bool:
    return text_of(block.get("text")).startswith(_BILLING)


def _stable_block(block: Json) -> Json:
    kept = without(block, "cache_control", "citations")
    if "content" in kept:
        kept["content"] = [_stable_block(each) for each in contents_of(kept["content"])]
    return kept


def _parts(block: Json) -> list[Part]:
    kind = text_of(block.get("type"))
    match kind:
        case "text":
            return say(block.get("text"))
        case "thinking":
            return say(block.get("thinking"), "reasoning")
        case "image" | "document":
            return _media(dict_of(block.get("source")), kind)
        case _ if kind.endswith("tool_use"):
            return [call_of(block.get("name"), block.get("input"), block.get("id"))]
        case _ if kind.endswith("tool_result"):
            inner = [part for each in contents_of(block.get("content")) for part in _parts(each)]
            return results_of(inner, block.get("tool_use_id"))
        case _:
            return [{"other": kind}] if kind else []


def _media(source: Json, kind: str) -> list[Part]:
    mime = text_of(source.get("media_type")) or _MIMES[kind]
    match source.get("type"):
        case "base64":
            return [Media(mime, text_of(source.get("data")))]
        case "text":
            return say(source.get("data"))
        case "content":
            return [part for each in contents_of(source.get("content")) for part in _parts(each)]
        case _:
            return [Media(mime, url=text_of(source.get("url")) or text_of(source.get("file_id")))]


def _block(draft: Draft, index: int, block: Json) -> None:
    draft.say((index, 0), block.get("text"))
    draft.think((index, 0), block.get("thinking"))
    if text_of(block.get("type")).endswith("tool_use"):
        draft.call(
            (index, 0), name=block.get("name"), call_id=block.get("id"), given=block.get("input")
        )


def _end(draft: Draft, delta: Json, told: Json) -> Came:
    """Read the reason of the end and the usage, whose figures are of the whole reply so far."""
    draft.stop_reason = text_of(delta.get("stop_reason")) or draft.stop_reason
    usage = dict_of(told.get("usage"))
    draft.count(
        fresh=count_of(usage.get("input_tokens")),
        cached=count_of(usage.get("cache_read_input_tokens")),
        cache_write=count_of(usage.get("cache_creation_input_tokens")),
        output=count_of(usage.get("output_tokens")),
        reasoning=count_of(dict_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
    return "last" if draft.stop_reason else "more"


MESSAGES = _Messages()
