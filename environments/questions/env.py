"""Questions in the manner of GAIA: a few small files, one right answer, and the scorer of GAIA.

Files are drawn from a seed when a task starts, and lie in a shell's folder: tables, documents,
pictures, sounds, calendars. Python's standard library is enough to read all but the pictures,
which `view_picture` shows. A module `questions_*` has one kind of question: what is drawn, what
a hasty reader answers, and how it is solved.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from types import ModuleType
from typing import Annotated, get_args

import anyio.to_thread
import questions_calendar
import questions_chart
import questions_cipher
import questions_dial
import questions_family
import questions_ferry
import questions_game
import questions_invoice
import questions_ledger
import questions_map
import questions_melody
import questions_parcel
import questions_plan
import questions_receipt
import questions_track
import questions_workbook
from pydantic import Field
from questions_case import Case

from hud_mcp import Environment, Shell, ShellWorld, gaia_match, view_picture

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="What the files are drawn from.")]

env = Environment("questions", version="0.1.0", world=Shell())
env.tool(read_only=True)(view_picture)

KINDS = {
    questions_calendar: "A calendar whose meetings recur, with exceptions",
    questions_chart: "A bar chart whose axes deserve a look",
    questions_cipher: "A message in a cipher, with its key in another file",
    questions_dial: "A number that is dialled, and who it belongs to",
    questions_family: "A family tree with half-siblings",
    questions_ferry: "A timetable between islands whose clocks differ",
    questions_game: "A position of a game that nobody knows, with its rules",
    questions_invoice: "An invoice with a wrong amount",
    questions_ledger: "Expenses that each office writes in its own way",
    questions_map: "A map with a scale bar and closed roads",
    questions_melody: "A melody, and bells of a tower",
    questions_parcel: "An order by e-mail that its newest words change",
    questions_plan: "A floor plan on which not every side is written",
    questions_receipt: "A receipt with a stain on its total",
    questions_track: "A walk that was recorded, with a break and a cable car",
    questions_workbook: "A workbook with merged cells and hidden rows",
}

HINTS = {
    ".png": "The tool view_picture shows a picture.",
    ".pdf": "The text of the PDF is in streams that are compressed with zlib.",
    ".wav": "A sound has one channel, with 8000 samples of 16 bits in a second.",
}
"""What a reader of such files is told, who may have no other program than Python."""


def drawn(kind: ModuleType, ask: str, seed: int) -> tuple[Case, Mapping[str, bytes]]:
    """A question of a seed, with its files."""
    case: Case = kind.draw(seed, ask)
    return case, case.paint()


def prompt_of(case: Case, names: Iterable[str]) -> str:
    """What is asked, with where the files are."""
    listed = list(names)
    hints = [hint for end, hint in HINTS.items() if any(name.endswith(end) for name in listed)]
    where = " ".join([f"Files in /workspace: {', '.join(listed)}.", *hints])
    return f"{where}\n\n{case.question}"


def declare(kind: ModuleType, description: str) -> None:
    """Declare the template of one kind of question, with its solution."""
    name = kind.__name__.removeprefix("questions_")
    first = get_args(kind.Ask)[0]

    async def question(
        shell: ShellWorld,
        ask: kind.Ask = first,  # pyright: ignore[reportInvalidTypeForm]  # each kind has its own
        seed: Seed = 0,
    ) -> AsyncGenerator[str | float]:
        """Ask about files, and compare the answer as GAIA does."""
        case, files = await anyio.to_thread.run_sync(drawn, kind, ask, seed)
        for path, data in files.items():
            await shell.write(path, data)
        answer = yield prompt_of(case, files)
        yield gaia_match(answer, case.truth)

    question.__name__ = name
    env.template(id=name, description=description)(question).oracle(kind.solve)


for kind, description in KINDS.items():
    declare(kind, description)
