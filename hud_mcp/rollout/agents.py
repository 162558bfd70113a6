"""The agent of a job: found by what a person or a program gives, and opened for its runs."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.agents.command import CommandAgent, command_name, missing_program
from hud_mcp.agents.given import (
    GivenAgent,
    is_reference,
    lasting_reference,
    read_agent,
    reference_name,
    reference_of,
)
from hud_mcp.agents.kind import (
    ANY_MODEL,
    AgentOptions,
    ListTools,
    Solver,
    Workplace,
    agent_names,
    agent_schemes,
    find_agent,
)
from hud_mcp.errors import HudMcpError, InvalidAgent, did_you_mean
from hud_mcp.registry import service
from hud_mcp.rollout.agent_process import check_reference, process_command
from hud_mcp.rollout.link import repeat
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.server import AnyServer
from hud_mcp.session.caller import ONLY
from hud_mcp.values.option import declared, read_options

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import Tool


_MAKERS = {"claude": "claude-code", "gpt": "codex", "chatgpt": "codex", "openai": "codex"}
"""Names of models, and the program of the model's maker that works on tasks."""


async def agent_options(name: str, of_scheme: Mapping[str, Any] | None = None) -> RunOptions:
    """Return the options of a job by its agent's name, and by options of a model.

    An agent in Python is loaded in a process of its own.

    Raises:
        InvalidAgent: There is no such agent; the text says what to write.
    """
    kind = find_agent(name)
    is_of_scheme = ":" in name and name.partition(":")[0] in agent_schemes()
    if is_of_scheme and kind is not None and not kind.is_remote:
        return RunOptions(model=_options_of_scheme(name, of_scheme or {}))
    if kind is not None:
        kind.check(AgentOptions(name=name))  # before a job begins that could not run
        return RunOptions(agent=name)
    if is_reference(name):
        await check_reference(name)
        return RunOptions(agent_python=lasting_reference(name))
    raise InvalidAgent(_unknown(name))


def model_of_program(
    how: RunOptions, model: str | AgentOptions | None, given: Mapping[str, Any]
) -> AgentOptions:
    """Return the options of the model that an agent of another process asks.

    Args:
        how: The options that name the agent.
        model: The model, as PROVIDER:MODEL; None for each that the agent names.
        given: The options of the model, by the names of their fields.

    Raises:
        HudMcpError: The agent asks no model through a gateway, or an option is wrong.
    """
    options: type[AgentOptions] = service("model options")
    first = next((each for each in declared(options) if each.name in given), None)
    shown = "--model" if first is None else first.flag
    if how.no_gateway:
        raise HudMcpError(f"{shown} needs the gateway; leave out --no-gateway.")
    if not how.is_remote and first is None:
        raise HudMcpError(f"{agent_name(how)} and {model} are both agents; give one of them.")
    if not how.is_remote:
        raise HudMcpError(f"{shown} needs a model; give --agent PROVIDER:MODEL.")
    if isinstance(model, AgentOptions):
        return model
    return read_options(options, {"name": model or ANY_MODEL, **given}, lambda each: each.flag)


async def options_of_agent(given: Any, *, isolated: bool) -> tuple[RunOptions, GivenAgent | None]:
    """Return the options of a job by a program's agent, and the agent if it works in this process.

    Raises:
        InvalidAgent: It cannot work; the text says what to write.
    """
    if isinstance(given, AgentOptions):
        return RunOptions(model=given), None
    if isinstance(given, str):
        return await agent_options(given), None
    if not isolated or given is None:
        agent = read_agent(given)
        return RunOptions(agent_object=agent.name), agent
    read_agent(given)  # it raises the error that names the agent, before a process loads it
    reference = reference_of(given)
    await check_reference(reference)
    return RunOptions(agent_python=reference), None


def agent_name(how: RunOptions) -> str:
    """Return the name of a job's agent, as lists of jobs show it."""
    if how.named_agent is not None:
        return how.named_agent.name
    if how.agent_object is not None:
        return how.agent_object
    if how.agent_python is not None:
        return reference_name(how.agent_python)
    return command_name(how.agent_command or "", Path(how.folder))


