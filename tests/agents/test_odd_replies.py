"""A model may write anything: it is mended before its provider gets it back, and is its result."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from provider_server import Asked, Call, Refuses, Says, Script, Sends, provider_server
from test_model_requests import MODELS, keys
from waiting import PATIENCE_S

from hud_mcp import evaluate
from hud_mcp.agents.model.options import ModelOptions
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.values.grade import Cause
from hud_mcp.values.outcome import Outcome

__all__ = ["keys"]

pytestmark = pytest.mark.anyio

ENV = """
from hud_mcp import Environment

env = Environment("counting")


@env.tool
async def half() -> str:
    '''Return half a character, as a page may show one.'''
    return "half \\ud83d"


@env.template()
async def three(case: str):
    answer = yield f"How many? ({case})"
    yield float(answer == "3")
"""
RIGHT = Says(calls=(Call("response", {"answer": "3"}),))
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
ODD_NAMES = (
    "no such name!", "", "x" * 300, "1step", "functions.step", "step ", "größe", "a\nb",
)  # fmt: skip
ODD_ARGUMENTS = (
    '{"answer": "3"', "[1]", "null", "", "NaN", '{"x": NaN}', '{"x": "\\ud83d"}', '"text"',
    '{"x": 123456789012345678901234567890}', f"{'[' * 300}{']' * 300}",
    f'{{"x": {"[" * 300}{"]" * 300}}}', "[" * 100_000, '{"x": 1e999}', "{'x': 1}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an environment, and a store of its own."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "env.py").write_text(ENV)
    return tmp_path


async def runs_of(
    folder: Path,
    script: Script,
    *cases: str,
    provider: str = "openai-compatible",
    timeout_s: float = 60,
) -> dict[str, Trajectory]:
    """What is recorded of a model that a script plays: one run for each case, by its name."""
    rows = [
        {"id": f"case-{i}", "env": "counting", "template": "three", "args": {"case": case}}
        for i, case in enumerate(cases)
    ]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with provider_server(script) as server:
        model = ModelOptions(
            name=f"{provider}:{MODELS[provider]}", base_url=server.base_url(provider)
        )
        job = await evaluate(str(path), model, in_process=True, max_steps=9, timeout_s=timeout_s)
    return {cases[int(run.task.id[5:])]: run for run in await job.load_trajectories()}


def case_of(asked: Asked) -> str:
    """The case that a request is about."""
    return asked.heard.prompt.partition("(")[2].partition(")")[0]


def calls_in(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The name, the arguments and the id of each call that a request repeats, in any format."""
    if isinstance(value, list):
        for each in value:
            yield from calls_in(each)
    if not isinstance(value, dict):
        return
    if value.get("type") == "tool_use":
        yield value["name"], value["input"], value["id"]
    elif value.get("type") == "function_call":
        yield value["name"], json.loads(value["arguments"]), value["call_id"]
    elif value.get("type") == "function" and "arguments" in value.get("function", {}):
        function = value["function"]
        yield function["name"], json.loads(function["arguments"]), value["id"]
    elif "functionCall" in value:
        call = value["functionCall"]
        yield call["name"], call.get("args", {}), object()
    else:
        for each in value.values():
            yield from calls_in(each)


def wrong_in(asked: Asked, count: int) -> list[str]:
    """What a strict provider would refuse in the history of a request."""
    calls = list(calls_in(asked.body))
    wrong = [f"name {name!r}" for name, _, _ in calls if not NAME.fullmatch(name)]
    wrong += [f"arguments {given!r}" for _, given, _ in calls if not isinstance(given, dict)]
    if len({call_id for _, _, call_id in calls}) != len(calls):
        wrong.append("two calls with one id")
    if (len(calls), len(asked.heard.results)) != (count, count):
        wrong.append(f"{len(calls)} calls and {len(asked.heard.results)} results, not {count}")
    if re.search(r"(?<!\\)\\ud[89a-f]", json.dumps(asked.body, ensure_ascii=False)):
        wrong.append("half a character")
    return wrong


