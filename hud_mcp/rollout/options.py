"""The options of a job: their one declaration, for `hud-mcp eval` and for `evaluate`."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, cast

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, field_validator

from hud_mcp.agents.kind import ANY_MODEL, AgentKind, AgentOptions, find_agent
from hud_mcp.base.egress import read_hosts
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.contexts import SELECTORS
from hud_mcp.loading.protocols import PROTOCOLS
from hud_mcp.record.job import Job
from hud_mcp.registry import service
from hud_mcp.values.action import Value
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat
from hud_mcp.values.option import Declared, Option, declared, input_reader, read_options

_OPTIONS = "options"
"""The key of the options in a job's metadata."""

EACH = 4
"""Runs at once for each worker, if nobody says another number."""

AUTO = "auto"
"""The cluster that `RAY_ADDRESS` names, or that runs here; else one of this machine."""


def read_workers(given: int | str | None) -> int | None:
    """Read a number of workers: `auto` is one a core; None the one server that every job has.

    Raises:
        HudMcpError: It is none of these.
    """
    if given is None:
        return None
    if given == "auto":
        # A container may have fewer than the machine.
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    text = str(given)
    if not text.isdecimal() or int(text) < 1:
        raise HudMcpError(f"workers is {given!r}; give a number from 1, or 'auto' for one a core.")
    return int(text)


def read_cluster(given: Any) -> str | None:
    """Read the address of a cluster: `auto` or True finds one; None or False is no cluster.

    Raises:
        HudMcpError: The value is none of these.
    """
    if given is None or given is False:
        return None
    if given is True or given == "":
        return AUTO
    if not isinstance(given, str) or any(char.isspace() for char in given):
        raise HudMcpError(
            f"ray is {given!r}; give True for the cluster that is there, or an address such as "
            "10.0.0.1:6379 or ray://10.0.0.1:10001."
        )
    return given


PERMITS = ("session", "all", "none", "ask")
"""The answers to agents that ask before they call a tool; `ask` asks a person."""


def _texts(given: Any) -> Any:
    return tuple(map(str, (given,) if isinstance(given, str | Path) else given))


