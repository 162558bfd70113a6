"""A model in a job: made before anything runs, and given the tools of each session."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.job.agent import ModelAgent
from hud_mcp.plugins.models.job.options import ModelOptions
from hud_mcp.plugins.models.job.requests import Requests
from hud_mcp.rollout.conversation import repeat
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.server import AnyServer
from hud_mcp.session.caller import ONLY
from hud_mcp.values.option import declared

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import Tool

__all__ = ["check_model", "model_agent", "with_limits"]


def check_model(how: RunOptions) -> None:
    """Find out whether a job's model can be asked at all; nothing is asked.

    Raises:
        NotInstalled: Its libraries are missing.
        HudMcpError: Its key is missing, its system prompt cannot be read or is another one, or a
            limit of its cost cannot be kept.
    """
    if how.model is not None:
        how.model.system_text()
        Requests(how.model)


def with_limits(how: RunOptions, given: Mapping[str, Any]) -> RunOptions:
    """Return how a resumed job goes on, with the options of its model that were given again.

    Args:
        how: The options in its record.
        given: Values of the fields of `ModelOptions`.

    Raises:
        HudMcpError: No model runs it, or the value of an option that may not change is another.
    """
    if not given:
        return how
    options = {each.name: each for each in declared(ModelOptions)}
    if how.model is None:
        flags = ", ".join(options[name].flag for name in given if name in options)
        raise HudMcpError(f"No model runs this job; leave {flags} out.")
    for name, value in given.items():
        recorded = getattr(how.model, name)
        may_change = name in options and options[name].option.may_change
        if value != recorded and not may_change:
            raise HudMcpError(
                f"The model of this job has {name} {recorded!r}, and {value!r} was given. Give "
                "the same, or start another job."
            )
    return how.model_copy(update={"model": how.model.model_copy(update=dict(given))})


def model_agent(options: ModelOptions, server: AnyServer, *, spent_usd: float) -> ModelAgent:
    """The agent that a model is, with what its job has cost before.

    Raises:
        HudMcpError: As for `check_model`.
    """

    async def list_tools(session: str) -> "Sequence[Tool]":
        meta: dict[str, Any] = {ONLY: session}
        listed: list[Tool] = []
        cursor: str | None = None
        while True:

            async def ask(client: "Client", cursor: str | None = cursor) -> Any:
                return await client.list_tools(
                    cursor=cursor,
                    meta=meta,  # pyright: ignore[reportArgumentType]  # its type names what the SDK uses
                    cache_mode="bypass",  # its list is another one than this process's own
                )

            page: Any = await repeat(lambda _suspect, ask=ask: server.ask(ask))
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return listed

    return ModelAgent(Requests(options, spent_usd=spent_usd), options, list_tools=list_tools)
