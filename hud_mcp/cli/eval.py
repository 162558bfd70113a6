"""`hud-mcp eval`: an agent through a taskset, with progress, a table and a report."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click
from rich.console import Console

from hud_mcp.agents.kind import agent_names
from hud_mcp.base.secrets import keep_to_itself
from hud_mcp.cli.help import Command
from hud_mcp.cli.interruption import Interruption, watched_signals
from hud_mcp.cli.jobs import compare
from hud_mcp.cli.options import (
    complete_jobs,
    complete_sources,
    complete_tasksets,
    field_groups,
    field_options,
    given_fields,
    in_store,
    no_record_option,
    store_option,
)
from hud_mcp.cli.output import asks_here, cell, make_console
from hud_mcp.cli.process import raise_file_limit, without_collecting
from hud_mcp.cli.progress import Progress
from hud_mcp.cli.results import Results, load_results, print_results
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.sets import find_sets
from hud_mcp.record.job import Job
from hud_mcp.record.place import check_place
from hud_mcp.registry import service
from hud_mcp.rollout.agents import agent_options, check_command, model_of_program
from hud_mcp.rollout.evaluation import Evaluation, report_folder, with_workers
from hud_mcp.rollout.options import JobOptions, RunOptions, read_job_options, recorded_already
from hud_mcp.rollout.prepared import JobRequest, Prepared, begin_job, resume_job
from hud_mcp.rollout.run import Watch
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store, opened_store
from hud_mcp.store.files import make_private_file, make_private_folder
from hud_mcp.values.option import declared
from hud_mcp.values.outcome import NOT_BEGUN, Outcome

_MODEL: type[Any] = service("model options")
_BY_HAND = {
    "Agent (give one)": ["agent"],
    "Runs": ["resume", "against"],
    "Record and report": ["report_path", "view", "verbose"],
}
_NAMES = agent_names()


def _groups() -> dict[str, list[str]]:
    groups = {"Agent (give one)": [], "Tasks": [], **field_groups(_MODEL, JobOptions)}
    return {name: [*_BY_HAND.get(name, []), *found] for name, found in groups.items()}


@dataclass(frozen=True)
class _Call:
    """The options of the command that are no options of the job.

    `of_model` has the options of its model that were given to a resumed job.
    """

    options: JobOptions
    of_model: Mapping[str, Any]
    tasksets: Sequence[str]
    store: str | None
    resume: str | None
    against: str | None
    report: Path | None
    view: bool
    verbose: bool


@click.command(
    "eval",
    Command,
    groups=_groups(),
    epilog="Exit status: 0 if every run ended as expected. 1 if some did not, or the job did "
    "not begin. 2 for a wrong option. 130 or 143 after Ctrl-C or SIGTERM.",
)
@click.argument("tasksets", nargs=-1, metavar="TASKSET...", shell_complete=complete_tasksets)
@click.option(
    "--agent",
    metavar="NAME",
    help=f"{', '.join(_NAMES)}; PROVIDER:MODEL; or one in Python, path/to/agent.py:NAME.",
)
@click.option("--model", metavar="PROVIDER:MODEL", hidden=True)
@field_options(_MODEL)
@field_options(JobOptions, {"sources": complete_sources})
@click.option(
    "--resume",
    metavar="JOB",
    shell_complete=complete_jobs,
    help="Continue a job: run what is missing in it.",
)
@click.option(
    "--against", metavar="SOURCE", help="Run the rows on another server too, and compare."
)
@store_option
@no_record_option
@click.option(
    "--report",
    "report_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The report's file.",
)
@click.option("--view", is_flag=True, help="Serve the job's page while it runs.")
@click.option("--verbose", is_flag=True, help="Print a line for each run, even on a terminal.")
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Run an agent through a TASKSET: a .jsonl, .json or .py file, or a shipped set's name.

    `hud-mcp tasks` lists the sets. Several tasksets form one job. A run ends as expected if it was
    graded. A run of the oracle or the nop must also get the reward in the row's `validation`. The
    table shows that reward as `expected`.
    """
    call = _read(ctx, options)
    configure_logging("error")
    raise_file_limit()
    if call.resume is None and asks_here():
        service("offer browser")(call.options.sources, call.tasksets)
    keep_to_itself()
    sys.exit(anyio.run(_main, call))


