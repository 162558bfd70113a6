"""The gateway of a job: one address on loopback, with a key for each run."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio import CancelScope, to_thread

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import Workplace
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.choice import Choice, choose
from hud_mcp.plugins.models.gateway.credential import RunKeys, new_key
from hud_mcp.plugins.models.gateway.dialects import Action, Unreadable
from hud_mcp.plugins.models.gateway.dialects.dialect import Dialect
from hud_mcp.plugins.models.gateway.dialects.known import DIALECTS, dialect_of
from hud_mcp.plugins.models.gateway.exchange import Exchange, route_of
from hud_mcp.plugins.models.gateway.http1 import (
    HOST,
    BadRequest,
    Bounds,
    Connection,
    Listener,
    Request,
    listening,
)
from hud_mcp.plugins.models.gateway.refusals import (
    BAD_GATEWAY,
    DOWN,
    NO_KEY,
    NOT_FOUND,
    PATHS,
    TOO_MANY,
    Refused,
    estimate,
    list_models,
    refuse,
)
from hud_mcp.plugins.models.gateway.run import JobModels, Recorder, Run
from hud_mcp.plugins.models.gateway.upstream import Lost, Redirected
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.plugins.models.spending import Rates, Spending

__all__ = ["Gateway", "OpenRun", "gateway_of", "open_gateway"]

logger = logging.getLogger(__name__)

_LARGE_BYTES = 1024 * 1024
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
         "OPENAI_COMPATIBLE_API_KEY")  # fmt: skip


@dataclass
class OpenRun:
    """The model of one run, while it is open.

    Attributes:
        url: The address, without a path.
        key: The key of the run.
        name: The name of its model; empty if the agent names one.
    """

    url: str
    key: str = field(repr=False)
    name: str
    _run: Run

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that tell programs the address and the key."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "HUD_MCP_MODEL": self.name,
            **dict.fromkeys(_KEYS, self.key),
        }

    @property
    def refused(self) -> HudMcpError | None:
        """The first bound that the run has reached, or the reason that ends it."""
        return self._run.refused


class Gateway:
    """The models of a job, for agents that are other processes; it is open in its block."""

    def __init__(self, job: JobModels, name: str, listener: Listener) -> None:
        self._job = job
        self._name = name
        self._listener = listener
        self.keys = RunKeys[Run]()

    @property
    def spending(self) -> Spending:
        """The cost of the job."""
        return self._job.spending

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://{HOST}:{self._listener.port}"

    @asynccontextmanager
    async def opened(self, agent: Agent, record: Recorder) -> AsyncGenerator[OpenRun]:
        """Give a run its key while the block runs; its end breaks off all that is under way.

        An agent that goes on after many refusals in a row ends the block.
        """
        key, run = new_key(), Run(self._job, agent, record)
        self.keys.add(key, run)
        try:
            with CancelScope() as scope:
                run.end = scope.cancel
                yield OpenRun(self.url, key, self._name, run)
        finally:
            self.keys.end(key)
            await run.aclose()


@asynccontextmanager
async def gateway_of(
    choice: Choice, options: ModelOptions | None = None, *, spent_usd: float = 0.0,
    max_turns: int | None = None, bounds: Bounds = Bounds(),  # noqa: B008  # it is frozen
) -> AsyncGenerator[Gateway]:  # fmt: skip
    """Open the gateway of a job.

    Args:
        choice: Its providers.
        options: The limits of its models.
        spent_usd: What the job has cost before.
        max_turns: The most turns of one run.
        bounds: The bounds of its connections.

    """
    limits = options or next((route.options for route in choice.routes.values()), None)
    if limits is None:
        spending, rates = Spending(spent_usd=spent_usd), Rates()
    else:
        spending = Spending(
            limit_usd=limits.max_cost_usd,
            per_run_usd=limits.max_cost_per_run_usd,
            spent_usd=spent_usd,
        )
        rates = Rates(limits.rpm, limits.tpm)
    job = JobModels(choice.routes, spending, rates, max_turns, bounds)
    server = _Server(job)
    names = choice.models
    try:
        async with listening(server.serve, bounds) as listener:
            server.listener = listener
            server.gateway = Gateway(job, names[0] if len(names) == 1 else "", listener)
            server.names = names
            yield server.gateway
    finally:
        await job.upstream.aclose()
        await job.translator.aclose()


def checked_choice(options: ModelOptions | None, agent: str | None) -> Choice:
    """Return the providers of a job's agent, before anything is asked.

    Raises:
        HudMcpError: A key is missing, or a limit cannot be kept, as a price is not known.
    """
    choice = choose(options, agent)
    if options is not None and not choice.routes:
        raise HudMcpError(
            f"The model's limits cannot be kept: {choice.why_not}. Set the key in the "
            "environment of this command, or leave them out."
        )
    for route in choice.routes.values():
        if route.options.model in choice.models:
            route.prices_of(route.options.model).need()
    return choice


@asynccontextmanager
async def open_gateway(
    options: ModelOptions | None, agent: str | None, place: Workplace
) -> AsyncGenerator[Gateway | None]:
    """Open the gateway of a job; None if the agent's model cannot be known.

    Args:
        options: The model that is named, with its limits.
        agent: The name of a program; None for a command or a function.
        place: The surroundings of the job's agents.

    Raises:
        HudMcpError: A limit cannot be kept.
    """
    choice = checked_choice(options, agent)
    if not choice.routes:
        place.note(f"The turns of the agent's model are not recorded: {choice.why_not}.")
        yield None
        return
    max_turns = None if options is None else options.max_turns
    async with gateway_of(
        choice, options, spent_usd=place.spent_usd, max_turns=max_turns
    ) as gateway:
        yield gateway


class _Server:
    """The application of the listener: it finds the run and the dialect of a request."""

    listener: Listener
    gateway: Gateway
    names: tuple[str, ...]

    def __init__(self, job: JobModels) -> None:
        self._job = job

    async def serve(self, request: Request, connection: Connection) -> None:
        """Serve one request."""
        found = dialect_of(request.method, request.path, request.headers)
        dialect, action = found or (_nearest(request), None)
        logger.debug("%s %s", request.method, request.path)
        try:
            if action == "hello":
                await connection.reply(200, [])
                return
            await self._admitted(request, connection, dialect, action)
        except (Refused, BadRequest) as exc:
            await refuse(connection, dialect, exc.status, str(exc))
        except Unreadable as exc:
            await refuse(connection, dialect, 400, str(exc))

    async def _admitted(
        self, request: Request, connection: Connection, dialect: Dialect, action: Action | None
    ) -> None:
        run, was_one = self.gateway.keys.find(request.headers, request.query)
        if run is None:
            raise Refused("This run is over." if was_one else "No key of a run was given.", NO_KEY)
        if action is None:
            raise Refused(f"There is no {request.path}; there are {', '.join(PATHS.values())} "
                          "and /v1/models.", NOT_FOUND)  # fmt: skip
        self.listener.admit(connection)
        if not run.admit(connection):
            raise Refused("This run has too many connections.", TOO_MANY)
        if action == "models":
            await list_models(connection, dialect, request, self.names)
            return
        with run.exchange() as may_begin:
            if not may_begin:
                raise Refused("This run has too many requests under way.", TOO_MANY)
            body = await connection.body()
            if action == "count":
                await self._count(run, connection, dialect, request, body)
                return
            if len(body) < _LARGE_BYTES:
                exchange = Exchange(run, dialect, request, body)
            else:  # the other runs go on meanwhile
                exchange = await to_thread.run_sync(Exchange, run, dialect, request, body)
            await exchange.pass_on(connection)

    async def _count(
        self, run: Run, connection: Connection, dialect: Dialect, request: Request, body: bytes
    ) -> None:
        """Pass a count of tokens on: it is no turn and costs nothing, and counts in the rate."""
        asked = dialect.request(f"{request.path}?{request.query}", body, request.headers)
        route, model = route_of(run, dialect, asked.model)
        path = request.path
        if self._job.ways.is_translated(route, dialect.name):
            await estimate(connection, dialect, asked)
            return
        if model != asked.model:
            path, body = dialect.with_model(path, body, model)
        with run.pauses.pause():
            await self._job.rates.admit(0)
        try:
            async with self._job.upstream.asked(route, dialect.name, request, path, body) as answer:
                told = await answer.whole()
        except Redirected as exc:
            raise Refused(f"{exc}.", BAD_GATEWAY) from None
        except Lost as exc:
            raise Refused(f"The provider does not answer: {exc}.", DOWN) from None
        if dialect.name in route.may_speak and answer.status in (404, 405):
            await estimate(connection, dialect, asked)
            return
        await connection.reply(answer.status, answer.passing, told)


def _nearest(request: Request) -> Dialect:
    """Return the dialect whose form a refusal has, where the path is of none."""
    headers = request.headers
    if "x-goog-api-key" in headers or request.path.startswith("/v1beta"):
        return DIALECTS["gemini"]
    is_anthropic = "anthropic-version" in headers or request.path.startswith("/v1/messages")
    return DIALECTS["messages" if is_anthropic else "chat"]
