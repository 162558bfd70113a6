"""`hud-mcp trace`: a trajectory in the terminal, step by step."""

from typing import Any

import anyio
import click
from rich.text import Text

from hud_mcp.analysis.tries import outcome_class
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import complete_records, is_there, json_option, store_option
from hud_mcp.cli.output import cell, make_console, make_table, number, print_table, when
from hud_mcp.record.place import check_place
from hud_mcp.record.transcript import transcript
from hud_mcp.session.log import configure_logging
from hud_mcp.store import Store, opened_store

_STYLES = {
    "title": "bold",
    "heading": "bold cyan",
    "label": "dim",
    "text": "",
    "action": "green",
    "error": "red",
    "cut": "dim",
    "model": "bold magenta",
}
_LISTED = 20


@click.command("trace", Command)
@click.argument("trajectory", required=False, shell_complete=complete_records)
@click.option("--full", is_flag=True, help="Show long texts in full.")
@json_option
@store_option
def command(trajectory: str | None, **options: Any) -> None:
    """Show a TRAJECTORY, even while it runs. A unique beginning of its id is enough.

    The output has the task, the prompt, each step's actions and observation, the log and the
    receipt. If the agent reported its model's turns, they follow too. `hud-mcp jobs JOB` lists the
    trajectories of a job. Without an id, the command lists the newest sessions that clients of
    `hud-mcp serve` started.
    """
    configure_logging("warning")
    anyio.run(_run, trajectory, options)


async def _run(trajectory_id: str | None, options: dict[str, Any]) -> None:
    check_place(options["store"])
    async with opened_store(options["store"]) as store:
        if trajectory_id is not None:
            await _show(store, await store.find_trajectory_id(trajectory_id), options)
        elif options["as_json"]:
            raise click.UsageError("--json prints one record; give a trajectory's id.")
        else:
            await _list(store, options)


async def _show(store: Store, trajectory_id: str, options: dict[str, Any]) -> None:
    found = await store.load_trajectory(trajectory_id, turns=True)
    if options["as_json"]:
        click.echo(found.model_dump_json())
        return
    console = make_console()
    shortened = False
    for line in transcript(found, full=options["full"]):
        shortened |= line.style == "cut"
        # Whole lines: a terminal folds them itself, and what is copied from it stays whole.
        console.print(Text(line.text, style=_STYLES[line.style]), soft_wrap=True)
    if shortened:
        console.print("Some texts are shortened; --full shows them whole.", style="dim")


async def _list(store: Store, options: dict[str, Any]) -> None:
    console = make_console()
    there = is_there(store, options["store"])
    found = await store.list_trajectories(limit=_LISTED) if there else []
    if not found:
        console.print(
            "There are no trajectories without a job; `hud-mcp jobs JOB` lists those of a job."
        )
        return
    table = make_table("trajectory", "task", "outcome", "reward", "steps", "begun (UTC)",
                       right=("reward", "steps"))  # fmt: skip
    for run in found:
        table.add_row(
            cell(run.id),
            cell(run.task.id),
            outcome_class(run),
            number(run.reward),
            str(run.step_count),
            when(run.started_at),
        )
    print_table(console, table, whole="trajectory", least=("steps", "begun (UTC)"))
    console.print(f"The newest of those without a job, {_LISTED} at most.", style="dim")