def _read(ctx: click.Context, options: Mapping[str, Any]) -> _Call:
    """Read the options before anything is loaded; raise UsageError if they do not go together."""
    resume = options["resume"]
    of_model = given_fields(ctx, _MODEL)
    try:
        job = _read_new(ctx, of_model) if resume is None else _read_resumed(ctx, of_model)
    except HudMcpError as exc:
        raise click.UsageError(str(exc), ctx) from exc
    return _Call(
        anyio.run(partial(with_workers, job, resumed=resume is not None)),
        of_model,
        options["tasksets"],
        options["store"],
        resume,
        options["against"],
        options["report_path"],
        options["view"],
        options["verbose"],
    )


def _read_new(ctx: click.Context, of_model: Mapping[str, Any]) -> JobOptions:
    if not ctx.params["tasksets"]:
        raise HudMcpError("Name a TASKSET, or --resume JOB; `hud-mcp tasks` lists sets.")
    given = given_fields(ctx, JobOptions)
    name, model = ctx.params["agent"], ctx.params["model"]
    if name is None and "agent_command" not in given:
        name, model = model, None
    one = (
        f"Give one agent: --agent {', '.join(_NAMES)}, PROVIDER:MODEL or path/to/agent.py:NAME; or "
        "--agent-command COMMAND."
    )
    if (name is not None) + ("agent_command" in given) != 1:
        raise HudMcpError(one)
    options = read_job_options(given, in_python=False)
    if options.agent_command is not None:
        check_command(options.agent_command)
    how: RunOptions = options
    if name is not None:
        how = anyio.run(agent_options, name, of_model)
    if model is not None and not how.is_remote:
        raise HudMcpError(f"{name} asks no other model, so leave out --model {model}. {one}")
    agent = {each: getattr(how, each) for each in how.model_fields_set}
    if (of_model or model is not None) and "model" not in agent:
        agent["model"] = model_of_program(how, model, of_model)
    return read_job_options({**given, **agent}, in_python=False)


def _read_resumed(ctx: click.Context, of_model: Mapping[str, Any]) -> JobOptions:
    if ctx.params["against"]:
        raise HudMcpError(
            "Each of two compared jobs resumes by itself: leave out --against. Then `hud-mcp jobs "
            "FIRST SECOND` compares them."
        )
    by_hand = {"tasksets": "TASKSET", "agent": "--agent", "model": "--model"}
    for name, shown in by_hand.items():
        if ctx.params[name]:
            raise HudMcpError(recorded_already(shown))
    for each in declared(_MODEL):
        if each.name in of_model and not each.option.may_change:
            raise HudMcpError(recorded_already(each.flag))
    return read_job_options(given_fields(ctx, JobOptions), in_python=False, resumed=True)


async def _main(call: _Call) -> int:
    console = make_console(lasting=True)
    check_place(call.store)
    status = 1

    def on_repeated() -> None:
        text = "The run has ended, and its report is being written; once more leaves it."
        console.print(cell(text, "yellow"))

    async with (
        opened_store(call.store) as store,
        watched_signals(on_repeated) as interruption,
        service("job page")(
            console, store, interruption, wanted=call.view, resumed=call.resume
        ) as job_id,
    ):
        with without_collecting():
            first, *others = await _prepare(console, store, call, job_id)
        status = await _evaluate(console, store, first, call, interruption)
        for second in others:
            console.print("\n", cell(second.job.name, "bold"), sep="", soft_wrap=True)
            call = replace(call, report=None)
            status = max(status, await _evaluate(console, store, second, call, interruption))
            console.print()
            await compare(store, [first.job.id, second.job.id])
    return interruption.status or status


