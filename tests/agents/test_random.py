"""The random agent draws from what an environment takes, by the seed of its run."""

from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hud_mcp import Job, Task, Taskset, evaluate, load_environments
from hud_mcp.agents.baselines import action_choices, sample

pytestmark = pytest.mark.anyio

SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 3, "maximum": 5},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 4},
    {"type": "number", "minimum": -0.5, "maximum": 0.5},
    {"type": ["string", "null"], "minLength": 12, "maxLength": 14},
    {"enum": ["a", 2, None]},
    {"const": {"x": 1}},
    {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 40},
    {
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P"}, "n": {"type": "integer"}},
        "required": ["p"],
        "additionalProperties": False,
    },
]


@given(st.sampled_from(SCHEMAS), st.integers(0, 2**32))
def test_what_is_drawn_is_what_the_schema_admits(schema: dict[str, Any], seed: int) -> None:
    """Whatever chance says."""
    jsonschema.validate(sample(schema, Random(seed)), schema)


@given(st.integers(0, 2**16))
def test_a_schema_that_nests_without_end_is_cut_off(seed: int) -> None:
    """A list of lists of itself."""
    schema: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}
    jsonschema.validate(sample(schema, Random(seed)), schema)


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def drawn(job: Job) -> list[Any]:
    """What the runs of a job did, without what the machine adds."""
    return [
        [dict(action) for step in run.steps for action in step.actions]
        for run in await job.load_trajectories()
    ]


@pytest.mark.long
async def test_a_gymnasium_space_is_drawn_from_by_the_seed_of_the_run() -> None:
    """The same seed draws the same, another one does not; no draw is refused."""
    tasks = Taskset([Task(id="pole", env="CartPole-v1", template="balance")])
    first = await evaluate(tasks, "random", seed=1, group=2, max_steps=8)
    again = await evaluate(tasks, "random", seed=1, group=2, max_steps=8)

    assert sorted(map(str, await drawn(first))) == sorted(map(str, await drawn(again)))
    one, other = await first.load_trajectories()
    assert one.outcome == other.outcome == "graded"
    assert one.seed != other.seed
    assert f"random: seed {one.seed}" in (one.logs or "")
    assert [step.error for step in one.steps if step.error] == []
    assert len(one.steps) <= 9  # and the answer


@pytest.mark.parametrize("source", ["gym:CARLPendulum", "gym:CartPole-v1"])
def test_every_draw_from_a_space_is_an_action_of_it(source: str) -> None:
    """Each is read as agents' actions are, bounds of each number included."""
    (environment,) = load_environments([source])
    (choice,) = action_choices(environment)
    schema = environment.world.custom_actions["step"]
    for seed in range(20):
        made = choice(Random(seed), "")
        assert made["action"] == "step"
        jsonschema.validate(made["args"], dict(schema))


def test_a_browser_s_actions_name_what_is_in_view() -> None:
    """A ref of the last text, a point of the screen, or the arguments of an action of its own."""
    (environment,) = load_environments(["browser"])
    choices = action_choices(environment)
    made = [choice(Random(seed), '- button "Go" [ref=e7]') for choice in choices for seed in (1, 2)]
    assert {"click", "type", "scroll", "press", "custom"} <= {action["type"] for action in made}
    assert "response" not in {action["type"] for action in made}
    assert {action["ref"] for action in made if "ref" in action} == {"e7"}
