"""OpenAI's Responses: `POST /v1/responses`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.plugins.models.gateway.dialects import Action, Asked, Json, Unreadable
from hud_mcp.plugins.models.gateway.dialects.body import (
    contents_of,
    count_of,
    dict_of,
    dicts_of,
    digest_of,
    text_of,
)
from hud_mcp.plugins.models.gateway.dialects.dialect import (
    Dialect,
    openai_error,
    openai_usage,
)
from hud_mcp.plugins.models.gateway.dialects.replies import Came, Draft
from hud_mcp.plugins.models.gateway.dialects.requests import (
    Part,
    call_of,
    media_at,
    results_of,
    say,
    without,
)
from hud_mcp.plugins.models.gateway.dialects.tokens import read_logprobs

__all__ = ["RESPONSES"]

_TOOLS = "additional_tools"
"""An item of Codex in the place of `tools`."""

_DELTAS = {
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "custom",
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "thought",
    "response.reasoning_text.delta": "thought",
}
_CODES = {400: "invalid_prompt", 404: "invalid_prompt", 429: "rate_limit_exceeded"}
"""Codes of replies that failed; Codex asks again after another one than the first."""

_ENDS = ("response.completed", "response.incomplete", "response.failed")


class _Responses(Dialect):
    """OpenAI's Responses."""

    name, caps = "responses", ("max_output_tokens",)
    actions: Mapping[tuple[str, str], Action] = {("POST", "/v1/responses"): "turn"}

    def asked(self, value: Json) -> tuple[Asked, Any]:
        for name in ("background", "conversation", "prompt"):
            if value.get(name):
                raise Unreadable(f'"{name}" names what is not in the request; leave it out.')
        items = _items(value.get("input"))
        lent = [tool for each in items if each.get("type") == _TOOLS
                for tool in dicts_of(each.get("tools"))]  # fmt: skip
        asked = Asked(
            items=tuple(each for each in items if each.get("type") != _TOOLS),
            cap=count_of(value.get("max_output_tokens")),
            system=text_of(value.get("instructions")) or None,
            system_digest=digest_of(value.get("instructions")).hex(),
            tools=tuple(lent),
            previous=text_of(value.get("previous_response_id")) or None,
        )
        form = text_of(dict_of(dict_of(value.get("text")).get("format")).get("type"))
        return asked, form.startswith("json")

    def error_of(self, status: int, message: str) -> tuple[Json, str]:
        return {"error": openai_error(status, message)}, ""

    def last_event(self, status: int, message: str) -> tuple[Json, str]:
        """Return the event of a reply that failed."""
        error = {"code": _CODES.get(status, "server_error"), "message": message}
        failed: Json = {"id": "", "object": "response", "status": "failed", "error": error}
        name = "response.failed"
        return {"type": name, "sequence_number": 0, "response": failed}, name

    def stable(self, item: Json, /) -> Json | None:
        if item.get("type") == "reasoning":
            return None
        kept = without(item, "id", "status", "phase", "internal_chat_message_metadata_passthrough")
        if "role" in kept:
            kept["type"] = "message"
            contents = contents_of(item.get("content"))
            kept["content"] = [without(each, "annotations", "logprobs") for each in contents]
        return kept

    def spoken(self, item: Json, /) -> tuple[str, list[Part]]:
        kind = text_of(item.get("type")) or "message"
        if kind == "message":
            parts = [part for each in contents_of(item.get("content")) for part in _parts(each)]
            return text_of(item.get("role")) or "user", parts
        if kind == "reasoning":
            return "assistant", [
                part for _, text in _thoughts(item) for part in say(text, "reasoning")
            ]
        if kind.endswith("_output"):
            output = item.get("output")
            parts = contents_of([output] if isinstance(output, dict) else output)
            return "tool", results_of(
                [p for each in parts for p in _parts(each)], item.get("call_id")
            )
        name, arguments = _called(item)
        if arguments is None:
            return "assistant", [{"other": kind}]
        return "assistant", [call_of(name, arguments, item.get("call_id"))]

    def event(self, draft: Draft, event: Json, /) -> Came:
        kind, at = text_of(event.get("type")), count_of(event.get("output_index")) or 0
        part = count_of(event.get("content_index")) or 0
        if kind in _ENDS:
            self.whole(draft, dict_of(event.get("response")))
            return "end"
        match _DELTAS.get(kind, kind):
            case "text":
                draft.say((at, part), event.get("delta"))
                read_logprobs(draft.tokens(at), dicts_of(event.get("logprobs")))
            case "thought":
                place = count_of(event.get("summary_index"))
                draft.think((at, 2 * part + 1 if place is None else 2 * place), event.get("delta"))
            case "call" | "custom":
                draft.call((at, 0), text=event.get("delta"))
            case "response.created" | "response.in_progress":
                draft.named(dict_of(event.get("response")))
            case "response.output_item.added" | "response.output_item.done":
                draft.drop(at)
                _item(draft, at, dict_of(event.get("item")))
            case "error":
                draft.fail(event.get("error") or event)
            case _:
                pass  # a part of an item that comes whole later
        return "more"

    def whole(self, draft: Draft, response: Json, /) -> Came:
        draft.named(response)
        output = dicts_of(response.get("output"))
        for at, item in enumerate(output):
            draft.drop(at)
            _item(draft, at, item)
        status = text_of(response.get("status"))
        why = text_of(dict_of(response.get("incomplete_details")).get("reason"))
        draft.stop_reason = why or status or None
        if response.get("error"):
            draft.fail(response["error"])
        openai_usage(draft, dict_of(response.get("usage")), "input", "output")
        return "end" if status else "more"