async def _prepare(console: Console, store: Store, call: _Call, new: str) -> list[Prepared]:
    if call.resume is not None:
        return [await resume_job(store, call.resume, call.options, of_model=call.of_model)]
    found = await anyio.to_thread.run_sync(find_sets, call.tasksets)
    sets = found.read()
    if found.left_out:
        console.print(cell(found.left_out, "dim"), soft_wrap=True)
    request = JobRequest(sets.tasks, call.options, sets.files, new)
    if call.against is None:
        return [await begin_job(store, request)]
    how = (await begin_job(None, request)).how  # its environments, where --env names none
    options = call.options.model_copy(update={"sources": how.sources})
    requests = service("pair jobs")(call.against, replace(request, options=options))
    await begin_job(None, requests[1])  # neither is recorded unless both can run
    return [await begin_job(store, each) for each in requests]


async def _evaluate(
    console: Console, store: Store, prepared: Prepared, call: _Call, interruption: Interruption
) -> int:
    job = prepared.job
    report = _place_of_report(call.report, store, job)
    log_path = report.with_suffix(".log")
    progress = Progress(console, len(prepared.planned), group=job.group, verbose=call.verbose)
    evaluation = Evaluation(store, prepared)
    if prepared.planned:
        make_private_file(log_path)
        watch = Watch(progress.on_start, progress.on_end, progress.on_death, progress.on_note)
        with log_path.open("a" if call.resume else "w") as log, progress:
            await interruption.run(lambda: evaluation.run(log, watch))
    with without_collecting():
        results = await _load(store, prepared, progress)
        print_results(console, results, told=progress.told, store=call.store)
        await service("job report")(store, job.id, report, expected=results.expected)
    console.print(f"Job {job.id}. Server log: {log_path}", style="dim", soft_wrap=True)
    jobs = in_store(f"hud-mcp jobs {job.id}", call.store)
    console.print(cell(f"Next: `{jobs}` lists each run.", "dim"), soft_wrap=True)
    console.print(f"Report: {report}", soft_wrap=True)
    if interruption.signal is not None and results.to_resume:
        console.print(cell(_interrupted(results, evaluation.cut_off), "red"))
    elif results.unexpected:
        text = f"{results.unexpected} of {results.wanted} runs did not end as expected."
        console.print(cell(text, "red"))
    _conclude(console, results, call.store, evaluation.lost)
    return 1 if results.unexpected else 0


def _place_of_report(given: Path | None, store: Store, job: Job) -> Path:
    place = given or report_folder(store) / f"{job.id}.html"
    try:
        make_private_folder(place.parent)
    except OSError as exc:
        raise HudMcpError(
            f"The report cannot be written to {place}: {exc.strerror}. No run has begun; name "
            f"another --report, with --resume {job.id}."
        ) from exc
    return place.absolute()


async def _load(store: Store, prepared: Prepared, progress: Progress) -> Results:
    failed = {
        done.trajectory_id: done.error or ""
        for done in progress.done
        if done.agent_failed and done.trajectory_id is not None
    }
    refused = {
        done.planned.task.id: done.error
        for done in progress.done
        if done.outcome is NOT_BEGUN and done.error
    }
    return await load_results(
        store,
        prepared.job.id,
        agent=prepared.how.known_agent,
        failed_agents=failed,
        refused=refused,
    )


def _conclude(console: Console, results: Results, store: str | None, lost: str | None) -> None:
    if lost is not None:
        console.print(cell(lost, "red"))
    if results.to_resume:
        text = f"{results.to_resume} of {results.wanted} say nothing of the agent. To run them:"
        again = in_store(f"hud-mcp eval --resume {results.job.id}", store)
        console.print(f"{text}\n{again}", markup=False, soft_wrap=True)
    if failed := results.figures.outcomes[Outcome.GRADING_FAILED]:
        text = f"{failed} of {results.wanted} could not be graded. Correct the grader, then:"
        again = in_store(f"hud-mcp regrade {results.job.id}", store)
        console.print(f"{text}\n{again}", markup=False, soft_wrap=True)


def _interrupted(results: Results, cut_off: int) -> str:
    parts = [f"{results.figures.ended - cut_off} of {results.wanted} runs had ended"]
    if cut_off:
        were, are = ("was", "is") if cut_off == 1 else ("were", "are")
        parts.append(f"{cut_off} {were} under way and {are} recorded as lost")
    parts.append(f"{results.figures.outcomes[NOT_BEGUN]} had not begun")
    return f"Interrupted: {', '.join(parts)}."
