"""The requests of a server to its client: questions to a person, which a call waits for."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import anyio
import orjson
from pydantic import ValidationError

from hud_mcp.base.text import clip
from hud_mcp.environment.tool import Exchange
from hud_mcp.errors import ActionFailed, InvalidTask
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.instance import Instance
from hud_mcp.plugins.servers.peer import INTERNAL_ERROR, Json, RemoteError, as_object, refuse
from hud_mcp.plugins.servers.reply import Masker, read_reply
from hud_mcp.record.values import utc_now
from hud_mcp.values.reply import InputNeeded, ToolReply

__all__ = ["HELD_S", "Asks", "Running"]

_CALL_S = 600.0
"""The longest call that asks nobody; the session's own limit of a step is usually shorter."""
HELD_S = 600.0
"""The longest wait for the answers."""
_LEAVE_S = 2.0
_ELICIT, _SAMPLE = "elicitation/create", "sampling/createMessage"
_INVALID_PARAMS = -32602
_ROUNDS, _ASKED = 10, 20
"""The rounds of one call, and its requests that are noted; more questions are refused."""
_CHARS, _PROGRESS_CHARS = 4096, 1000
_REQUEST_BYTES = _ANSWER_BYTES = 64 * 1024
_ACTIONS = ("accept", "decline", "cancel")


def _future() -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Running:
    """One call of a tool, and the server's requests during it.

    Attributes:
        declared: The modes of elicitation that its client has.
        asked: Its requests, as the record keeps them.
        began_at: Its start.
        recorded: Its arguments, as the record keeps them.
    """

    tool: str
    arguments: Json
    declared: frozenset[str]
    asked: list[Json] = field(default_factory=list[Json])
    began_at: datetime = field(default_factory=utc_now)
    recorded: Json = field(default_factory=dict[str, Any])
    token: str = ""
    requests: Json = field(default_factory=dict[str, Any])
    exchange: Exchange = field(default_factory=Exchange)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    question: "asyncio.Future[None]" = field(default_factory=_future)
    answers: "asyncio.Future[Json]" = field(default_factory=_future)

    def note(self, method: str, params: Json, action: str) -> Json:
        """Note a request; return the note, whose action may change."""
        noted: Json = {"method": clip(method, _CHARS), "action": action}
        for name in ("mode", "message"):
            if isinstance(text := params.get(name), str):
                noted[name] = clip(text, _CHARS)
        if len(self.asked) < _ASKED:
            self.asked.append(noted)
        return noted

    async def ask(self, requests: Json) -> Json:
        """Wait for the client's answers to some requests, one batch at a time."""
        async with self.asking:
            if not self.declared or len(self.asked) + len(requests) > _ASKED:
                raise RemoteError(_INVALID_PARAMS, "Nobody answers more questions of this call.")
            notes = {k: self.note(_ELICIT, v["params"], "none") for k, v in requests.items()}
            self.requests, self.answers = requests, _future()
            if not self.question.done():
                self.question.set_result(None)
            answers = await self.answers
            for key, noted in notes.items():
                noted["action"] = answers[key]["action"]
            return answers