class RunOptions(Value):
    """The options that a job's record keeps, so that it can be resumed with nothing else."""

    agent: str | None = Field(default=None, description="A built-in agent.")
    agent_command: Annotated[str | None, Option("Agent (give one)", metavar="COMMAND")] = Field(
        default=None,
        description="A program as the agent. It gets HUD_MCP_URL, HUD_MCP_TOKEN and "
        "HUD_MCP_PROMPT. Pass secrets in variables: the record keeps the command.",
    )
    agent_python: str | None = Field(
        default=None,
        description="Or one in Python, with a process of its own: `path.py:name`, `module:name`.",
    )
    agent_object: str | None = Field(
        default=None,
        description="Or the name of an agent in Python that worked in its program's own process.",
    )
    model: SerializeAsAny[AgentOptions] | None = Field(
        default=None, description="Or a model; beside another agent, the model that it asks."
    )
    no_gateway: Annotated[bool, Option("Agent (give one)", is_rare=True)] = Field(
        default=False, description="Leave out the record of an agent's turns, and its budget."
    )
    permit: Annotated[
        str, Option("Agent (give one)", metavar="WHAT", choices=PERMITS, is_rare=True)
    ] = Field(
        default=PERMITS[0],
        description="The calls that an agent of acp: may make: of the session's tools, or others.",
    )
    folder: str = Field(default="", description="Where the run began; commands run there.")
    sources: Annotated[
        tuple[str, ...],
        BeforeValidator(_texts),
        Option("Tasks", flag="--env", keyword="env", metavar="SOURCE", may_change=True),
    ] = Field(default=(), description="The source of the environments.")
    contexts: Annotated[str | None, Option("Tasks", metavar="FILE|sample:N")] = Field(
        default=None,
        description="Contexts of a file, or N random ones; see also `context_selector`.",
    )
    context_selector: Annotated[
        str | None, Option("Tasks", metavar="HOW", choices=SELECTORS, is_rare=True)
    ] = Field(default=None, description=f"The context of a task: {', '.join(SELECTORS)}.")
    protocol: Annotated[
        str | None, Option("Tasks", metavar="NAME", choices=tuple(sorted(PROTOCOLS)))
    ] = Field(
        default=None, description=f"Run rows as their authors do: {' or '.join(sorted(PROTOCOLS))}."
    )
    allow: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda given: input_reader(read_hosts)(_texts(given))),
        Option("Tasks", metavar="HOST"),
    ] = Field(
        default=(),
        description="Let rows open this host of the machine or its network, as localhost:8080.",
    )
    seed: Annotated[int | None, Option("Runs", metavar="N")] = Field(
        default=None, ge=0, lt=2**63, description="Derive the runs' seeds from this number."
    )
    max_concurrent: Annotated[int, Option("Runs", metavar="N", may_change=True)] = Field(
        default=EACH, ge=1, description="The most runs at one time."
    )
    max_steps: Annotated[int | None, Option("Runs", metavar="N")] = Field(
        default=None, ge=1, description="Stop the agent after this number of steps."
    )
    timeout_s: Annotated[float, Option("Runs", flag="--timeout", metavar="SECONDS")] = Field(
        default=600.0, gt=0, allow_inf_nan=False, description="The agent's time for one run."
    )
    retries: Annotated[int, Option("Runs", metavar="N", may_change=True)] = Field(
        default=0, ge=0, description="Repeats of a run that the machine failed."
    )
    workers: Annotated[
        int | None,
        BeforeValidator(input_reader(read_workers)),
        Option("Runs", metavar="N|auto", may_change=True),
    ] = Field(
        default=None, ge=1, description="Servers that share the runs; auto is one for each core."
    )
    ray: Annotated[
        str | None,
        BeforeValidator(input_reader(read_cluster)),
        Option("Runs", metavar="[ADDRESS]", bare="auto", may_change=True),
    ] = Field(default=None, description="Run servers on a Ray cluster (put after TASKSET).")
    in_process: Annotated[bool, Option("Runs")] = Field(
        default=False, description="Run environments in this process, with no server."
    )
    image: Annotated[ImageFormat, Option("Record and report", is_rare=True)] = Field(
        default=DEFAULT_FORMAT, description="Format of pictures."
    )

    @property
    def is_remote(self) -> bool:
        """Whether its agent is another process that calls the server over HTTP by itself."""
        if self.kind is not None:
            return self.kind.is_remote
        return self.agent_command is not None or self.agent_python is not None

    @property
    def named_agent(self) -> AgentOptions | None:
        """The options of an agent that has a name; None for a command or one in Python."""
        if self.agent is not None:
            return AgentOptions(name=self.agent)
        return self.model if self.agent_command is self.agent_python is None else None

    @property
    def kind(self) -> AgentKind | None:
        """The kind of an agent that has a name; None for a command or one in Python."""
        return None if self.named_agent is None else find_agent(self.named_agent.name)

    @property
    def lists_tools(self) -> bool:
        """Whether its agent asks for the list of a session's tools."""
        return self.kind is not None and self.kind.lists_tools

    @field_validator("model", mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any) -> Any:
        # A record has plain fields; the plugin of the scheme knows their class.
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        kind = find_agent(str(fields.get("name")))
        if fields.get("name") == ANY_MODEL:
            return service("model options").model_validate(fields)
        if kind is None:
            # Of a distribution that may be gone.
            raise ValueError(f"no plugin has an agent {fields.get('name')!r}")
        return kind.options.model_validate(fields)

    @staticmethod
    def are_in(job: Job) -> bool:
        """Whether a job's record has its options."""
        return _OPTIONS in job.metadata

    @property
    def known_agent(self) -> str | None:
        """The agent whose reward rows tell; None for any other."""
        return self.agent if self.agent in ("oracle", "nop") else None

    @classmethod
    def of(cls, job: Job) -> "RunOptions":
        """Read the options of a recorded job; raise `HudMcpError` if the record has none."""
        # Such a job has no options, and another way back.
        if job.trusts_agent and not cls.are_in(job):
            raise HudMcpError(
                f"Job {job.id} resumes only in the program of its agent: Taskset.run(agent, "
                f"resume={job.id!r}), or run_job(…, resume={job.id!r})."
            )
        try:
            return cls.model_validate(job.metadata.get(_OPTIONS))
        except ValidationError:
            raise HudMcpError(
                f"Job {job.id} cannot be resumed, because its record has no options. Only jobs "
                "of `hud-mcp eval` can be resumed."
            ) from None


