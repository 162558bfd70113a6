"""Everything that must not reach an agent, each with a mark that cannot be mistaken."""

# ruff: noqa: ANN201  # as authors write

from board_world import Board, BoardSpec

from hud_mcp import Answer, Environment, Grade, SubScore
from hud_mcp.errors import ActionFailed

env = Environment("confidential", world=BoardSpec())


@env.template(description="Guess the word")
async def guess(board: Board, expected: str = "unset"):
    """Grade against an argument of the task."""
    board.marker = "public"
    answer = yield "Which word am I thinking of?"
    yield Grade(
        reward=0.731958264,
        subscores=(
            SubScore(
                name="SUBSCORE-NAME-MARK",
                value=0.617283945,
                info={"why": "SUBSCORE-INFO-MARK"},
                children=(SubScore(name="CHILD-NAME-MARK", value=0.584930217),),
            ),
        ),
        content=f"CONTENT-MARK: {answer} was compared",
        info={"expected": expected, "note": "GRADE-INFO-MARK"},
    )


@env.template(description="Fail while grading")
async def fail(expected: str = "unset"):
    """Raise with the answer in the text."""
    yield "Which word am I thinking of?"
    raise ValueError(f"EXCEPTION-MARK {expected}")
    yield 1.0


@env.template(description="Fail while beginning")
async def fail_early(expected: str = "unset"):
    """Raise with the answer in the text, before the prompt."""
    if expected:
        raise ValueError(f"EXCEPTION-MARK {expected}")
    yield "never"
    yield 1.0


@env.template(description="Print while grading")
async def talk(expected: str = "unset"):
    """Log the answer."""
    answer = yield "Which word am I thinking of?"
    print(f"LOG-MARK {expected}")
    yield {"score": 0.731958264, "subscores": [], "expected": expected, "got": answer}


@env.function(use="evaluate", weak="WEAK-MARK")
async def held_to(answer: Answer[str], expected: str) -> Grade:
    """Grade against an argument of a call."""
    return Grade(
        reward=0.731958264,
        subscores=(SubScore(name="SUBSCORE-NAME-MARK", value=0.617283945),),
        content=f"CONTENT-MARK: {answer} was compared",
        info={"expected": expected, "note": "GRADE-INFO-MARK"},
    )


@env.function(use="evaluate")
async def raises(expected: str) -> float:
    """Raise with the answer in the text."""
    raise ValueError(f"EXCEPTION-MARK {expected}")


@env.function(use="evaluate")
async def turns_down(expected: str) -> float:
    """Raise an error of the package with the answer in the text."""
    raise ActionFailed(f"EXCEPTION-MARK {expected}")


@env.function(use="evaluate")
async def words(expected: str) -> str:
    """Return no number, and the answer."""
    print(f"LOG-MARK {expected}")
    return f"EXCEPTION-MARK {expected}"