class Asks:
    """The calls of a session's server, at most one at once, and the server's requests.

    Args:
        name: The server's name.
        roots: The answer to a request for roots.
        masker: Masks secrets in the requests.
        log: The session's log, for requests outside of a call.
        sample: The answer of a model, and its figures; None refuses a request for one.
    """

    def __init__(
        self,
        name: str,
        roots: Sequence[Json],
        masker: Masker,
        log: Callable[[str], None],
        sample: Callable[[Json], Awaitable[tuple[Json, Json]]] | None = None,
    ) -> None:
        self._name, self._roots, self._masker, self._log = name, list(roots), masker, log
        self._sample = sample
        self._refused = 0
        self._running: Running | None = None
        self._task: asyncio.Task[ToolReply] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> Running | None:
        """The call that waits for answers."""
        running = self._running
        return running if running is not None and running.token else None

    @property
    def is_expired(self) -> bool:
        """Whether a call waited too long, so that its question is dismissed."""
        return self.held is not None and self.held.answers.done()

    async def answer(self, method: str, params: Json) -> Json:
        """Answer a request of a server of the earlier era."""
        if method == "roots/list":
            return {"roots": self._roots}
        running = self._running
        if running is None:
            if self._refused < _ASKED:
                self._refused += 1
                text = f"{self._name} asked for {clip(method, _CHARS)} outside of a call"
                self._log(self._masker.text(text))
            return await refuse(method, params)
        if method != _ELICIT:
            noted = running.note(method, {}, "refused")
            if method != _SAMPLE or self._sample is None:
                return await refuse(method, params)
            result, figures = await self._sample(params)
            noted |= {"action": "answered", **{k: v for k, v in figures.items() if v is not None}}
            return result
        answers = await running.ask({"answer": self._checked(running, method, params)})
        return answers["answer"]

    def begin(self, tool: str, arguments: Mapping[str, Any], exchange: Exchange) -> Running:
        """Begin a call, or go on with the waiting one that its state names.

        Raises:
            InvalidTask: Another call waits, or this one is not it.
        """
        held = self.held
        if exchange.state is None:
            if held is not None:
                raise InvalidTask(
                    f"{held.tool} waits for an answer to its question. Call it again with the "
                    "same arguments, inputResponses and its requestState; the action cancel "
                    "dismisses the question."
                )
            self._running = Running(tool, dict(arguments), exchange.declared, exchange=exchange)
            return self._running
        state = exchange.state.encode("utf-8", "replace")  # any text, which may have no UTF-8
        if held is None or not secrets.compare_digest(held.token.encode(), state):
            raise InvalidTask(
                f"No call of {tool} waits under this requestState: it was answered, given up, or "
                "belongs to another session. Call the tool again without requestState."
            )
        if (held.tool, held.arguments) != (tool, dict(arguments)):
            raise InvalidTask(
                f"This requestState belongs to a call of {held.tool} with other arguments. Send "
                "the same tool and arguments as before."
            )
        answers = self._answers(held, exchange.responses or {})
        held.exchange, held.declared = exchange, exchange.declared
        held.token, held.question = "", _future()
        self._stop_timer()
        if not held.answers.done():
            held.answers.set_result(answers)
        return held

    async def perform(self, running: Running, instance: Instance) -> ToolReply | InputNeeded:
        """Make a call until its result, or until it asks; the server's error is an error reply.

        Raises:
            ActionFailed: It did not answer in time.
            EnvironmentFailed: The server is gone, or broke the protocol.
        """
        if self._task is None and not running.declared:  # it asks nobody, so it cannot outlive this
            try:
                return await self._reply(running, instance)
            finally:
                self._running = None
        task = self._task = self._task or asyncio.create_task(self._reply(running, instance))
        try:
            await asyncio.wait({task, running.question}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Shielded: else the next call would find this one.
            with anyio.CancelScope(shield=True):
                await self.give_up(at_once=True)
            raise
        if not task.done():
            running.token = secrets.token_urlsafe(16)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(HELD_S, self._dismiss, running)
            return InputNeeded(running.requests, running.token)
        self._running = self._task = None
        return task.result()

    async def give_up(self, *, at_once: bool = False) -> Running | None:
        """End the call in progress, and return it. A server that asks learns it first."""
        running, task = self._running, self._task
        self._stop_timer()
        if running is None or task is None:
            self._running = None
            return None
        if not at_once:
            self._dismiss(running)
            await asyncio.wait({task}, timeout=_LEAVE_S)
        task.cancel()
        await asyncio.wait({task}, timeout=_LEAVE_S)
        if task.done() and not task.cancelled():
            task.exception()  # nobody waits for it
        self._running = self._task = None
        return running

    def _dismiss(self, running: Running) -> None:
        """Answer a question for a client that does not, and refuse those that follow."""
        running.declared = frozenset()
        if not running.answers.done():
            running.answers.set_result({key: {"action": "cancel"} for key in running.requests})

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _reply(self, running: Running, instance: Instance) -> ToolReply:
        try:
            result = await self._converse(running, instance)
            reply = await read_reply(result, running.exchange.look, self._masker)
        except RemoteError as exc:
            reply = ToolReply(({"type": "text", "text": str(exc)},), is_error=True)
        except TimeoutError:
            text = f"{running.tool} did not answer within {_CALL_S:g} s."
            raise ActionFailed(text) from None
        if not running.asked:
            return reply
        return replace(reply, asked=tuple(running.asked), began_at=running.began_at)

    async def _pass_on(self, running: Running, params: Json) -> None:
        amount, total, text = (params.get(each) for each in ("progress", "total", "message"))
        report = running.exchange.progress
        if report is not None and isinstance(amount, int | float):
            said = self._masker.text(clip(text, _PROGRESS_CHARS)) if isinstance(text, str) else None
            await report(amount, total if isinstance(total, int | float) else None, said)

    async def _converse(self, running: Running, instance: Instance) -> Json:
        """Call a server until its result. One of the later era is called again with answers."""
        capabilities: Json = {}
        if running.declared:
            capabilities["elicitation"] = {mode: {} for mode in sorted(running.declared)}
        beside: Json = {}
        for _round in range(_ROUNDS):
            result = await instance.call(
                running.tool,
                running.arguments,
                timeout_s=None if running.declared else _CALL_S,  # a step's limit bounds it
                on_progress=partial(self._pass_on, running),
                extra=beside,
                capabilities=capabilities,
            )
            if result.get("resultType") != "input_required":
                return result
            requests = as_object(result.get("inputRequests"))
            beside = {"inputResponses": await self._responses(running, requests)}
            if isinstance(state := result.get("requestState"), str):
                beside["requestState"] = state
        raise RemoteError(INTERNAL_ERROR, f"{running.tool} asked {_ROUNDS} times in one call.")

    async def _responses(self, running: Running, requests: Json) -> Json:
        found: Json = {}
        outward: Json = {}
        names = {self._masker.text(key): key for key in requests}
        for key, name in names.items():
            request = as_object(requests[name])
            method, params = str(request.get("method")), as_object(request.get("params"))
            if method == "roots/list":
                found[name] = {"roots": self._roots}
            elif method == _ELICIT:
                outward[key] = self._checked(running, method, params)
            else:
                running.note(method, {}, "refused")
                asked = clip(method, 100)
                text = f"{running.tool} asks its client for {asked}, which this client has not."
                raise RemoteError(INTERNAL_ERROR, text)
        if len(orjson.dumps(outward)) > _ASKED * _REQUEST_BYTES:
            raise RemoteError(INTERNAL_ERROR, f"The questions of {running.tool} are too long.")
        answers = await running.ask(outward) if outward else {}
        return found | {names[key]: each for key, each in answers.items()}

    def _checked(self, running: Running, method: str, params: Json) -> Json:
        """Return an elicitation as the client gets it.

        Raises:
            RemoteError: It is none, it is too large, or the client has no such mode.
        """
        kept = {k: v for k, v in params.items() if k not in ("_meta", "task")}
        params = self._masker.value(kept)
        mode = params.get("mode", "form")
        if mode not in running.declared:
            running.note(method, params, "refused")
            text = f"This client has no elicitation in the mode {clip(str(mode), 100)!r}."
            raise RemoteError(_INVALID_PARAMS, text)
        if mode == "url":
            params = {"elicitationId": secrets.token_urlsafe(8), **params}
        request: Json = {"method": method, "params": params}
        result = {"resultType": "input_required", "inputRequests": {"answer": request}}
        try:
            if len(orjson.dumps(params)) > _REQUEST_BYTES:
                raise RemoteError(_INVALID_PARAMS, f"A question has {_REQUEST_BYTES} bytes.")
            libraries.serialize_server_result("tools/call", "2026-07-28", result)
            libraries.mcp_types.ElicitRequest.model_validate(request)
        except (ValidationError, ValueError, RecursionError, orjson.JSONEncodeError):
            running.note(method, params, "refused")
            raise RemoteError(_INVALID_PARAMS, "This is no elicitation of MCP.") from None
        return request

    def _answers(self, held: Running, given: Mapping[str, Any]) -> Json:
        """Return the answers to each open request; InvalidTask names the missing ones."""
        found: Json = {}
        for key in held.requests:
            answer = as_object(given.get(key))
            if answer.get("action") not in _ACTIONS:
                raise InvalidTask(
                    f"{held.tool} waits for inputResponses[{key!r}] with an action: accept, "
                    "decline or cancel."
                )
            found[key] = answer
        if len(orjson.dumps(found)) > _ANSWER_BYTES:
            raise InvalidTask(f"These inputResponses have more than {_ANSWER_BYTES} bytes.")
        return found
