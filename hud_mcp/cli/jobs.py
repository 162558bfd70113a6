"""`hud-mcp jobs`: what was run, and what the runs of one job amount to."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

import anyio
import click
from pydantic_core import to_json
from rich.console import Console
from rich.text import Text

from hud_mcp.analysis.groups import DIMENSIONS, Grouping
from hud_mcp.analysis.report import JobReport
from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.analysis.tries import PASS_REWARD, TaskStatistics, outcome_class
from hud_mcp.cli.help import Command
from hud_mcp.cli.job_tables import (
    comparison_json,
    load_comparison,
    print_comparison,
    print_groupings,
)
from hud_mcp.cli.options import (
    FiniteFloat,
    WholeNumber,
    complete_jobs,
    in_store,
    is_there,
    json_option,
    store_option,
)
from hud_mcp.cli.output import cell, make_console, make_table, number, print_table, tone_style, when
from hud_mcp.loading.protocols import PROTOCOL, recorded_protocol
from hud_mcp.loading.provenance import LEFT_OUT, SETS, recorded_left_out
from hud_mcp.record.job import Job
from hud_mcp.record.place import check_place
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.registry import service
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store, opened_store
from hud_mcp.values.outcome import NOT_BEGUN

_PROOF = (
    "Its runs are probes of tasks and no agent's results, so no mean is made of them. "
    "`{}` shows the verdicts."
)


@click.command("jobs", Command)
@click.argument("jobs", metavar="[JOB]...", nargs=-1, shell_complete=complete_jobs)
@click.option(
    "--limit", type=WholeNumber(1), metavar="N", default=20, help="How many jobs to list."
)
@click.option(
    "--threshold",
    type=FiniteFloat(),
    metavar="REWARD",
    default=PASS_REWARD,
    help="The lowest reward with which a run passes.",
)
@click.option(
    "--by",
    type=click.Choice(DIMENSIONS),
    multiple=True,
    help="Show the figures of JOB for groups of its tasks, instead of for each task.",
)
@json_option
@store_option
def command(jobs: tuple[str, ...], **options: Any) -> None:
    """List jobs, the newest first; or show one JOB. A unique beginning of its id is enough.

    With several, each one is compared with the first. The command then shows their pass rates, the
    intervals of the differences, and the tasks that flipped.

    A run is scored if it ended by the agent's own doing. The table counts runs that failed because
    of infrastructure separately. The mean and the pass rates leave them out.
    """
    configure_logging("warning")
    if options["by"] and len(jobs) != 1:
        raise click.UsageError("--by needs one job: name it, as in `hud-mcp jobs JOB --by set`.")
    anyio.run(_run, jobs, options)


async def _run(names: tuple[str, ...], options: dict[str, Any]) -> None:
    check_place(options["store"])
    async with opened_store(options["store"]) as store:
        if len(names) > 1:
            await compare(store, names, options["threshold"], as_json=options["as_json"])
        elif names:
            await _show(store, await store.find_job_id(names[0]), options)
        elif is_there(store, options["store"]):
            await _list(store, options)
        elif not options["as_json"]:
            click.echo("There are no jobs: nothing was recorded yet. `hud-mcp eval` runs one.")


async def compare(
    store: Store, names: Sequence[str], threshold: float = PASS_REWARD, *, as_json: bool = False
) -> None:
    """Print each job beside the first one, then how they used the tools of servers."""
    jobs, found = await load_comparison(store, names, threshold)
    load_use = service("server use")
    uses = [await load_use(store.database, job.id, threshold=threshold) for job in jobs]
    if as_json:
        used = {"servers": uses} if any(uses) else {}
        click.echo(_json({**comparison_json(jobs, found), **used}))
    else:
        print_comparison(jobs, found)
        service("print server use")(jobs, uses)


async def _list(store: Store, options: dict[str, Any]) -> None:
    found = await store.list_jobs(options["limit"] + 1)
    jobs, more = found[: options["limit"]], len(found) > options["limit"]
    rows: list[tuple[Job, JobStatistics, int]] = []
    for job in jobs:
        _, tasks, runs = await service("job outlines")(store.database).load_outline(job.id)
        report = JobReport(job, tasks, runs, threshold=options["threshold"], intervals=False)
        rows.append((job, report.statistics, sum(run.damaged for run in runs)))
    if options["as_json"]:
        for row in rows:
            click.echo(_json(_listed(*row)))
        return
    _print_list(rows, more=more, store=options["store"])


def _listed(job: Job, figures: JobStatistics, damaged: int) -> dict[str, Any]:
    known = job.model_dump(
        mode="json", include={"id", "name", "agent", "taskset", "created_at", "group", "damage"}
    )
    return {
        **known,
        "wanted": figures.wanted,
        "ended": figures.ended,
        "mean": figures.mean.value if figures.mean and not job.is_proof else None,
        "outcomes": figures.outcomes,
        "infrastructure": figures.infrastructure,
        "earlier_tries": figures.earlier_tries,
        "foreign": figures.foreign,
        "pruned": figures.pruned,
        "planned": figures.planned,
        "damaged": damaged,
    }


def _print_list(
    rows: list[tuple[Job, JobStatistics, int]], *, more: bool, store: str | None
) -> None:
    console = make_console()
    if not rows:
        console.print("There are no jobs; `hud-mcp eval` runs one.")
        return
    table = make_table(
        "job", "name", "agent", "begun (UTC)", "done", "mean", "infra",
        right=("done", "mean", "infra"),
    )  # fmt: skip
    for job, figures, _ in rows:
        failed = figures.infrastructure
        table.add_row(
            cell(job.id),
            cell(job.name, "red" if job.damage else ""),
            cell(job.agent or ""),
            when(job.created_at),
            f"{figures.ended}/{figures.wanted}{_beside(figures)}",
            number(figures.mean.value) if figures.mean and not job.is_proof else "",
            Text(str(failed) if failed else "", style="red"),
        )
    print_table(console, table, whole="job", least=("agent", "begun (UTC)"))
    text = "mean: over graded runs."
    if any(figures.infrastructure for _, figures, _ in rows):
        text += " infra: runs that failed because of infrastructure, which are not in it."
    console.print(text, style="dim")
    if more:
        console.print(f"These are the newest {len(rows)}; --limit shows more.", style="dim")
    for job, _, damaged in rows:
        if job.damage:
            console.print(cell(job.damage, "red"))
        elif damaged:
            rows_of = f"{damaged} damaged {'row' if damaged == 1 else 'rows'}"
            which = in_store(f"hud-mcp jobs {job.id}", store)
            text = f"{job.id}: {rows_of}; `{which}` says which."
            console.print(cell(text, "red"), soft_wrap=True)


def _beside(figures: JobStatistics) -> str:
    foreign = f", {figures.foreign} foreign" if figures.foreign else ""
    foreign += f", {figures.pruned} pruned" if figures.pruned else ""
    return f"{foreign}, unplanned" if figures.planned is False else foreign


async def _show(store: Store, job_id: str, options: dict[str, Any]) -> None:
    job, tasks, runs = await store.load_job_summary(job_id)
    report = JobReport(job, tasks, runs, threshold=options["threshold"])
    figures = report.statistics
    groupings = report.groupings(() if job.is_proof else dict.fromkeys(options["by"]))
    by_id = {run.id: run for run in runs}
    if options["as_json"]:
        rows = [_task(row, by_id) for row in figures.tasks]
        whole = {
            "job": job.model_dump(mode="json"),
            "statistics": None
            if job.is_proof
            else figures.model_dump(mode="json", exclude={"tasks"}),
            "tasks": rows,
            "foreign": [{"task": run.task_id, **_run_fields(run)} for run in runs if run.foreign],
            **({"by": [each.model_dump(mode="json") for each in groupings]} if groupings else {}),
        }
        click.echo(_json(whole))
        return
    _print_job(job, figures, by_id, groupings, options["store"])


def _task(row: TaskStatistics, by_id: dict[str, TrajectorySummary]) -> dict[str, Any]:
    return {
        **row.model_dump(mode="json"),
        "runs": [_run_fields(by_id[run_id]) for run_id in row.runs],
        "earlier": [_run_fields(by_id[run_id]) for run_id in row.earlier],
    }


def _run_fields(run: TrajectorySummary) -> dict[str, Any]:
    return {
        "id": run.id,
        "outcome": outcome_class(run),
        "cause": run.cause,
        "reward": run.reward,
        "steps": run.step_count,
        "started_at": run.started_at,
        "seconds": _seconds(run),
        "error": run.receipt.error if run.receipt else None,
        "use": run.use.model_dump(mode="json") if run.use else None,
        "user": run.user.model_dump(mode="json") if run.user else None,
        "damage": run.damage,
        "pruned": run.pruned.model_dump(mode="json") if run.pruned else None,
    }


def _print_job(
    job: Job,
    figures: JobStatistics,
    by_id: dict[str, TrajectorySummary],
    groupings: Sequence[Grouping],
    store: str | None,
) -> None:
    console = make_console()
    console.print(cell(job.name, "bold"))
    trusted = ", trusted: it ran in the evaluation's own process" if job.trusts_agent else ""
    known = [job.id, f"agent {job.agent}{trusted}" if job.agent else "", job.taskset or ""]
    parts = [*(part for part in known if part), f"{job.created_at:%Y-%m-%d %H:%M:%S} UTC"]
    console.print(cell("  ".join(parts), "dim"))
    if job.is_proof:
        console.print(
            f"\n{_PROOF.format(in_store(f'hud-mcp check --resume {job.id}', store))}\n",
            markup=False,
        )
    else:
        _print_metadata(console, job)
        console.print(f"\n{figures}\n", markup=False)
    for line in _removed(job, by_id.values()):
        console.print(cell(line, "dim"), soft_wrap=True)
    if groupings:
        print_groupings(console, groupings)
    else:
        _print_tasks(console, figures, by_id, store)
    for damage in (job.damage, *(run.damage for run in by_id.values())):
        if damage:
            console.print(cell(damage, "red"))


def _removed(job: Job, runs: Iterable[TrajectorySummary]) -> Iterable[str]:
    if job.pruned is not None:
        yield f"The job was {job.pruned}."
        return
    told = Counter((run.pruned.at, run.pruned.rule) for run in runs if run.pruned)
    for (at, rule), count in sorted(told.items()):
        yield f"Steps, turns and logs of {count} runs were pruned on {at:%Y-%m-%d} ({rule})."


def _print_tasks(
    console: Console, figures: JobStatistics, by_id: dict[str, TrajectorySummary], store: str | None
) -> None:
    table = make_table("task", "reward", "outcome", "steps", "seconds", "trajectory",
                       right=("reward", "steps", "seconds"))  # fmt: skip
    for row in figures.tasks:
        for number_, line in enumerate(_lines(row, by_id)):
            table.add_row(cell(row.task) if number_ == 0 else "", *line)
    for run in by_id.values():
        if run.foreign:
            table.add_row(cell(run.task_id, "dim"), *_line(run, label="foreign, not counted"))
        elif run.erased:
            table.add_row(cell(run.task_id, "dim"), *_line(run, label="pruned, not counted"))
    print_table(console, table, whole="trajectory", least=("seconds", "steps"))
    if not table.row_count:
        return
    trace = in_store("hud-mcp trace TRAJECTORY", store)
    console.print(cell(f"`{trace}` shows one.", "dim"), soft_wrap=True)


def _print_metadata(console: Console, job: Job) -> None:
    for name, value in job.metadata.items():
        if name not in (LEFT_OUT, PROTOCOL, SETS):
            console.print(cell(f"{name}: {_in_words(value)}", "dim"), soft_wrap=True)
    if (protocol := recorded_protocol(job.metadata)) is not None:
        console.print(cell(str(protocol), "dim"), soft_wrap=True)
    for each in recorded_left_out(job.metadata):
        more = each.count - len(each.names)
        names = ", ".join(each.names) + (f" and {more} more" if more else "")
        text = f"left out, not counted: {each.count}  {each.reason}: {names}"
        console.print(cell(text, "dim"), soft_wrap=True)


def _in_words(value: Any) -> str:
    """Return a value of a job's metadata as words, a record without its empty fields."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        shown = {n: _in_words(v) for n, v in fields if v not in (None, False, [], {}, "")}
        return ", ".join(f"{name} {text}".strip() for name, text in shown.items())
    if isinstance(value, list):
        return " ".join(map(_in_words, cast("list[Any]", value)))
    return "" if value is True else str(value)


