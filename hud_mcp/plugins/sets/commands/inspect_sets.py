"""`hud-mcp taskset import-inspect`: a data set of Inspect as a taskset."""

from pathlib import Path
from typing import Any

import click

from hud_mcp.cli.help import Command
from hud_mcp.cli.output import cell, make_console
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.graders.inspect_scorers import LOCATIONS
from hud_mcp.loading.public import count
from hud_mcp.plugins.sets.inspect_sets import FIELDS, SCORERS, InspectChoice, read_inspect

__all__ = ["command"]


@click.command("import-inspect", Command)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--scorer",
    type=click.Choice(SCORERS),
    default="match",
    help="The scorer of Inspect that grades answers.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=COLUMN",
    help=f"The column that holds a field of the sample: {', '.join(FIELDS)}.",
)
@click.option("--metadata", multiple=True, metavar="COLUMN", help="Keep this column as metadata.")
@click.option(
    "--location",
    hidden=True,
    type=click.Choice(LOCATIONS),
    default="end",
    help="For the scorer match: where the target must be.",
)
@click.option(
    "--numeric", hidden=True, is_flag=True, help="For the scorer match: compare numbers by value."
)
@click.option(
    "--case",
    hidden=True,
    is_flag=True,
    help="For the scorers match and includes: compare upper and lower case exactly.",
)
@click.option(
    "--several",
    hidden=True,
    is_flag=True,
    help="For the scorer choice: more than one choice may be right.",
)
@click.option("--gym", metavar="NAME", default="qa", help="The environment of the rows.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file to write."
)
def command(file: Path, **options: Any) -> None:
    """Import a data set of Inspect: a .json, .jsonl or .csv FILE of samples.

    Each sample becomes a question, which Inspect's own scorer grades.
    """
    choice = InspectChoice(
        scorer=options["scorer"],
        fields=_read_fields(options["fields"]),
        metadata=options["metadata"],
        location=options["location"],
        numeric=options["numeric"],
        ignore_case=not options["case"],
        several=options["several"],
        gym=options["gym"],
    )
    tasks = Taskset(read_inspect(file, choice), name=file.stem)
    path: Path = options["output"] or Path(f"{file.stem}-tasks.jsonl")
    tasks.to_file(path)
    counted = count(tasks)
    console = make_console()
    console.print(cell(f"{counted.rows} rows, {counted.runnable} runnable here."))
    for why, number in counted.reasons.items():
        console.print(cell(f"  {number}  {why}"), soft_wrap=True)
    console.print(cell(f"Written to {path}"), soft_wrap=True)


def _read_fields(given: tuple[str, ...]) -> dict[str, str]:
    """Return the names of fields in the records; raise HudMcpError if one is not FIELD=COLUMN."""
    pairs = [each.partition("=") for each in given]
    for name, equals, column in pairs:
        if not (name and equals and column):
            raise HudMcpError(f"--field {name}: write FIELD=COLUMN, such as input=question.")
    return {name: column for name, _, column in pairs}