def _items(given: Any) -> list[Json]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts_of(given)


def _parts(part: Json) -> list[Part]:
    kind = text_of(part.get("type"))
    match kind:
        case "input_text" | "output_text" | "text" | "refusal" | "summary_text":
            return say(part.get("text") or part.get("refusal"))
        case "input_image" | "computer_screenshot":
            return [media_at(part.get("image_url") or part.get("file_id"), "image/*")]
        case "input_file":
            names = ("file_data", "file_url", "file_id")
            url = next((part[name] for name in names if part.get(name)), "")
            return [media_at(url, "application/pdf")]
        case _:
            return [{"other": kind}] if kind else []


def _thoughts(item: Json) -> list[tuple[int, Any]]:
    """Return each text of a reasoning, and its place among those of its kind."""
    names = ("summary", "content")
    return [
        (2 * at + which, each.get("text"))
        for which, name in enumerate(names)
        for at, each in enumerate(dicts_of(item.get(name)))
    ]


def _called(item: Json) -> tuple[str, Any]:
    """Return the name and the arguments of a call; None in their place for another item."""
    kind, name = text_of(item.get("type")), text_of(item.get("name"))
    space = text_of(item.get("namespace"))
    plain = f"{space}__{name}" if space else name or kind.removesuffix("_call")
    if not kind.endswith("_call"):
        return plain, None
    listed = (item.get(each) for each in ("arguments", "input", "action", "actions"))
    return plain, next((each for each in listed if each is not None), None)


def _item(draft: Draft, at: int, item: Json) -> None:
    for place, text in _thoughts(item) if item.get("type") == "reasoning" else ():
        draft.think((at, place), text)
    if item.get("type") == "message":
        for part, content in enumerate(dicts_of(item.get("content"))):
            draft.say((at, part), content.get("text") or content.get("refusal"))
            read_logprobs(draft.tokens(at), dicts_of(content.get("logprobs")))
        return
    name, arguments = _called(item)
    if arguments is not None:
        is_raw = item.get("type") == "custom_tool_call" or isinstance(arguments, dict)
        put: Json = {"given" if is_raw else "text": arguments}
        draft.call((at, 0), name=name, call_id=item.get("call_id"), **put)


RESPONSES = _Responses()
