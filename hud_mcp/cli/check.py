"""`hud-mcp check`: proves tasks before anyone spends money on them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import click
import orjson
from click.core import ParameterSource
from rich.console import Console

from hud_mcp.base.egress import read_hosts
from hud_mcp.cli.help import Command
from hud_mcp.cli.interruption import Interruption, watched_signals
from hud_mcp.cli.options import (
    SEED,
    FiniteFloat,
    WholeNumber,
    allow_option,
    complete_tasksets,
    filter_option,
    in_store,
    json_option,
    split_option,
    store_option,
)
from hud_mcp.cli.output import asks_here, cell, make_console, make_table, print_table
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.progress import Progress
from hud_mcp.cli.proved import Found, find_wanted
from hud_mcp.record.place import check_place
from hud_mcp.registry import service
from hud_mcp.rollout.checking.job import CheckOptions, Proof, begin_proof, resume_proof
from hud_mcp.rollout.checking.probes import read_probe
from hud_mcp.rollout.checking.verdicts import TaskVerdict
from hud_mcp.rollout.run import Rollout, Watch
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store, opened_store

_RECORDED = (
    "sources", "pattern", "split", "seed", "repeat", "timeout", "allow", "max_concurrent", "given",
)  # fmt: skip
"""The options that a resumed check takes from its record."""

_STYLES = {"proven": "green", "unproven": "yellow", "failed": "red"}


@click.command(
    cls=Command,
    epilog="Exit status: 0 if no task failed. 1 if one failed, or, with --strict, is unproven. "
    "2 for a mistake in the options. 130 (Ctrl-C) or 143 (SIGTERM) after an interrupt; "
    "--resume continues the check.",
)
@click.argument("given", nargs=-1, metavar="SOURCE|TASKSET...", shell_complete=complete_tasksets)
@click.option(
    "--env", "sources", multiple=True, metavar="SOURCE", help="The source of the environments."
)
@filter_option("--only", "--filter")
@split_option
@click.option(
    "--repeat",
    type=WholeNumber(1),
    metavar="N",
    default=2,
    help="How often to play each seed. Every time must give the same prompt and the same grade.",
)
@click.option(
    "--seed",
    type=SEED,
    metavar="N",
    default=0,
    help="Derive the seeds of tasks without one from this number.",
)
@click.option(
    "--max-concurrent",
    type=WholeNumber(1),
    metavar="N",
    default=4,
    help="The most probes at one time.",
)
@click.option(
    "--timeout",
    type=FiniteFloat(1),
    metavar="SECONDS",
    default=120.0,
    help="The most seconds for one probe.",
)
@click.option("--strict", is_flag=True, help="Also fail if a task is unproven.")
@click.option(
    "--resume",
    metavar="JOB",
    help="Continue the check whose job has this id; show the verdicts of a finished check.",
)
@allow_option
@store_option
@json_option
@click.option(
    "--verbose", is_flag=True, help="Print notes, and a line for each probe, even on a terminal."
)
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Prove the tasks of SOURCES (env.py, browser, gym:CartPole-v1), or the rows of TASKSETS.

    The command plays an oracle, a nop, wrong answers, echoes and attacks on each task, as any
    client would. It searches every message to the agent for answers that must stay hidden. A proven
    task passed all of these. An unproven task failed none, but no oracle solved it. For each failed
    task, the reasons follow the table.
    """
    if options["resume"] is None and not options["given"]:
        raise click.UsageError("Name a SOURCE or a TASKSET, or --resume JOB.")
    if options["resume"] is not None:
        for name in _RECORDED:
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE and options[name]:
                shown = {"sources": "--env", "pattern": "--only", "given": "SOURCE or TASKSET"}
                raise click.UsageError(
                    f"{shown.get(name, '--' + name.replace('_', '-'))} comes from the record of "
                    "the check that is resumed; leave it out, or start another one."
                )
    configure_logging("error")
    raise_file_limit()
    found = None
    if options["resume"] is None:  # here, as what is a mistake of usage leaves no task group
        found = find_wanted(
            options["given"], options["sources"], options["pattern"], split=options["split"]
        )
        if asks_here():
            service("offer browser")(found.sources)
    sys.exit(anyio.run(_main, found, options))


async def _main(found: Found | None, options: dict[str, Any]) -> int:
    console = make_console(lasting=True, stderr=options["as_json"])
    check_place(options["store"])
    status = 1

    def on_repeated() -> None:
        console.print(cell("The check has ended, and is judged; once more leaves it.", "yellow"))

    for said in found.said if found is not None else ():
        console.print(cell(said), soft_wrap=True)
    async with (
        opened_store(options["store"]) as store,
        watched_signals(on_repeated) as interruption,
    ):
        proof = await _prepare(store, found, options)
        status = await _prove(console, store, proof, options, interruption)
    return interruption.status or status


async def _prepare(store: Store, found: Found | None, options: dict[str, Any]) -> Proof:
    if found is None:
        return await resume_proof(store, options["resume"])
    how = CheckOptions(
        sources=found.sources,
        repeat=options["repeat"],
        seed=options["seed"],
        timeout_s=options["timeout"],
        max_concurrent=options["max_concurrent"],
        allow=read_hosts(options["allow"]),
        sets=dict(found.sets),
    )
    return await begin_proof(
        store, found.wanted, how, name=found.name, environments=found.environments
    )


