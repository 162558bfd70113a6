"""Two servers on the same rows: the second job of `eval --against`, and what tools were used."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import replace

from hud_mcp.cli.output import cell, make_console, make_table, print_table
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.plugins.servers.source import read
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.record.job import Job
from hud_mcp.rollout.agents import agent_name
from hud_mcp.rollout.prepared import JobRequest

__all__ = ["pair", "print_use"]

_NAMED = re.compile(r"(?:([\w.-]+)=)?(.+)", re.DOTALL)
_SEED_BITS = 31


def pair(against: str, request: JobRequest) -> tuple[JobRequest, JobRequest]:
    """Return two jobs of the same rows and seeds; the second one is against another server.

    Args:
        against: `NAME=SOURCE`, or a source. `mcp:COMMAND` replaces the command of the first job's
            server, and `mcp:without=TOOL` leaves a tool out. Any other source has environments.
        request: The first job.

    Raises:
        InvalidEnvironment: It is not clear which server is replaced.
        SourceNotFound: A source does not exist.
    """
    found = _NAMED.fullmatch(against)
    name, source = found.groups() if found else (None, against)
    options = request.options
    seed = secrets.randbits(_SEED_BITS) if options.seed is None else options.seed
    first = options.model_copy(update={"seed": seed})
    title = options.name or f"{request.tasks.name} {agent_name(options.recorded())}"
    sources = (source,)
    if source.startswith("mcp:") and "in" not in read(source, in_place=True).options:
        sources = _in_place(source, request)
    update = {"name": f"{title}: {name or source}", "sources": sources}
    second = first.model_copy(update=update)
    return replace(request, options=first), replace(request, options=second, job_id=None)


def _in_place(source: str, request: JobRequest) -> tuple[str, ...]:
    """Return the first job's sources, with another command for its one server."""
    own = request.options.sources
    served = [
        s for s in own if any(isinstance(e.world, ToolServer) for e in load_environments([s]))
    ]
    if len(served) != 1:
        names = ", ".join(served) or "none"
        raise InvalidEnvironment(
            f"--against {source!r} replaces the server of one environment. Of --env, those with a "
            f"server are: {names}. Name one by --env FILE or --env FILE:NAME."
        )
    written = read(source, in_place=True)
    other = replace(written, options={**written.options, "in": served[0]}).text
    return tuple(other if each == served[0] else each for each in own)


def print_use(jobs: Sequence[Job], uses: Sequence[Json | None]) -> None:
    """Print the servers of jobs with their figures, then the calls of each tool by job."""
    if not any(uses):
        return
    console = make_console()
    right = ("tools", "tokens", "calls/run", "errors/run", "steps to success")
    table = make_table("job", "server", *right, right=right)
    heads: list[str] = []
    for place, (job, use) in enumerate(zip(jobs, uses, strict=True), 1):
        figures = _figures(use) if use else ["no server answered", *("" for _ in right)]
        table.add_row(cell(job.id), *map(cell, figures))
        heads.append(cell(f"{place}. {figures[0]}").plain)
    console.print()
    print_table(console, table, whole="job", least=("steps to success", "tools"))
    names = dict.fromkeys(tool["name"] for use in uses if use for tool in use["tools"])
    rows = {name: [_calls(name, use) for use in uses] for name in names}
    calls = make_table("tool", *heads)
    for name, said in rows.items():
        if set(said) != {_UNUSED}:
            calls.add_row(cell(name), *map(cell, said))
    console.print()
    print_table(console, calls, whole="tool")
    for place, use in enumerate(uses, 1):
        if use and (of := use.get("sampled")):
            times = "once" if of["requests"] == 1 else f"{of['requests']:,} times"
            told = [form.format(of[name]) for name, form in _OF_MODEL.items() if name in of]
            text = f"{place}. asked a model {times}{': ' * bool(told)}{', '.join(told)}"
            console.print(cell(f"{text}, apart from the agent's."), soft_wrap=True)
    if unused := [name for name, said in rows.items() if set(said) == {_UNUSED}]:
        text = f"Listed, and never called: {', '.join(unused)}."
        console.print(cell(text, "dim"), soft_wrap=True)
    text = (
        "tokens: of the list of tools in each request of a host, four characters as one. steps to "
        "success: the median of the runs that passed."
    )
    console.print(text, style="dim", soft_wrap=True)


_UNUSED = "not called"
_OF_MODEL = {"tokens": "{:,} tokens", "cost_usd": "${:.4f}"}


def _figures(use: Json) -> list[str]:
    servers, steps = use["servers"], use["steps_to_success"]
    return [
        ", ".join(each["name"] for each in servers),
        ", ".join(str(each["count"]) for each in servers),
        ", ".join(f"{each['tokens']:,}" for each in servers),
        *(f"{use[name] / max(1, use['runs']):.1f}" for name in ("calls", "errors")),
        "" if steps is None else f"{steps:g}",
    ]


def _calls(name: str, use: Json | None) -> str:
    found = [each for each in use["tools"] if each["name"] == name] if use else []
    calls, errors = (found[0]["calls"], found[0]["errors"]) if found else (0, 0)
    if not calls:
        return _UNUSED if found else "not listed" if use else ""
    return f"{calls} call{'' if calls == 1 else 's'}{f', {errors} failed' if errors else ''}"
