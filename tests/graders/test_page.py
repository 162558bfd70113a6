"""docs/graders.md says what is so: its programs run, and its table is the table of cases."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from test_hud_rules import CASES

from hud_mcp.environment.template import Template
from hud_mcp.graders import LLMJudgeGrader

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "graders.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ROWS = re.findall(r"^\| `(\w+\(.*\))` \| (\S.*?) \| (\S.*?) \| [^|]+ \|$", PAGE, re.MULTILINE)


def run(block: str) -> dict[str, Any]:
    """What a program defines."""
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "docs/graders.md", "exec"), names)
    return names


@pytest.mark.anyio
async def test_the_page_s_template_grades_as_it_says() -> None:
    """Right, half right and wrong answers."""
    template = run(BLOCKS[0])["population"]
    assert isinstance(template, Template)
    for answer, reward in [("Paris: 2,102,650", 1.0), ("Rome: 2,102,650", 0.2), ("x" * 50, 0.0)]:
        playing = template.run({}, None)
        assert (await anext(playing)).startswith("How many people live in Paris?")
        assert (await playing.asend(answer)).reward == pytest.approx(reward)
        await playing.aclose()


@pytest.mark.anyio
async def test_the_page_s_grader_measures() -> None:
    """The class of an author's own."""
    part = await run(BLOCKS[1])["LengthGrader"].grade(weight=0.2, answer="x" * 101)
    assert (part.name, part.value, part.weight) == ("length", 0.0, 0.2)


@pytest.mark.anyio
async def test_the_page_s_judge_takes_what_is_written_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to the key, which the environment does not have."""
    for name in ("ANTHROPIC_API_KEY", "HUD_MCP_JUDGE_API_KEY", "HUD_MCP_JUDGE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Exception, match=r"api\.anthropic\.com needs a key. Set ANTHROPIC_API_KEY"):
        await run(BLOCKS[2])["judged"]("It was the wind.")
    written = ast.parse(BLOCKS[2])
    assert LLMJudgeGrader.name in ast.unparse(written)


def test_every_row_of_the_page_s_table_is_a_tested_case() -> None:
    """With HUD's result and ours, as the tests have measured them."""
    known = {
        (name, repr(args), repr(kwargs)): (by_hud, strict)
        for name, args, kwargs, by_hud, strict in CASES
    }
    assert len(ROWS) >= 15
    for call, by_hud, ours in ROWS:
        tree = ast.parse(call, mode="eval").body
        assert isinstance(tree, ast.Call)
        args = [ast.literal_eval(arg) for arg in tree.args]
        kwargs = {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}
        measured = known[(ast.unparse(tree.func), repr(args), repr(kwargs))]
        assert (by_hud, ours) == tuple(as_written(value) for value in measured), call


def as_written(value: Any) -> str:
    """A result as the page has it."""
    return repr(value) if isinstance(value, str) and value != "ValueError" else str(value)
