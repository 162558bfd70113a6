"""`hud-mcp eval`: an agent through a taskset, with progress, a table and a report."""

import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click
from rich.console import Console

from hud_mcp.agents.ready import READY
from hud_mcp.base.egress import read_hosts
from hud_mcp.base.secrets import keep_to_itself
from hud_mcp.cli.completion import complete_jobs, complete_sources, complete_tasksets
from hud_mcp.cli.eval_usage import check_usage
from hud_mcp.cli.filters import SEED, filter_option, split_option
from hud_mcp.cli.finite import FiniteFloat, WholeNumber
from hud_mcp.cli.help import Command
from hud_mcp.cli.hosts import allow_option
from hud_mcp.cli.interruption import Interruption, watched_signals
from hud_mcp.cli.models import (
    MODEL_LIMITS,
    MODEL_OPTIONS,
    model_limits,
    model_options,
    read_model,
)
from hud_mcp.cli.output import asks_here, cell, make_console
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.progress import Progress
from hud_mcp.cli.recording import in_store, no_record_option, store_option
from hud_mcp.cli.results import Results, load_results, print_results
from hud_mcp.cli.startup import without_collecting
from hud_mcp.cli.where import where_options, with_room
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.contexts import SELECTORS
from hud_mcp.loading.protocols import PROTOCOLS
from hud_mcp.loading.sets import find_sets
from hud_mcp.record.job import Job
from hud_mcp.record.place import check_place
from hud_mcp.registry import service
from hud_mcp.rollout.agents import BUILT_IN
from hud_mcp.rollout.evaluation import Evaluation, report_folder
from hud_mcp.rollout.plan import RunOptions
from hud_mcp.rollout.prepared import JobRequest, Prepared, begin_job, resume_job
from hud_mcp.rollout.run import Watch
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store
from hud_mcp.store.files import make_private_file, make_private_folder
from hud_mcp.values.observation import DEFAULT_FORMAT, IMAGE_FORMATS
from hud_mcp.values.outcome import NOT_BEGUN, Outcome

__all__ = ["command"]

_GROUPS = {
    "Agent (give one)": ("agent", "agent_command", "model"),
    "Model": (*MODEL_OPTIONS[1:], *MODEL_LIMITS),
    "Tasks": ("sources", "pattern", "split", "contexts", "context_selector", "protocol", "allow"),
    "Runs": (
        "group", "seed", "max_concurrent", "max_steps", "timeout", "retries", "workers", "ray",
        "in_process", "resume",
    ),
    "Record and report": ("name", "store", "image", "report_path", "view", "verbose"),
}  # fmt: skip


