"""Inspect's data sets as tasksets: rows of JSON, JSON Lines or CSV, with a scorer by its name."""

import base64
import binascii
import csv
import io
import json
import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast, get_args

import click

from hud_mcp.base.text import read_text_file
from hud_mcp.cli.help import Command
from hud_mcp.cli.output import cell, make_console
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.graders.inspect_scorers import LOCATIONS, Location, letter_of
from hud_mcp.loading.public import count
from hud_mcp.plugins.sets.files import keep_bytes, keep_file
from hud_mcp.plugins.sets.imports import NotRunnable, given_file, row, row_id

Scorer = Literal["match", "includes", "choice"]
SCORERS: tuple[Scorer, ...] = get_args(Scorer)
FIELDS = ("input", "target", "choices", "id", "metadata", "sandbox", "files", "setup")
"""The fields of a sample; a column may have another name."""

_NOTHING = string.whitespace + string.punctuation


@dataclass(frozen=True)
class InspectChoice:
    """The choices that make rows of records.

    Attributes:
        scorer: The name of Inspect's scorer.
        fields: The names of a sample's fields in the records, if they differ.
        metadata: The columns that are kept as metadata; without any, those of `metadata`.
        location: The place of the target, for `match`.
        ignore_case: Whether case does not count, for `match` and `includes`.
        numeric: Whether numbers are compared as numbers, for `match`.
        several: Whether more than one choice may be right, for `choice`.
        gym: The environment of the rows.
    """

    scorer: Scorer = "match"
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata: Sequence[str] = ()
    location: Location = "end"
    ignore_case: bool = True
    numeric: bool = False
    several: bool = False
    gym: str = "qa"


def read_inspect(path: Path, choice: InspectChoice) -> list[Task]:
    """Return the rows of a file.

    It is a list of records in `.json`, a table with a line of names in `.csv`, or else a record a
    line.

    Raises:
        SourceNotFound: There is no such file.
        InvalidTask: A record is invalid or has no input, or a sample has no such field.
    """
    if unknown := next((name for name in choice.fields if name not in FIELDS), None):
        raise InvalidTask(
            f"A sample has no field {unknown!r}.{did_you_mean(unknown, FIELDS)} It has: "
            f"{', '.join(FIELDS)}."
        )
    if not path.is_file():
        raise SourceNotFound(f"There is no file {path}. Name a .json, .jsonl or .csv file.")
    tasks: list[Task] = []
    for number, record in enumerate(_records(path), 1):
        try:
            tasks.append(_task(path, number, record, choice))
        except (TypeError, ValueError, AttributeError) as exc:
            raise InvalidTask(f"{path}: record {number} is not a sample: {exc}.") from exc
    return tasks


def _records(path: Path) -> list[dict[str, Any]]:
    text = read_text_file(path)
    try:
        if path.suffix == ".csv":
            return [dict(each) for each in csv.DictReader(io.StringIO(text), strict=True)]
        if path.suffix == ".json":
            return cast("list[dict[str, Any]]", json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, csv.Error) as exc:
        raise InvalidTask(f"{path}: this is no data set of Inspect: {exc}.") from exc


def _task(path: Path, number: int, record: Mapping[str, Any], choice: InspectChoice) -> Task:
    sample = {name: _there(record.get(choice.fields.get(name, name))) for name in FIELDS}
    if sample["input"] in (None, []):
        raise ValueError(
            f"it has no input among {', '.join(record)}; name its column, as in --field input="
            f"{next(iter(record), 'question')}"
        )
    name = number if sample["id"] is None else sample["id"]
    setup: list[list[Any]] = []
    evaluate: list[list[Any]] = []
    prompt, told, why = "", [], None
    try:
        prompt = _asked(sample["input"])
        choices = _choices(sample["choices"]) if choice.scorer == "choice" else []
        evaluate = [_grader(_targets(sample["target"]), choices, choice)]
        told = [_listed(choices, several=choice.several)] if choices else []
        for call, said in _files(path.parent, sample["files"], in_shell=choice.gym == "gaia"):
            setup.append(call)
            told.append(said)
        _check_plain(sample)
    except NotRunnable as exc:
        why = str(exc)
    return row(
        row_id(path.stem, name),
        choice.gym,
        "\n\n".join([prompt or "(no text)", *told]),
        parts=[path.stem],
        split="test",
        source=f"{path.name}, record {number}, a data set of Inspect",
        setup=setup,
        evaluate=evaluate,
        not_runnable=why,
        metadata={"sample": _metadata(record, sample["metadata"], choice.metadata)},
    )


