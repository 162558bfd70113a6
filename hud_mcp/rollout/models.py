"""A model in a job: made before anything runs, and given the tools of each session."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.job.agent import ModelAgent
from hud_mcp.plugins.models.job.options import ModelOptions
from hud_mcp.plugins.models.job.requests import Requests
from hud_mcp.rollout.conversation import repeat
from hud_mcp.rollout.plan import RunOptions
from hud_mcp.rollout.server import AnyServer
from hud_mcp.session.caller import ONLY

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
    """How a job goes on where limits of its model were given anew.

    Args:
        how: As its record says.
        given: `max_cost_usd`, `rpm` and `tpm`; None for what the record says.

    Raises:
        HudMcpError: No model runs it.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        return how
    if how.model is None:
        raise HudMcpError(
            "--max-cost, --rpm and --tpm are limits of a model, and no model runs this job; leave "
            "them out."
        )
    return how.model_copy(update={"model": how.model.model_copy(update=wanted)})


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