@click.command(
    "eval",
    Command,
    groups=_GROUPS,
    epilog="Exit status: 0 if every run ended as expected. 1 if some did not, or the job did "
    "not begin. 2 for a wrong option. 130 or 143 after Ctrl-C or SIGTERM.",
)
@click.argument("tasksets", nargs=-1, metavar="TASKSET...", shell_complete=complete_tasksets)
@click.option(
    "--agent",
    metavar="NAME",
    help=f"{', '.join((*BUILT_IN, *READY))}, or one in Python: path/to/agent.py:NAME or "
    "package.module:NAME.",
)
@click.option(
    "--agent-command",
    metavar="COMMAND",
    help="A program as the agent. It gets HUD_MCP_URL, HUD_MCP_TOKEN and HUD_MCP_PROMPT. The "
    "record keeps the command: pass secrets in variables.",
)
@model_options
@click.option(
    "--env",
    "sources",
    multiple=True,
    metavar="SOURCE",
    shell_complete=complete_sources,
    help="The source of the environments.",
)
@filter_option("--filter")
@split_option
@click.option("--group", type=WholeNumber(1), metavar="N", default=1, help="Runs of each task.")
@click.option(
    "--seed",
    type=SEED,
    metavar="N",
    help="Derive the runs' seeds from this number.",
)
@click.option(
    "--contexts",
    metavar="FILE|sample:N",
    help="Other contexts: of a file, or N random ones. `sample:8:gravity=5..15` varies one "
    "feature.",
)
@click.option(
    "--context-selector",
    type=click.Choice(SELECTORS),
    default="round-robin",
    metavar="HOW",
    help=f"The context of a task: {', '.join(SELECTORS)}.",
)
@click.option(
    "--max-concurrent",
    type=WholeNumber(1),
    metavar="N",
    default=4,
    help="The most runs at one time.",
)
@click.option(
    "--max-steps",
    type=WholeNumber(1),
    metavar="N",
    help="Stop the agent after this number of steps.",
)
@click.option(
    "--timeout",
    type=FiniteFloat(1),
    metavar="SECONDS",
    default=600.0,
    help="The agent's time for one run.",
)
@click.option(
    "--retries",
    type=WholeNumber(0),
    metavar="N",
    default=0,
    help="Repeats of a run that the machine failed.",
)
@click.option(
    "--protocol",
    type=click.Choice(sorted(PROTOCOLS)),
    metavar="NAME",
    help=f"Run rows as their authors do: {' or '.join(sorted(PROTOCOLS))}.",
)
@click.option("--name", metavar="NAME", help="The job's name.")
@click.option(
    "--resume",
    metavar="JOB",
    shell_complete=complete_jobs,
    help="Continue a job: run what is missing in it.",
)
@where_options
@allow_option
@store_option
@no_record_option
@click.option(
    "--report",
    "report_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The report's file.",
)
@click.option(
    "--image", type=click.Choice(IMAGE_FORMATS), default=DEFAULT_FORMAT, help="Format of pictures."
)
@click.option("--view", is_flag=True, help="Serve the job's page while it runs.")
@click.option("--verbose", is_flag=True, help="Print a line for each run, even on a terminal.")
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Run an agent through a TASKSET (a .jsonl, .json or .py file, or a shipped set's name).

    `hud-mcp tasks` lists the sets; `all` names those that need no further software. Several
    tasksets form one job.

    A run ends as expected if it was graded. A run of the oracle or the nop must also get the reward
    in the row's `validation`. The table shows that reward as `expected`.
    """
    check_usage(ctx, options)
    with_room(ctx, options)
    configure_logging("error")
    raise_file_limit()
    if options["resume"] is None and asks_here():
        service("offer browser")(options["sources"], options["tasksets"])
    keep_to_itself()
    sys.exit(anyio.run(_main, options))


async def _main(options: dict[str, Any]) -> int:
    console = make_console(lasting=True)
    check_place(options["store"])
    store = Store(options["store"])
    status = 1

    def on_repeated() -> None:
        text = "The run has ended, and its report is being written; once more leaves it."
        console.print(cell(text, "yellow"))

    try:
        async with (
            watched_signals(on_repeated) as interruption,
            service("job page")(console, store, options, interruption) as job_id,
        ):
            with without_collecting():
                prepared = await _prepare(console, store, options, job_id)
            status = await _evaluate(console, store, prepared, options, interruption)
    finally:
        await store.close()
    return interruption.status or status


async def _prepare(console: Console, store: Store, options: dict[str, Any], new: str) -> Prepared:
    if options["resume"]:
        return await resume_job(
            store,
            options["resume"],
            sources=options["sources"],
            max_concurrent=options["max_concurrent"],
            retries=options["retries"],
            workers=options["workers"],
            ray=options["ray"],
            model_limits=model_limits(options),
        )
    found = await anyio.to_thread.run_sync(find_sets, options["tasksets"])
    sets = found.read()
    if found.left_out:
        console.print(cell(found.left_out, "dim"), soft_wrap=True)
    request = JobRequest(
        sets.tasks,
        _how(options),
        files=sets.files,
        group=options["group"],
        pattern=options["pattern"],
        split=options["split"],
        own_timeout_s=options["own_timeout"],
        name=options["name"],
        job_id=new,
    )
    return await begin_job(store, request)


def _how(options: dict[str, Any]) -> RunOptions:
    """How a new job is run, by the command's options."""
    agent: RunOptions = options["found_agent"]
    return RunOptions(
        agent=agent.agent,
        agent_python=agent.agent_python,
        agent_command=options["agent_command"],
        model=read_model(options) if options["model"] is not None else None,
        sources=tuple(options["sources"]),
        folder=str(Path.cwd()),
        timeout_s=options["timeout"],
        max_steps=options["max_steps"],
        max_concurrent=options["max_concurrent"],
        retries=options["retries"],
        seed=options["seed"],
        image=options["image"],
        contexts=options["contexts"],
        context_selector=options["context_selector"] if options["contexts"] else None,
        protocol=options["protocol"],
        allow=read_hosts(options["allow"]),
        in_process=options["in_process"],
        workers=options["workers"],
        ray=options["ray"],
    )


async def _evaluate(
    console: Console,
    store: Store,
    prepared: Prepared,
    options: dict[str, Any],
    interruption: Interruption,
) -> int:
    job = prepared.job
    report = _place_of_report(options["report_path"], store, job)
    log_path = report.with_suffix(".log")
    progress = Progress(console, len(prepared.planned), group=job.group, verbose=options["verbose"])
    evaluation = Evaluation(store, prepared)
    if prepared.planned:
        make_private_file(log_path)
        watch = Watch(progress.on_start, progress.on_end, progress.on_death, progress.on_note)
        with log_path.open("a" if options["resume"] else "w") as log, progress:
            await interruption.run(lambda: evaluation.run(log, watch))
    with without_collecting():
        results = await _load(store, prepared, progress)
        print_results(console, results, told=progress.told, store=options["store"])
        await service("job report")(store, job.id, report, expected=results.expected)
    console.print(f"Job {job.id}. Server log: {log_path}", style="dim", soft_wrap=True)
    jobs = in_store(f"hud-mcp jobs {job.id}", options["store"])
    console.print(cell(f"Next: `{jobs}` lists each run.", "dim"), soft_wrap=True)
    console.print(f"Report: {report}", soft_wrap=True)
    if interruption.signal is not None and results.to_resume:
        console.print(cell(_interrupted(results, evaluation.cut_off), "red"))
    elif results.unexpected:
        text = f"{results.unexpected} of {results.wanted} runs did not end as expected."
        console.print(cell(text, "red"))
    _conclude(console, results, options, evaluation.lost)
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


def _conclude(
    console: Console, results: Results, options: dict[str, Any], lost: str | None
) -> None:
    """Say what is left to do."""
    if lost is not None:
        console.print(cell(lost, "red"))
    if results.to_resume:
        text = f"{results.to_resume} of {results.wanted} say nothing of the agent. To run them:"
        again = in_store(f"hud-mcp eval --resume {results.job.id}", options["store"])
        console.print(f"{text}\n{again}", markup=False, soft_wrap=True)
    if failed := results.figures.outcomes[Outcome.GRADING_FAILED]:
        text = f"{failed} of {results.wanted} could not be graded. Correct the grader, then:"
        again = in_store(f"hud-mcp regrade {results.job.id}", options["store"])
        console.print(f"{text}\n{again}", markup=False, soft_wrap=True)


def _interrupted(results: Results, cut_off: int) -> str:
    parts = [f"{results.figures.ended - cut_off} of {results.wanted} runs had ended"]
    if cut_off:
        were, are = ("was", "is") if cut_off == 1 else ("were", "are")
        parts.append(f"{cut_off} {were} under way and {are} recorded as lost")
    parts.append(f"{results.figures.outcomes[NOT_BEGUN]} had not begun")
    return f"Interrupted: {', '.join(parts)}."