def check_agent(how: RunOptions) -> None:
    """Check that a model can be asked at all. Nothing is asked.

    Raises:
        NotInstalled: Its libraries are missing.
        HudMcpError: It cannot work: a key is missing, say, or a file has changed.
    """
    if how.named_agent is not None and how.kind is not None:
        how.kind.check(how.named_agent)
    if how.is_remote and how.model is not None:
        service("check model gateway")(how.model, how.agent)


def with_options(how: RunOptions, given: Mapping[str, Any]) -> RunOptions:
    """Return the options of a resumed job with the options of its model that were given again.

    Raises:
        HudMcpError: No model runs the job, or an option that may not change has another value.
    """
    if not given:
        return how
    if how.model is None:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise HudMcpError(f"No model runs this job; leave {flags} out.")
    may_change = {each.name for each in declared(type(how.model)) if each.option.may_change}
    for name, value in given.items():
        recorded = getattr(how.model, name)
        if value != recorded and name not in may_change:  # the same value again says nothing new
            raise HudMcpError(
                f"The model of this job has {name} {recorded!r}, and {value!r} was given. Give "
                "the same, or start another job."
            )
    return how.model_copy(update={"model": how.model.model_copy(update=dict(given))})


def check_command(command: str) -> None:
    """Check that the shell finds the program of `agent_command`; else raise `InvalidAgent`."""
    if not command.strip():
        raise InvalidAgent("--agent-command is empty; write the command for the shell.")
    if (program := missing_program(command)) is not None:
        raise InvalidAgent(
            f"--agent-command begins with {program!r}, but the shell finds no such program. "
            "Correct the name, or give its path."
        )


def open_agent(how: RunOptions, place: Workplace) -> AbstractAsyncContextManager[Solver]:
    """Make the agent of a job, and keep it while the block runs.

    Raises:
        HudMcpError: The agent needs a server over HTTP, or cannot work.
    """
    if how.kind is not None and (place.url or not how.is_remote):
        return how.kind.open(how.named_agent, place)
    reference = how.agent_python
    command = how.agent_command if reference is None else process_command(reference)
    if command is None or not place.url:
        raise HudMcpError("A job is run by a built-in agent, or by a command over HTTP.")
    folder = Path(how.folder)
    return nullcontext(
        CommandAgent(
            command,
            place,
            folder=folder if folder.is_dir() else None,  # a resumed job may find its folder gone
            title="command" if reference is None else "process",
        )
    )


def tools_of(server: AnyServer) -> ListTools:
    """Return a function that lists the tools of a session's agent, by the session's id."""

    async def list_tools(session: str) -> "Sequence[Tool]":
        meta: dict[str, Any] = {ONLY: session}
        listed: list[Tool] = []
        cursor: str | None = None
        while True:

            async def ask(client: "Client", cursor: str | None = cursor) -> Any:
                return await client.list_tools(
                    cursor=cursor,
                    meta=meta,  # pyright: ignore[reportArgumentType]  # its type names what the SDK uses
                    cache_mode="bypass",  # the list differs from this process's own
                )

            page: Any = await repeat(lambda _suspect, ask=ask: server.ask(ask))
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return listed

    return list_tools


def _options_of_scheme(name: str, given: Mapping[str, Any]) -> AgentOptions:
    kind = find_agent(name)
    try:
        return read_options(
            AgentOptions if kind is None else kind.options,
            {"name": name, **given},
            lambda option: option.flag,
        )
    except HudMcpError as exc:
        # Some texts of options end with a stop, and some without.
        raise InvalidAgent(f"{str(exc).removesuffix('.')}.") from None


def _unknown(name: str) -> str:
    schemes, known = _listed(agent_schemes()), agent_names(with_others=True)
    model = f"A model is an agent by --agent PROVIDER:MODEL, where PROVIDER is {schemes}"
    if (program := _MAKERS.get(name.lower())) is not None:
        return f"There is no agent {name!r}. {model}. {program}, the program, is --agent {program}."
    return (
        f"There is no agent {name!r}.{did_you_mean(name, known)} There are {_listed(known)}; "
        f"one of yours in Python, as path/to/agent.py:NAME or package.module:NAME; and any "
        f"program, by --agent-command. {model}."
    )


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
