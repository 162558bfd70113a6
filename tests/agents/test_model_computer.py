"""`hud-mcp eval --set tools=computer`: a model with its provider's own computer tool."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from provider_server import Asked, Call, Says, provider_server
from pydantic import ValidationError

from hud_mcp import Store
from hud_mcp.agents.model.options import ModelOptions
from hud_mcp.plugins.models.gateway.keys import KEYS
from hud_mcp.plugins.models.requests import find_computer

NAMES = [name for names in KEYS.values() for name in names[:1]]
ROOT = Path(__file__).resolve().parents[2]
PIXEL = {"data": "AAAA", "mime_type": "image/jpeg"}
CLICK = {"x": 640, "y": 90}
CASES: dict[str, tuple[str, str, Call, dict[str, Any]]] = {
    "anthropic:claude-opus-5": (
        "computer", "computer_20251124",
        Call("computer", {"action": "left_click", "coordinate": [640, 90]}),
        {"type": "tool_result", "is_error": False},
    ),
    "anthropic:claude-next": (
        "computer_toolset_20260801", "computer_toolset_20260801",
        Call("left_click", {"coordinate": [640, 90], "toolset_name": "computer"}),
        {"toolset_name": "computer", "name": "left_click"},
    ),
    "openai:computer-use-preview": (
        "computer", "computer",
        Call("computer_call", {"actions": [{"type": "click", "button": "left", **CLICK}]}),
        {"type": "computer_call_output"},
    ),
    "google:gemini-2.5-computer-use": (
        "computer", "computerUse", Call("click_at", {"x": 500, "y": 112.5}),
        {"name": "click_at", "response": {"url": ""}},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("model", CASES)
def test_a_model_works_with_its_providers_own_computer_tool(model: str, tmp_path: Path) -> None:
    """It is declared as its provider has it, clicks where the model says, and gives a picture."""
    tools, declared, call, result = CASES[model]

    def script(asked: Asked) -> Says:
        first = asked.heard.turns == 0
        return Says(calls=(call if first else Call("response", {"answer": "59.90"}),))

    with provider_server(script) as server:
        url = server.base_url(model.partition(":")[0])
        done = subprocess.run(
            [sys.executable, "-m", "hud_mcp", "eval", "quickstart", "--filter", "shop-price-lamp",
             "--model", model, "--base-url", url, "--tools", tools, "--store", "s.sqlite3",
             "--report", "r.html"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "PYTHONPATH": str(ROOT), **dict.fromkeys(NAMES, "a key")},
        )  # fmt: skip
    assert "over 1 graded of 1 run" in done.stdout, done.stdout + done.stderr
    first, second = server.asked
    assert any(declared in (tool.get("type"), *tool) for tool in first.body["tools"])
    assert not {"step", "act", "screenshot"} & {*first.heard.tools}
    assert list(_found(second.body, result)), json.dumps(second.body)[:3000]
    assert second.heard.pictures == 1
    assert "The screen is" not in first.heard.prompt
    (step,) = [step for step in _steps(tmp_path) if step.kind == "step"]
    assert step.actions[0]["type"] == "click"
    assert step.actions[0]["point"] == pytest.approx(CLICK)


def _found(value: Any, wanted: dict[str, Any]) -> Any:
    """Every object in JSON that has what is wanted."""
    if isinstance(value, dict) and wanted.items() <= value.items():
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _found(each, wanted)


def _steps(folder: Path) -> list[Any]:
    """The steps of the one run that is recorded."""
    found: list[Any] = []

    async def read() -> None:
        store = Store(folder / "s.sqlite3")
        (job,) = await store.list_jobs()
        (run,) = (await store.load_job(job.id))[1]
        found.extend(run.steps)
        await store.close()

    anyio.run(read)
    return found


def test_openai_s_calls_are_functions_to_the_library_and_go_back_as_they_came() -> None:
    """With the picture as their output; what else was said follows it."""
    computer = find_computer("openai", "computer")
    item = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "actions": [{"type": "wait"}]}
    assert computer.receive is not None
    (made,) = computer.receive({"output": [item]})["output"]
    assert (made["type"], made["name"], made["call_id"]) == ("function_call", "computer", "c1")
    output = [
        {"type": "input_text", "text": "Refused."},
        {"type": "input_image", "image_url": "data:,"},
    ]
    stand_in = {"type": "function", "name": "computer", "description": '{"type": "computer"}'}
    sent = computer.send(
        {
            "tools": [stand_in],
            "input": [made, {"type": "function_call_output", "call_id": "c1", "output": output}],
        }
    )
    assert sent["tools"] == [{"type": "computer"}]
    shown = {"type": "computer_screenshot", "image_url": "data:,"}
    assert sent["input"] == [
        item,
        {"type": "computer_call_output", "call_id": "c1", "output": shown},
        {"role": "user", "content": output[:1]},
    ]


def test_gemini_s_results_have_their_own_pictures() -> None:
    """However far from them the library puts pictures, each goes to its result."""
    names = ("click_at", "wait_5_seconds")
    results = [
        {"functionResponse": {"name": name, "response": {"output": [["See file a."]]}}}
        for name in names
    ]
    begins, ends = {"text": '<pyai:tool_result tool_name="x">'}, {"text": "</pyai:tool_result>"}
    apart = [begins, {"inlineData": PIXEL}, ends]
    contents = [{"role": "user", "parts": results}, {"role": "user", "parts": apart * 2}]
    sent = find_computer("google", "computer").send({"contents": contents, "tools": []})
    assert sent["contents"] == [
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": name, "response": {"url": ""}, "parts": [{"inlineData": PIXEL}]
                    }
                }
                for name in names
            ],
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("openai-compatible:x", {"base_url": "http://h/v1"}, "leave it out for openai-compatible"),
        ("openai:x", {"tools": "computer_20250124"}, "is Anthropic's; for openai: write"),
        ("google:x", {"look": "text"}, "leave out --look text"),
    ],
)
def test_a_computer_tool_that_a_model_cannot_have_is_refused_at_the_start(
    name: str, more: dict[str, Any], said: str
) -> None:
    """The text says what to write."""
    with pytest.raises(ValidationError, match=said):
        ModelOptions.model_validate({"name": name, "tools": "computer", **more})
