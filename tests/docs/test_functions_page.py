"""The page on functions says what there is, and its examples work."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hud_mcp import Environment
from hud_mcp.cli import main
from hud_mcp.cli.functions import GYMS
from hud_mcp.loading.source import load_environments
from hud_mcp.task import FROM_JSON, Task

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"


def listed(*arguments: str) -> list[dict[str, str | None]]:
    """What the command lists."""
    done = CliRunner().invoke(main, ["functions", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_the_page_lists_every_function_as_the_registry_has_it() -> None:
    """Signature, use, description and weakness of each, and nothing that is not there."""
    text = PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(.+?)` \| (\w+) \| (.*?) \| (.*?) ?\|$", text, re.MULTILINE)
    assert shown == [
        (row["signature"], row["use"], row["description"], row["weak"] or "") for row in listed()
    ]


@pytest.mark.parametrize("gym", GYMS)
def test_a_gym_has_the_functions_of_its_world_and_of_answers(gym: str) -> None:
    """Names are distinct, descriptions are sentences, and each use is a field of a task."""
    rows = listed(gym)
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names))
    assert set(load_environments([gym])[0].functions) == set(names)
    for row in rows:
        assert str(row["description"]).endswith("."), row
        assert row["weak"] is None or row["weak"].endswith("."), row
        assert row["use"] in ("setup", "evaluate", "both")
    owners = {row["of"] for row in rows}
    assert owners == {"answers"} | {gym.removeprefix("hud-")} - {"qa"}


def test_an_environment_lists_its_own_beside_them(tmp_path: Path) -> None:
    """A function of the author's is named with its file's environment; the table shows it too."""
    file = tmp_path / "env.py"
    file.write_text(
        "from hud_mcp import Environment\n"
        "env = Environment('mine')\n"
        "@env.function(use='setup')\n"
        "async def warm_up(times: int = 2) -> None:\n"
        "    'Get ready.'\n"
    )
    own = [row for row in listed(str(file)) if row["of"] == "mine"]
    assert own == [
        {"name": "warm_up", "signature": "warm_up(times=2)", "use": "setup", "of": "mine",
         "description": "Get ready.", "weak": None}
    ]  # fmt: skip
    table = CliRunner().invoke(main, ["functions", str(file)]).output
    assert "warm_up(times=2)" in table
    assert "functions of mine" in table
    wrong = CliRunner().invoke(main, ["functions", "hud-browsr"])
    assert wrong.exit_code == 1
    assert "Did you mean 'hud-browser'?" in wrong.output


def test_the_examples_of_the_page_work() -> None:
    """The row binds to its gym, and the file of functions declares them."""
    text = PAGE.read_text(encoding="utf-8")
    [row] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    task = Task.model_validate(json.loads(row), context=FROM_JSON)
    assert load_environments([task.env])[0].bind(task) == task
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)  # the page's own
    env = names["env"]
    assert isinstance(env, Environment)
    assert env.functions["fill_cart"].signature == "fill_cart(product, count=1)"
    assert env.functions["answered"].takes(1)


def test_every_function_that_a_page_names_is_there() -> None:
    """In a row's calls, and wherever a page says what `setup` or `evaluate` may name."""
    known = {str(row["name"]) for row in listed()}
    declared = re.compile(r"^@\w+\.function\([^\n]*\)\n(?:async )?def (\w+)", re.MULTILINE)
    calls = re.compile(r"(?:setup|evaluate)=\[?\(\"([\w.]+)\"|\"function\": \"([\w.]+)\"")
    sentence = re.compile(r"`(?:setup|evaluate)` in a task's row may name ([^|]*?)\. `")
    wrong: list[tuple[str, str]] = []
    for page in sorted(PAGE.parent.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        own = known | set(declared.findall(text))
        named = [one or other for one, other in calls.findall(text)]
        for said in sentence.findall(text):
            named += re.findall(r"`(\w+)`", said.replace("`evaluate`", ""))
        wrong += [(page.name, name) for name in named if name not in own]
        if page.name == "graders.md":
            assert {"match_all", "gaia_match"} <= set(named), "the page's list is not found"
    assert wrong == []
