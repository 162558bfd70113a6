"""Tasks whose graders run a command in the agent's shell, ask a judge, or cannot run."""

from collections.abc import AsyncGenerator
from typing import Any

from hud_mcp import BashGrader, Environment, LLMJudgeGrader, ShellWorld, SubScore, combine

desk = Environment("desk", version="1.0.0")
shop = Environment("shop", version="1.0.0")
shop.workspace("shop_files")


@desk.template()
async def essay() -> AsyncGenerator[Any, Any]:
    """Judge an answer by criteria that its author must not learn."""
    answer = yield "What is the capital of France?"
    judged = LLMJudgeGrader.grade(
        weight=0.75, answer=answer, criteria=["Says that it is Paris", ("Insults", -1.0)]
    )
    yield await combine(judged, SubScore(name="short", value=float(len(answer) < 50), weight=0.25))


@desk.template()
async def stranded() -> AsyncGenerator[Any, Any]:
    """A grader that cannot run, beside one that would take long."""
    yield "Say anything."
    yield await combine(
        BashGrader.grade(weight=0.5, command="sleep 300"),
        BashGrader.grade(weight=0.5, command="true", cwd="/not/here"),
    )


@shop.template()
async def repair(shell: ShellWorld) -> AsyncGenerator[Any, Any]:
    """Grade what the agent left in its folder, by two commands at once."""
    await shell.write("total.py", "print(1 + 1 - 1)\n")
    yield "Let total.py print 2."
    yield await combine(
        BashGrader.grade(weight=0.5, name="prints", command='test "$(python3 total.py)" = 2'),
        BashGrader.grade(weight=0.5, name="is there", command="test -s total.py"),
    )