def _check_plain(sample: Mapping[str, Any]) -> None:
    for need in ("sandbox", "setup"):
        if sample[need] is not None:
            raise NotRunnable(f"it has a {need} of its own")


def _there(value: Any) -> Any:
    """Return a value; None if it is missing, which tables write as an empty text or as NaN."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return None if value in ("", None) or is_nan else value


def _asked(given: Any) -> str:
    """Return the question: a text, or messages in order; raise NotRunnable for more than text."""
    if not isinstance(given, list):
        return str(given)
    said: list[str] = []
    for message in cast("list[dict[str, Any]]", given):
        content = message.get("content", "")
        if not isinstance(content, str):
            raise NotRunnable("its input has more than text")
        role = message.get("role")
        said.append(content if role in ("user", "system") else f"{role}: {content}")
    return "\n\n".join(said)


def _targets(given: Any) -> list[str]:
    if isinstance(given, list):
        return [str(each) for each in cast("list[Any]", given)]
    return [] if given is None else [str(given)]


def _choices(given: Any) -> list[str]:
    """Return the choices; raise NotRunnable if there are none."""
    if isinstance(given, str):
        parts = given.split(",") if "," in given else given.split()
    else:
        parts = [str(each) for each in cast("list[Any]", given or [])]
    if found := [each.strip() for each in parts if each.strip()]:
        return found
    raise NotRunnable("it has no choices")


def _grader(targets: list[str], choices: list[str], choice: InspectChoice) -> list[Any]:
    """Return the call that scores a row; raise NotRunnable if its target matches all or nothing."""
    if choice.scorer == "choice":
        letters = "".join(targets)
        known = {letter_of(index) for index in range(len(choices))}
        named = {each.upper() for each in letters if each not in ", "}
        if not named or not named <= known:
            raise NotRunnable("its target is none of its choices")
        return ["inspect_choice", letters, len(choices), choice.several]
    if choice.scorer == "includes":
        if not all(targets) or not targets:
            raise NotRunnable("its target is empty, which any answer includes")
        return ["inspect_includes", targets, choice.ignore_case]
    if not targets or not all(each.strip(_NOTHING) for each in targets):
        raise NotRunnable("its target has no letter and no digit, which any answer matches")
    return ["inspect_match", targets, choice.location, choice.ignore_case, choice.numeric]


def _listed(choices: Sequence[str], *, several: bool) -> str:
    listed = "\n".join(f"{letter_of(index)}) {each}" for index, each in enumerate(choices))
    letter = "the letters of all that are right" if several else "the letter of the one"
    return f"{listed}\n\nEnd your answer with the line `ANSWER: ` and {letter}."


def _files(folder: Path, given: Any, *, in_shell: bool) -> list[tuple[list[str], str]]:
    """Return the calls that give a session a sample's files, with a sentence on each.

    Raise NotRunnable if two have one name, or one is outside of the set's folder: the set's author
    may not choose the files that an agent reads. Raise ValueError if the value does not hold files.
    """
    files = cast("dict[str, str]", json.loads(given) if isinstance(given, str) else given or {})
    found: list[tuple[list[str], str]] = []
    for name, content in files.items():
        plain = PurePosixPath(name).name
        if not plain or not isinstance(content, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it is JSON from outside
            raise ValueError("its files are not names with contents")
        found.append(given_file(plain, _kept(folder, content), in_shell=in_shell))
    if len({call[1] for call, _ in found}) < len(found):
        raise NotRunnable("two of its files have one name")
    return found


def _kept(folder: Path, content: str) -> str:
    """Keep a file's content: that of a file beside the set, of a data address, or a text."""
    if content.startswith("data:") and ";base64," in content:
        try:
            return keep_bytes(base64.b64decode(content.partition(";base64,")[2], validate=True))
        except binascii.Error as exc:
            raise ValueError(f"a file's data address is damaged: {exc}") from exc
    try:
        path = (folder / content).resolve()
        text = None if path.is_file() else content
    except (OSError, ValueError):  # too long for a path, or with a sign that none has
        path, text = folder, content
    if text is not None:
        return keep_bytes(text.encode())
    if not path.is_relative_to(folder.resolve()):
        raise NotRunnable("it names a file outside of the set's folder")
    return keep_file(path)


def _metadata(record: Mapping[str, Any], own: Any, names: Sequence[str]) -> dict[str, Any]:
    if names:
        return {name: record.get(name) for name in names}
    if isinstance(own, str):
        own = json.loads(own)
    return cast("dict[str, Any]", own or {})


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
def inspect_command(file: Path, **options: Any) -> None:
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