def _lines(row: TaskStatistics, by_id: dict[str, TrajectorySummary]) -> Iterable[list[Text]]:
    for run_id in row.runs:
        yield _line(by_id[run_id])
    if row.not_begun:
        times = f", {row.not_begun} runs" if row.not_begun > 1 else ""
        said = Text(f"{NOT_BEGUN}{times}", style=tone_style(NOT_BEGUN.tone))
        yield [Text(), said, Text(), Text(), Text()]
    for run_id in row.earlier:
        yield _line(by_id[run_id], label="an earlier try")


def _line(run: TrajectorySummary, *, label: str = "") -> list[Text]:
    """Return the cells of a run. A run that does not count is dim, and its label has the reason."""
    outcome = run.outcome if run.erased and run.outcome else outcome_class(run)
    style = "dim" if label else "" if outcome.tone == "good" else tone_style(outcome.tone)
    seconds = _seconds(run)
    return [
        Text(number(run.reward), style=style),
        Text(f"{outcome}, {label}" if label else outcome, style=style),
        Text(str(run.step_count), style=style),
        Text("" if seconds is None else f"{seconds:.1f}", style=style),
        cell(run.id, style),
    ]


def _seconds(run: TrajectorySummary) -> float | None:
    return None if run.ended_at is None else (run.ended_at - run.started_at).total_seconds()


def _json(value: dict[str, Any]) -> bytes:
    """Metadata may hold integers of any size, and a damaged reward may be no number."""
    return to_json(value, inf_nan_mode="null")