class JobOptions(RunOptions):
    """The options of a job as they are given; `model_fields_set` names those that were."""

    pattern: Annotated[
        str | None, Option("Tasks", flag="--filter", keyword="filter", metavar="PATTERN")
    ] = Field(
        default=None,
        description="Only tasks whose id, environment or template matches a shell pattern or "
        "contains this text.",
    )
    split: Annotated[str | None, Option("Tasks", metavar="NAME")] = Field(
        default=None, description="Only tasks of this split or difficulty."
    )
    group: Annotated[int, Option("Runs", metavar="N")] = Field(
        default=1, ge=1, description="Runs of each task."
    )
    name: Annotated[str | None, Option("Record and report", metavar="NAME")] = Field(
        default=None, description="The job's name."
    )

    @property
    def own_timeout_s(self) -> float | None:
        """The bound of a run that somebody gave; no protocol changes it."""
        # A default is no wish.
        return self.timeout_s if "timeout_s" in self.model_fields_set else None

    @property
    def changed(self) -> dict[str, Any]:
        """The given values that a resumed job takes in place of its record's."""
        return {
            each.name: getattr(self, each.name)
            for each in declared(type(self))
            if each.option.may_change and each.name in self.model_fields_set
        }

    def recorded(self) -> RunOptions:
        """Return what the record keeps of these."""
        return RunOptions(**{name: getattr(self, name) for name in RunOptions.model_fields})


class JobKeywords(TypedDict, total=False):
    """The keywords of `evaluate` for type checkers; `JobOptions` declares what each means."""

    agent_command: str | None
    env: str | Path | Sequence[str | Path]
    contexts: str | None
    context_selector: str | None
    protocol: str | None
    allow: Sequence[str]
    seed: int | None
    max_concurrent: int | None
    max_steps: int | None
    timeout_s: float | None
    retries: int | None
    workers: int | Literal["auto"] | None
    ray: str | bool | None
    in_process: bool
    image: ImageFormat
    no_gateway: bool
    permit: str
    filter: str | None
    split: str | None
    group: int
    name: str | None


def read_job_options(
    given: Mapping[str, Any], *, in_python: bool, resumed: bool = False
) -> JobOptions:
    """Read the options of a job by the names of their fields.

    Raises:
        HudMcpError: A value is wrong, two do not go together, or another value would make a
            resumed job another one.
    """
    names = {each.name: _spelled(each, in_python=in_python) for each in declared(JobOptions)}
    if resumed:
        for each in declared(JobOptions):
            if each.name in given and not each.option.may_change:  # else it would be another job
                raise HudMcpError(recorded_already(names[each.name]))
    options = read_options(JobOptions, given, partial(_spelled, in_python=in_python))
    if options.context_selector is not None and options.contexts is None:
        raise HudMcpError(f"{names['context_selector']} needs {names['contexts']}; give both.")
    return options


def _spelled(option: Declared, *, in_python: bool) -> str:
    return option.keyword if in_python else option.flag


def recorded_already(name: str) -> str:
    """Return the refusal of an option that a resumed job has in its record."""
    return (
        f"{name} comes from the record of the job that is resumed; leave it out, or start "
        "another job."
    )
