"""The kinds of agents, and their names: the core's own, then those of plugins.

A name stands for one agent (`oracle`), or, with a colon at its end, for every agent of a scheme
(`anthropic:`). Nothing but the table loads until a name is found.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field

from hud_mcp.agents.agent import Agent, Recorder
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.registry import find, load, names_of, table
from hud_mcp.values.action import Value

if TYPE_CHECKING:
    from mcp_types import Tool


SCRIPTED: Mapping[str, str] = {
    "oracle": "hud_mcp.agents.baselines:ORACLE",
    "nop": "hud_mcp.agents.baselines:NOP",
    "random": "hud_mcp.agents.baselines:RANDOM",
}
"""Agents of the core that need no model."""

PROGRAMS: Mapping[str, str] = {
    "claude-code": "hud_mcp.agents.programs:PROGRAM",
    "codex": "hud_mcp.agents.programs:PROGRAM",
    "gemini": "hud_mcp.agents.programs:PROGRAM",
}
"""Programs that are agents already, alone or with a model after a colon: `codex:MODEL`."""

ANY_MODEL = "*"
"""Each model that an agent names, at the provider whose API it speaks."""

ListTools = Callable[[str], "Awaitable[Sequence[Tool]]"]
"""Lists the tools of a session's agent, by the session's id."""


class Solver(Protocol):
    """An agent that works on the tasks of a job."""

    @property
    def name(self) -> str:
        """The agent's name in the job."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether it calls the server by itself, and not through the agent's handle."""
        ...

    async def solve(self, agent: Agent, task: Task) -> None:
        """Work on one task. If this call is cancelled, everything that it has started stops."""
        ...


class AgentOptions(Value):
    """The options of a named agent. A job's record keeps them, and a resumed job reads them."""

    name: str = Field(description="With its scheme: `anthropic:claude-…`.")


class RunModel(Protocol):
    """A model for one run of an agent that is another process: its turns are recorded.

    Attributes:
        url: The address of the gateway, without a path.
        key: The key of this run, which opens nothing else. It ends with the run.
        name: The model's name at its provider; empty if the agent names one.
        variables: Variables that tell programs the address and the key.
        refused: The bound that the run has reached, or the reason that ends the job.
    """

    url: str
    key: str
    name: str
    variables: Mapping[str, str]
    refused: HudMcpError | None


class ModelGateway(Protocol):
    """The model of a job's agents that are other processes."""

    def opened(self, agent: Agent, record: Recorder) -> AbstractAsyncContextManager[RunModel]:
        """Give a model to the run of an agent, whose turns are recorded, while the block runs."""
        ...


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The surroundings of an agent in a job.

    `environments` loads those that this process can load. `url` and `token` are for agents that
    call the server by themselves, and `gateway` is their model, if it is recorded. `permit` is
    the answer to agents that ask before they call a tool. `note` shows a line to people.
    """

    environments: Callable[[], Sequence[Environment]]
    max_steps: int | None
    list_tools: ListTools
    spent_usd: float
    note: Callable[[str], None]
    url: str = ""
    token: str = field(default="", repr=False)
    gateway: ModelGateway | None = None
    permit: str = "session"


@dataclass(frozen=True)
class AgentKind:
    """An entry of the agents' table.

    `check` raises an error if such an agent cannot work here, before anything begins. A remote
    agent is another process that calls the server by itself. A person works on one task at a time,
    for as long as it takes.
    """

    open: Callable[[Any, Workplace], AbstractAsyncContextManager[Solver]]
    check: Callable[[Any], None] = lambda _options: None
    options: type[AgentOptions] = AgentOptions
    is_remote: bool = False
    is_person: bool = False
    lists_tools: bool = False


def find_agent(name: str) -> AgentKind | None:
    """Load the kind of a named agent; None if no table has the name or its scheme."""
    scheme, colon, _ = name.partition(":")
    # The core's own names first: no plugin changes what `oracle` means.
    reference = None if colon else SCRIPTED.get(scheme)
    reference = reference or PROGRAMS.get(scheme)
    return load(reference) if reference else find("agents", f"{scheme}{colon}")


def agent_names(*, with_others: bool = False) -> tuple[str, ...]:
    """Return the names of agents that need nothing after a colon.

    The entry points of other distributions are read only `with_others`, which takes a while.
    """
    found = names_of("agents") if with_others else table("agents")
    return (*SCRIPTED, *(name for name in found if not name.endswith(":")), *PROGRAMS)


def agent_schemes() -> tuple[str, ...]:
    """Return the schemes of agents that need more after a colon, each without the colon."""
    return tuple(name.removesuffix(":") for name in table("agents") if name.endswith(":"))
