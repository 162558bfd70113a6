"""The answers of a model to a server that asks its client for one: sampling of 2025-11-25."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import orjson
from pydantic import ValidationError

from hud_mcp.base import libraries
from hud_mcp.errors import GraderFailed, HudMcpError
from hud_mcp.graders.endpoint import Endpoint, Question, Unreadable, find_endpoint, open_client
from hud_mcp.plugins.servers.peer import INTERNAL_ERROR, Json, RemoteError, as_object
from hud_mcp.plugins.servers.reply import PICTURES, Masker
from hud_mcp.plugins.servers.sampling_model import ask_model, named_model

if TYPE_CHECKING:
    import mcp_types as types

__all__ = ["Sampler"]

_REFUSED, _INVALID_PARAMS = -1, -32602
_REQUESTS = 20
"""The requests of one session: each costs its operator something."""
_REQUEST_BYTES = 1024 * 1024
_REPLY_TOKENS = 4096
_ANSWER_S, _BACKOFF_S = 60.0, 0.5


@dataclass(frozen=True)
class _Conversation(Endpoint):
    """A model that is asked with a whole conversation."""

    asked: "types.CreateMessageRequestParams | None" = None
    counts: list[int] = field(default_factory=list[int])  # the tokens of its reply, if it tells

    async def _post(self, client: Any, body: Any) -> Any:
        status, headers, data = await super()._post(client, body)
        try:
            usage = as_object(as_object(orjson.loads(data)).get("usage"))
        except ValueError:
            usage = {}
        names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
        self.counts[:] = [n for name in names if isinstance(n := usage.get(name), int)]
        return status, headers, data

    def payload(self, question: Question) -> Json:
        """Return the body of a request: the model's own form of each message."""
        asked, body = self.asked, super().payload(question)
        if asked is None:
            return body
        messages: list[Json] = []
        for each in asked.messages:
            said = Question("", *_parts(each))
            content = super().payload(said)["messages"][-1]["content"]
            messages.append({"role": each.role, "content": content})
        first = [m for m in body["messages"] if m["role"] == "system" and question.system]
        body["messages"] = [*first, *messages]
        if asked.temperature is not None:
            body["temperature"] = asked.temperature
        if asked.stop_sequences:
            body["stop" if self.speaks == "openai" else "stop_sequences"] = asked.stop_sequences
        return body


class Sampler:
    """The model that the user names, else that of judges, for one session's server.

    Args:
        masker: Masks secrets in the requests.
        log: The session's log, for the reasons why there is no answer.
    """

    limiter: ClassVar[anyio.CapacityLimiter] = anyio.CapacityLimiter(8)
    """The most requests at one time, over all sessions."""

    def __init__(self, masker: Masker, log: Callable[[str], None]) -> None:
        self._masker, self._log = masker, log
        self._left = _REQUESTS

    async def answer(self, params: Json) -> tuple[Json, Json]:
        """Return the result of `sampling/createMessage`, and the figures for the record.

        Raises:
            RemoteError: There is none; the text says why.
        """
        if self._left <= 0:
            raise RemoteError(_REFUSED, f"A session has {_REQUESTS} requests for a model.")
        self._left -= 1
        asked = _read(self._masker.value(params))
        tokens = max(1, min(asked.max_tokens, _REPLY_TOKENS))
        try:
            options = named_model(tokens)
            model = None if options else _Conversation(**asdict(find_endpoint()), asked=asked)
        except GraderFailed as exc:
            self._log(f"sampling is refused: {exc}")
            raise RemoteError(_REFUSED, "This client has no model.") from None
        try:
            with anyio.fail_after(_ANSWER_S) as bound:
                if model is not None:
                    text, figures = await self._judged(model, tokens, bound.deadline)
                else:
                    async with self.limiter:
                        text, figures = await ask_model(options, asked)
        except (HudMcpError, Unreadable, TimeoutError) as exc:  # its words are the operator's
            self._log(f"sampling failed: {exc or 'no reply in time'}")
            raise RemoteError(INTERNAL_ERROR, "The model did not answer.") from None
        content = {"type": "text", "text": text}
        return {"role": "assistant", "content": content, "model": figures["model"]}, figures

    async def _judged(self, model: _Conversation, tokens: int, until: float) -> tuple[str, Json]:
        system = (model.asked and model.asked.system_prompt) or ""
        how: Any = {"limiter": self.limiter, "deadline": until, "backoff_s": _BACKOFF_S}
        async with open_client() as client:
            text = await model.ask(client, Question(system, "", reply_tokens=tokens), **how)
        return text, {"model": model.model, "tokens": sum(model.counts) or None}


def _read(params: Json) -> "types.CreateMessageRequestParams":
    """Return a request that this client takes; `RemoteError` says why it does not."""
    if len(orjson.dumps(params)) > _REQUEST_BYTES:
        raise RemoteError(_INVALID_PARAMS, f"A request for a model has {_REQUEST_BYTES} bytes.")
    try:
        asked = libraries.mcp_types.CreateMessageRequestParams.model_validate(params)
    except ValidationError:
        raise RemoteError(_INVALID_PARAMS, "This is no request for a model of MCP.") from None
    if asked.tools or asked.task is not None or not asked.messages:
        text = "This client samples messages, without tools and without tasks."
        raise RemoteError(_INVALID_PARAMS, text)
    for each in asked.messages:
        _parts(each)
    return asked


def _parts(message: "types.SamplingMessage") -> tuple[str, None, tuple[bytes, ...]]:
    """Return the text of a message, no schema, and its pictures."""
    texts: list[str] = []
    pictures: list[bytes] = []
    for block in message.content_as_list:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "image" and block.mime_type in PICTURES:
            try:
                pictures.append(base64.b64decode(block.data, validate=True))
            except binascii.Error:
                raise RemoteError(_INVALID_PARAMS, "A picture has no base64.") from None
        else:
            raise RemoteError(_INVALID_PARAMS, "Messages have text, and PNG or JPEG pictures.")
    return "\n".join(texts), None, tuple(pictures)