@pytest.mark.parametrize("provider", MODELS)
async def test_odd_calls_are_mended_before_their_provider_gets_them_back(
    provider: str, folder: Path
) -> None:
    """Each is refused to the model, with what is wrong; a strict provider takes the history."""
    odd = [Call(name, {"answer": "4"}) for name in ODD_NAMES]
    if provider.startswith("openai"):  # the others send arguments as objects
        odd += [Call("step", given) for given in ODD_ARGUMENTS]
    wrong: list[str] = []

    def script(asked: Asked) -> Says | Refuses:
        if asked.heard.turns == 0:
            return Says(calls=tuple(odd))
        wrong.extend(wrong_in(asked, len(odd)))
        return Refuses(400, "messages.1: refused") if wrong else RIGHT

    run = (await runs_of(folder, script, "calls", provider=provider))["calls"]
    assert not wrong, "\n".join(wrong)
    assert (run.reward, run.receipt and run.receipt.outcome) == (1.0, Outcome.GRADED)
    (turn, _) = run.turns
    assert [call.name for call in turn.calls][: len(ODD_NAMES)] == list(ODD_NAMES)


def message(text: str) -> str:
    """A completion whose message has these fields and which lacks what servers leave out."""
    return f'{{"choices": [{{"message": {{"role": "assistant", {text}}}}}]}}'


def call(arguments: str, beside: str = "") -> str:
    """A completion that calls `response`."""
    function = f'{{"name": "response", "arguments": {arguments}}}'
    return message(f'"content": null, "tool_calls": [{{"function": {function}{beside}}}]')


TAKEN = {
    "an object": call('{"answer": "3"}', ', "id": "c", "type": "function"'),
    "no id and no type": call(json.dumps('{"answer": "3"}')),
    "no opening tag": message('"content": "maybe 4, maybe 7</think>\\n\\n3"'),
    "two closing tags": message('"content": "maybe 4</think>maybe 7</think>3"'),
    "both tags": message('"content": "<think>maybe 4</think>3"'),
    "parts": message('"content": [{"type": "text", "text": "3"}]'),
}
"""As llama.cpp, Ollama and servers without a parser of reasoning write them; the answer is 3."""
ODD = {
    "half a character": message('"content": "3 \\ud83d"'),
    "half a character in arguments": call(json.dumps('{"answer": "3 \\ud83d"}')),
    "a name of half a character": call("{}").replace("response", "\\ude00"),
    "blanks": message('"content": " \\n "'),
    "nothing": message('"content": null'),
    "thought alone": message('"content": "<think>3"'),
    "thought that ends": message('"content": "3</think>"'),
    "null": call("null"),
    "a number": call("4"),
}
"""None is the answer; the model may go on."""


async def test_odd_completions_are_read_and_are_the_models_result(folder: Path) -> None:
    """Each has its turn in the record, and none is asked for again."""
    sent = TAKEN | ODD

    def script(asked: Asked) -> Says | Sends:
        return RIGHT if asked.heard.turns else Sends(sent[case_of(asked)])

    runs = await runs_of(folder, script, *sent)
    wrong: list[str] = []
    for case in sent:
        run, rewarded = runs[case], 1.0 if case in TAKEN else None
        receipt = run.receipt
        by_agent = receipt is not None and receipt.cause is Cause.AGENT
        if not by_agent or not run.turns or any(turn.error for turn in run.turns):
            wrong.append(f"{case}: {receipt}, {run.turns}")
        if rewarded and (run.reward, len(run.turns)) != (rewarded, 1):
            wrong.append(f"{case}: reward {run.reward} after {len(run.turns)} turns")
    assert not wrong, "\n".join(wrong)


async def test_half_a_character_that_a_world_shows_reaches_the_model(folder: Path) -> None:
    """As U+FFFD: the request can be written, and the run goes on."""
    shown: list[str] = []

    def script(asked: Asked) -> Says:
        shown.extend(asked.heard.results)
        return RIGHT if asked.heard.turns else Says(calls=(Call("half"),))

    run = (await runs_of(folder, script, "half"))["half"]
    assert (shown, run.reward) == (["half \ufffd"], 1.0)


async def test_a_model_that_thinks_until_its_time_is_up_has_used_it_itself(folder: Path) -> None:
    """A provider that has replied once works, however long the next reply takes."""
    over = threading.Event()

    def script(asked: Asked) -> Says:
        if asked.heard.turns == 0:
            return Says(calls=(Call("step", {"actions": []}),))
        over.wait(PATIENCE_S)
        return RIGHT

    try:
        run = (await runs_of(folder, script, "thinks", timeout_s=3))["thinks"]
    finally:
        over.set()
    assert run.receipt is not None
    assert (run.receipt.outcome, run.receipt.cause) == (Outcome.CANCELLED, Cause.AGENT)
    assert "--timeout" in (run.receipt.error or "")
