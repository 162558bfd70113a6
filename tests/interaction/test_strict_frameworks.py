"""Agents of frameworks whose strict modes make every property required, from start to grade.

Each is in an environment of its own. The model is played by a local server: it sends what the
schema demands that the framework made of ours, and nothing that this would not let through.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from frameworks import LANGCHAIN, OPENAI_AGENTS, PYDANTIC_AI
from jsonschema import Draft202012Validator
from other_python import ROOT
from peers import ENVIRONMENTS, HttpServer, child_environment, http_server, load_all

sys.path.insert(0, str(ROOT / "tests" / "agents"))
from provider_server import Asked, Call, Says, provider_server

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

DRIVERS = Path(__file__).resolve().parent / "agents"
PAGE = str(ENVIRONMENTS / "page.py")
POLE = "gym:CartPole-v1?screen=0"
BOUND_S = 240
SESSION = re.compile(r"sess-[0-9a-f]{32}")


FRAMEWORKS = {
    "strict_openai_agents.py": OPENAI_AGENTS,
    "strict_pydantic_ai.py": PYDANTIC_AI,
    "strict_langchain.py": LANGCHAIN,
}

TASKS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "a page": [
        ("start_task", {"template": "order", "arguments": {"what": "tea"}}),
        ("act", {"type": "custom", "action": "goto", "args": {"url": "/"}}),
        ("act", {"type": "type", "selector": "#what", "text": "tea"}),
        ("step", {"actions": [{"type": "click", "selector": "text=Send"}]}),
        ("response", {"answer": "1"}),
    ],
    "a game": [
        ("start_task", {"template": "balance", "arguments": {"steps": 3}}),
        ("act", {"type": "custom", "action": "step", "args": {"action": 1}}),
        ("step", {"actions": [{"type": "custom", "action": "step",
                               "args": {"action": 0, "repeat": 2}}]}),
        ("response", {"answer": "done"}),
    ],
}  # fmt: skip
"""What the model means by each of its calls; the rest is what its schema demands."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A page and a game, on one server."""
    with http_server(tmp_path_factory.mktemp("strict"), (PAGE, POLE)) as running:
        yield running


@dataclass
class StrictModel:
    """A model that calls a list of tools in order, as strict decoding lets it."""

    calls: list[tuple[str, dict[str, Any]]]

    def __call__(self, asked: Asked) -> Says:
        """The next call."""
        heard = asked.heard
        for tool in asked.body["tools"]:
            assert tool["function"].get("strict") is True, tool["function"]["name"]
        turn = len(heard.results)
        if turn == len(self.calls):
            return Says("Finished.")
        name, meant = self.calls[turn]
        found = SESSION.findall("\n".join(heard.results))
        more = {"session": found[0], "after_step": turn - 1} if found else {}
        schema = heard.tools[name]
        arguments = fill(
            schema, {**meant, **(more if name != "response" else {"session": found[0]})}
        )
        Draft202012Validator(schema).validate(arguments)
        return Says(calls=(Call(name, arguments),))


def fill(schema: Mapping[str, Any], meant: Mapping[str, Any]) -> dict[str, Any]:
    """An object with every property of its schema: what is meant, and nothing elsewhere."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    assert set(meant) <= set(fields), set(meant) - set(fields)
    return {name: value(each, meant.get(name, ...)) for name, each in fields.items()}


def value(schema: Mapping[str, Any], meant: Any) -> Any:
    """One value: what is meant, filled in too; else null where that may be, else the least."""
    if meant is ...:
        return least(schema)
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        return value(choices[0], meant)
    if isinstance(meant, Mapping):
        return fill(schema, meant)
    return [value(schema["items"], each) for each in meant] if isinstance(meant, list) else meant


def least(schema: Mapping[str, Any]) -> Any:
    """Null where that may be; else the first, the smallest or the shortest that fits."""
    kinds = schema.get("type")
    if "anyOf" in schema or (isinstance(kinds, list) and "null" in kinds):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if kinds == "object":
        return fill(schema, {})
    if kinds == "array":
        return [least(schema["items"])] * schema.get("minItems", 0)
    smallest = max(schema.get("minimum", 0), 0)
    return {"string": "", "integer": smallest, "number": smallest, "boolean": False}[kinds]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("driver", FRAMEWORKS)
async def test_an_agent_with_strict_tools_goes_through_a_task_to_its_grade(
    driver: str, task: str, server: HttpServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It navigates, or plays, with schemas in which nothing is optional, and is graded with 1."""
    other = FRAMEWORKS[driver]
    python = await anyio.to_thread.run_sync(other.find, tmp_path_factory)
    before = {each.id for each in await load_all(server.store)}
    environment = child_environment()
    del environment["PYTHONPATH"]
    with provider_server(StrictModel(TASKS[task])) as model, anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [str(python), str(DRIVERS / driver), server.url, model.base_url("openai-chat"), task],
            check=False,
            env=environment,
        )
        told = "\n".join(model.asked[-1].heard.results) if model.asked else ""
    assert done.returncode == 0, done.stderr.decode()[-4000:] + told
    version, *said = done.stdout.decode().splitlines()
    assert version == other.version
    assert said == ["Finished."]
    (record,) = [each for each in await load_all(server.store) if each.id not in before]
    assert record.reward == 1.0, told
    assert not [step.error for step in record.steps if step.error]