async def _prove(
    console: Console,
    store: Store,
    proof: Proof,
    options: dict[str, Any],
    interruption: Interruption,
) -> int:
    progress = Progress(
        console, len(proof.planned), group=1, verbose=options["verbose"], missed=_missed
    )
    log_path = store.folder / "checks" / f"{proof.job.id}.log"
    if proof.planned:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        watch = Watch(progress.on_start, progress.on_end, progress.on_death)
        with log_path.open("a") as log, progress:
            await interruption.run(lambda: proof.run(log, watch))
    verdicts = await proof.verdicts()
    counts = _counts(verdicts)
    failed = bool(counts["failed"] or (options["strict"] and counts["unproven"]))
    if options["as_json"]:
        click.echo(_json(proof, verdicts, counts))
    else:
        _print(console, verdicts, notes=options["verbose"])
        shown = ", ".join(f"{number} {name}" for name, number in counts.items())
        noun = "task" if len(verdicts) == 1 else "tasks"
        _print_sets(console, _by_set(proof, verdicts))
        console.print(f"\n{len(verdicts)} {noun}: {shown}. Job {proof.job.id}.", markup=False)
        if not options["verbose"] and (noted := sum(len(each.notes) for each in verdicts)):
            console.print(f"{noted} notes; --verbose shows them.", style="dim")
    _conclude(console, proof, options, interruption, log_path)
    return 1 if failed or proof.lost is not None else 0


def _missed(done: Rollout) -> str | None:
    probe = read_probe(done.planned.task)
    # Full marks without the oracle's outputs are a fault only where it left some: the end tells.
    return None if done.reward is None or probe.kind == "odd" else probe.missed(done.reward)


def _conclude(
    console: Console,
    proof: Proof,
    options: dict[str, Any],
    interruption: Interruption,
    log_path: Path,
) -> None:
    if proof.lost is not None:
        console.print(cell(f"{proof.lost} Server log: {log_path}", "red"))
    if interruption.signal is not None or proof.lost is not None:
        again = in_store(f"hud-mcp check --resume {proof.job.id}", options["store"])
        console.print(f"Interrupted. To go on:\n{again}", markup=False, soft_wrap=True)


def _by_set(proof: Proof, verdicts: Sequence[TaskVerdict]) -> dict[str, dict[str, int]]:
    told = {each.task: each for each in verdicts}
    return {
        name: _counts([told[task_id] for task_id in ids if task_id in told])
        for name, ids in proof.how.sets.items()
        if not told.keys().isdisjoint(ids)
    }


def _print_sets(console: Console, sets: dict[str, dict[str, int]]) -> None:
    if not sets:
        return
    table = make_table("set", "tasks", *_STYLES, right=("tasks", *_STYLES))
    for name, counts in sets.items():
        shown = [cell(str(n), _STYLES[v] if n else "") for v, n in counts.items()]
        table.add_row(cell(name), str(sum(counts.values())), *shown)
    console.print()
    print_table(console, table, whole="set")


def _counts(verdicts: Sequence[TaskVerdict]) -> dict[str, int]:
    return {name: sum(each.verdict == name for each in verdicts) for name in _STYLES}


def _json(proof: Proof, verdicts: Sequence[TaskVerdict], counts: dict[str, int]) -> bytes:
    worst = next((name for name in ("failed", "unproven") if counts[name]), "proven")
    whole = {
        "job": proof.job.id,
        "verdict": worst,
        "counts": counts,
        "sets": _by_set(proof, verdicts),
        "tasks": [each.model_dump(mode="json") for each in verdicts],
    }
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2)


def _print(console: Console, verdicts: Sequence[TaskVerdict], *, notes: bool) -> None:
    table = make_table("task", "environment", "verdict", "probes", right=("probes",))
    for each in verdicts:
        passed = sum(probe.ok for probe in each.probes)
        table.add_row(
            cell(each.task),
            cell(each.environment),
            cell(each.verdict, _STYLES[each.verdict]),
            f"{passed}/{len(each.probes)}" if each.probes else "",
        )
    print_table(console, table, whole="task", least=("environment",))
    for same in _alike(verdicts):
        first, more = same[0], len(same) - 1
        if first.reasons or first.weak or (notes and first.notes):
            console.print()
            console.print(cell(f"{first.task} and {more} more" if more else first.task))
        for reason in first.reasons:
            console.print(cell(f"  {reason}", _STYLES[first.verdict]), soft_wrap=True)
        for text in first.weak:
            console.print(cell(f"  Weak: {text}", "yellow"), soft_wrap=True)
        for each in same if notes else ():
            for note in each.notes:
                at = f"{each.task}: " if more else ""
                console.print(cell(f"  Note: {at}{note}", "dim"), soft_wrap=True)


def _alike(verdicts: Sequence[TaskVerdict]) -> list[list[TaskVerdict]]:
    """Group the tasks that are unproven or weak for the same reasons."""
    found: dict[object, list[TaskVerdict]] = {}
    for each in verdicts:
        alike = each.verdict != "failed" and bool(each.reasons or each.weak)
        found.setdefault((each.reasons, each.weak) if alike else id(each), []).append(each)
    return list(found.values())
