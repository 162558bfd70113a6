"""The models of a job for requests in a dialect that their provider does not speak."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from hud_mcp.agents.agent import JobHalted
from hud_mcp.errors import NotInstalled
from hud_mcp.plugins import models
from hud_mcp.plugins.models.gateway.choice import Route
from hud_mcp.plugins.models.gateway.dialects.body import dict_of
from hud_mcp.plugins.models.gateway.refusals import BAD_GATEWAY, Refused
from hud_mcp.plugins.models.gateway.translation import Sent
from hud_mcp.plugins.models.gateway.upstream import Answer, Failed, Lost, Redirected, base_of
from hud_mcp.plugins.models.replies import (
    Failure,
    failed_here,
    failure_of,
    message_of,
    read_completion,
)
from hud_mcp.plugins.models.requests import make_model, usage_of
from hud_mcp.plugins.models.translate.client import PassingClient, sending
from hud_mcp.plugins.models.translate.parts import Blocks, block_of
from hud_mcp.plugins.models.translate.reading import Memory, read_request
from hud_mcp.plugins.models.translate.wishes import Tool
from hud_mcp.plugins.models.translate.writing import WRITERS, Reply
from hud_mcp.values.model_turn import TokenUsage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model, StreamedResponse

__all__ = ["Translator"]

_STREAM, _JSON = "text/event-stream", "application/json"


class Translator:
    """Asks models through their library, and writes their replies in the agent's dialect."""

    def __init__(self) -> None:
        self._models: dict[str, tuple[Model, PassingClient]] = {}
        self._memories = WeakKeyDictionary[object, Memory]()

    async def aclose(self) -> None:
        """Close all connections."""
        for _, client in self._models.values():
            await client.aclose()

    @asynccontextmanager
    async def answered(self, sent: Sent) -> AsyncGenerator[Answer]:
        """Send a request, and give the reply while the block runs; see `Translation`."""
        async with AsyncExitStack() as stack:
            with sending() as addresses:
                try:
                    read = self._read(sent)
                    ask = _streamed if sent.is_events else _whole
                    answer = await ask(sent, read, stack)
                except Refused:
                    raise
                except NotInstalled as exc:
                    raise JobHalted(str(exc)) from exc
                except Exception as exc:  # of four libraries; the table tells them apart
                    if not addresses:  # the agent's doing: nobody else has seen it
                        told = f"This request cannot be translated: {message_of(exc)}"
                        raise Refused(told) from exc
                    answer = _refusal(sent, exc)
            yield answer

    def _read(self, sent: Sent) -> "_Read":
        memory = self._memories.setdefault(sent.run, Memory())
        provider = sent.route.options.provider
        read = read_request(sent.dialect, sent.asked, sent.body, provider, memory)
        settings: dict[str, Any] = {**read.settings, "max_retries": 0}
        if sent.cap is not None:
            settings["max_tokens"] = sent.cap
        if provider == "anthropic":
            settings["cache"] = True  # other dialects have nothing to ask for it with
        given: dict[str, Any] = {
            "model": self._model(sent.route, sent.model), "messages": read.messages,
            "model_settings": settings, "model_request_parameters": read.parameters,
        }  # fmt: skip
        return _Read(given, read.tools, memory)

    def _model(self, route: Route, name: str) -> "Model":
        if name not in self._models:
            options, key = route.options, route.secret
            chat = options.provider == "openai-compatible"
            client = PassingClient(key.value, read_completion if chat else None)
            named = {"name": f"{options.provider}:{name}", "base_url": base_of(route)}
            model = make_model(options.model_copy(update=named), key, client)
            self._models[name] = (model, client)
        return self._models[name][0]


class _Read(NamedTuple):
    given: dict[str, Any]
    """The arguments of a request in the library's words."""
    tools: dict[str, Tool]
    memory: Memory


async def _whole(sent: Sent, read: _Read, _: AsyncExitStack) -> Answer:
    response: ModelResponse = await models.model_request(**read.given)
    reply = _reply(sent, response.provider_response_id, response.model_name)
    for part in response.parts:
        if (block := block_of(part, read.tools)) is not None:
            reply.add(block)
    _end(reply, read, response)
    whole = WRITERS[sent.dialect.name](reply).whole()
    body = json.dumps([whole] if sent.asked.is_stream else whole).encode()
    return _answer(_JSON, _once(body), lambda: reply.usage)


async def _streamed(sent: Sent, read: _Read, stack: AsyncExitStack) -> Answer:
    stream = await stack.enter_async_context(models.model_request_stream(**read.given))
    first = await anext(aiter(stream), None)  # what fails before it can be sent again
    chunks = _passed(sent, read, stream, first)
    return _answer(_STREAM, chunks, lambda: usage_of(stream.get()))


async def _passed(
    sent: Sent,
    read: _Read,
    stream: "StreamedResponse",
    came: "ModelResponseStreamEvent | None",
) -> AsyncGenerator[bytes]:
    """Write a stream in another dialect; raise `Lost` if it breaks off."""
    reply = _reply(sent, stream.provider_response_id, stream.model_name)
    writer = WRITERS[sent.dialect.name](reply)
    blocks = Blocks(writer, read.tools)
    data = b"".join(writer.begun())
    try:
        while came is not None:
            data += b"".join(blocks.feed(came))
            if data:
                yield data
            came, data = await anext(aiter(stream), None), b""
    except Exception as exc:  # noqa: BLE001  # of four libraries; the table tells them apart
        answer = _refusal(sent, exc)
        said = answer.failed.said if answer.failed else ""
        yield data + sent.dialect.error(answer.status, said, is_stream=True)[2]
        return
    data += b"".join(blocks.end())
    _end(reply, read, stream.get())
    yield data + b"".join(writer.ended())


def _reply(sent: Sent, reply_id: str | None, model: str | None) -> Reply:
    wants_usage = dict_of(sent.asked.settings.get("stream_options")).get("include_usage") is True
    return Reply(reply_id or f"hud_{uuid4().hex}", model or sent.model, wants_usage)


def _end(reply: Reply, read: _Read, response: "ModelResponse") -> None:
    read.memory.keep(response)
    reply.usage, reply.stop = usage_of(response), response.finish_reason or "stop"


def _answer(kind: str, chunks: AsyncGenerator[bytes], usage: Callable[[], TokenUsage]) -> Answer:
    return Answer(200, {"content-type": kind}, [("content-type", kind)], chunks, usage=usage)


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _refusal(sent: Sent, exc: Exception) -> Answer:
    """Return the refusal that an exception stands for; raise it if it is of the connection."""
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, Lost | Redirected):
            raise cause
        cause = cause.__cause__
    failure, key = failure_of(exc), sent.route.secret
    said = key.masked(message_of(exc))
    status = getattr(exc, "status_code", None)
    if status is None and failure is Failure.PASSING:
        raise Lost(said) from exc
    status, kind, body = sent.dialect.error(status or BAD_GATEWAY, said)
    ends = failed_here(exc) if failure is Failure.UNEXPECTED else None
    failed = Failed(failure, said, getattr(exc, "retry_after", None), ends)
    return Answer(status, {"content-type": kind}, [("content-type", kind)], _once(body), failed)
