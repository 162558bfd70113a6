"""Functions that tasks of every environment may name: over the answer, in `evaluate`, and one more.

How an answer is compared is the graders' own rule; here it gets the name and the arguments of a
call. In `setup`, `session_file` gives a file, and `not_runnable` says why a row cannot be started.
"""

import re

import anyio.to_thread

from hud_mcp.environment import comparing
from hud_mcp.environment.function import Function
from hud_mcp.environment.template import Answer
from hud_mcp.errors import InvalidTask
from hud_mcp.graders.letters import Location
from hud_mcp.graders.pattern import Pattern, search
from hud_mcp.registry import service

__all__ = ["ANSWER_FUNCTIONS"]

Text = str | int | float

MOST_FILE_BYTES = 32 * 1024**2
"""Of a file that is a resource, which a client reads in one reply."""


async def response_includes(
    answer: Answer[str], texts: Text | list[Text], *more: Text | list[Text]
) -> float:
    """1.0 where every text occurs in the answer; case does not count."""
    named = [each if isinstance(each, list) else [each] for each in (texts, *more)]
    wanted = [str(text) for group in named for text in group]
    return comparing.answers.response_includes(answer.raw, *wanted)


async def response_is(answer: Answer[str], text: Text) -> float:
    """1.0 where the answer is exactly the text; case counts, space around it does not."""
    return comparing.answers.response_is(answer.raw, text)


async def response_match(answer: Answer[str], pattern: Pattern) -> float:
    """1.0 where the regular expression is found in the answer."""
    return await comparing.answers.response_match(answer.raw, pattern)


async def numeric_match(answer: Answer[str], expected: float, tolerance: float = 0.0) -> float:
    """1.0 where the last number of the answer is the expected one, give or take the tolerance."""
    return comparing.numeric_match(answer.raw, expected, tolerance=tolerance)


async def gaia_match(answer: Answer[str], truth: Text) -> float:
    """1.0 where the scorer of the GAIA benchmark takes the answer for right."""
    return comparing.answers.gaia_match(answer.raw, str(truth))


async def gaia_final_answer(answer: Answer[str], truth: Text) -> float:
    """1.0 where GAIA's scorer takes what follows the last `FINAL ANSWER:` for right."""
    return comparing.answers.gaia_match(
        answer.raw.rpartition("FINAL ANSWER:")[2].strip(), str(truth)
    )


async def inspect_match(
    answer: Answer[str],
    targets: list[str],
    location: Location = "end",
    ignore_case: bool = True,  # noqa: FBT001, FBT002  # arguments have no names here
    numeric: bool = False,  # noqa: FBT001, FBT002  # the same
) -> float:
    """1.0 where Inspect's scorer `match` takes the answer for right."""
    return comparing.inspect_scorers.match(
        answer.raw, targets, location=location, ignore_case=ignore_case, numeric=numeric
    )


async def inspect_includes(
    answer: Answer[str],
    targets: list[str],
    ignore_case: bool = True,  # noqa: FBT001, FBT002  # arguments have no names here
) -> float:
    """1.0 where Inspect's scorer `includes` takes the answer for right."""
    return comparing.inspect_scorers.includes(answer.raw, targets, ignore_case=ignore_case)


async def inspect_choice(
    answer: Answer[str],
    target: str,
    count: int,
    several: bool = False,  # noqa: FBT001, FBT002  # arguments have no names here
) -> float:
    """1.0 where Inspect's scorer `choice` takes the answer for right."""
    return comparing.inspect_scorers.choice(answer.raw, target, count, several=several)


async def match_single(answer: Answer[str], text: Text) -> float:
    """1.0 where the text is somewhere in the answer, as HUD 0.2 compares; case does not count."""
    return comparing.match.match_single(answer.raw, text).score


async def match_all(answer: Answer[str], texts: list[Text]) -> float:
    """The share of the texts that are somewhere in the answer, as HUD 0.2 compares."""
    return comparing.match.match_all(answer.raw, texts).score


async def match_fuzzy(answer: Answer[str], text: Text) -> float:
    """How alike answer and text are: 1 less the share of signs to edit, as HUD 0.2 compares."""
    return comparing.match.match_fuzzy(answer.raw, text).score


async def match_regex(answer: Answer[str], pattern: Pattern) -> float:
    """1.0 where the expression is found; a stop stands for newlines too, as HUD 0.2 has it."""
    found = await search(pattern, answer.raw, flags=re.DOTALL)
    return float(found)


async def match_diff(answer: Answer[str], text: Text) -> float:
    """How much answer and text have in common, as HUD 0.2 compares."""
    return comparing.match.match_diff(answer.raw, str(text)).score


async def session_file(name: str, sha256: str) -> None:
    """Give the session a file of a public set, as its resource of that name."""
    kept = await anyio.to_thread.run_sync(service("dataset file"), sha256)
    if kept.stat().st_size > MOST_FILE_BYTES:
        raise InvalidTask(
            f"The file {name!r} has more than {MOST_FILE_BYTES} bytes, which is too much for a "
            "resource. Import the set with --gym of a shell."
        )


async def not_runnable(reason: str) -> None:
    """Refuse to start the task, for a reason: rows of a public set that do not run here."""
    raise InvalidTask(f"This task does not run here: {reason}.")


ANSWER_FUNCTIONS = (
    *(
        Function(each, use="evaluate")
        for each in (
            response_includes,
            response_is,
            response_match,
            numeric_match,
            gaia_match,
            gaia_final_answer,
            inspect_match,
            inspect_choice,
        )
    ),
    *(Function(each, use="evaluate") for each in (match_fuzzy, match_regex, match_diff)),
    *(
        Function(each, use="evaluate", weak="An answer that lists much has what is looked for.")
        for each in (inspect_includes, match_single, match_all)
    ),
    Function(session_file, use="setup"),
    Function(not_runnable, use="setup"),
)
"""In every environment."""
