"""WebVoyager's judge sees the task, the answer and the last picture, and says one of two things."""

import base64
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import orjson
import pytest
from judge_server import judge_server
from waiting import PATIENCE_S

from hud_mcp import WebVoyagerJudge, load_taskset
from hud_mcp.errors import GraderFailed
from hud_mcp.loading.protocols import PROTOCOLS, Conduct
from hud_mcp.plugins.hud import gym

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def judge_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is named."""
    monkeypatch.setenv("HUD_MCP_JUDGE_MODEL", "eyes")


@pytest.mark.usefixtures("judge_is_named")
@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("It was found. SUCCESS", 1.0),
        ("The verdict is NOT SUCCESS", 0.0),
        ("SUCCESS? No: NOT SUCCESS.", 0.0),
    ],
)
@pytest.mark.parametrize("path", ["/v1", "/v1/messages"])
async def test_the_verdict_is_read_by_the_published_rule(
    reply: str, value: float, path: str
) -> None:
    """In both formats of requests, with the picture where each has it."""
    with anyio.fail_after(PATIENCE_S):
        async with judge_server(lambda _: reply) as server:
            got = await WebVoyagerJudge.grade(
                answer="42", question="How much?", pictures=[PNG],
                base_url=server.url.removesuffix("/v1") + path,
            )  # fmt: skip
            (asked,) = server.asked
    assert got.value == value
    content = asked.body["messages"][-1]["content"]
    assert content[0]["text"] == (
        "TASK: How much?\nResult Response: 42\n1 screenshots at the end: "
    )
    assert base64.b64encode(PNG).decode() in orjson.dumps(content[1]).decode()
    assert content[2]["text"] == "Your verdict:\n"
    whole = orjson.dumps(asked.body).decode()
    assert "As an evaluator, you will be presented with three primary components" in whole
    assert "response_format" not in asked.body


@pytest.mark.usefixtures("judge_is_named")
async def test_a_judge_that_says_neither_gives_no_score() -> None:
    """It is a failure of the grader, and never a 0; no answer is 0, and nobody is asked."""
    with anyio.fail_after(PATIENCE_S):
        async with judge_server(lambda _: "I cannot tell.") as server:
            with pytest.raises(GraderFailed, match="said neither 'SUCCESS' nor 'NOT SUCCESS'"):
                await WebVoyagerJudge.grade(answer="x", question="q", base_url=server.url)
            empty = await WebVoyagerJudge.grade(answer=" ", question="q", base_url=server.url)
            assert empty.value == 0.0
            assert len(server.asked) == 1


@pytest.fixture
def local_copy(tmp_path: Path) -> Iterator[str]:
    """A site on the loopback that stands for the row's."""
    (tmp_path / "index.html").write_text("<h1>Lamps</h1><p>The lamp costs 42.50 EUR.</p>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.browser
@pytest.mark.usefixtures("judge_is_named")
async def test_a_row_runs_on_a_local_copy_of_its_site(
    tmp_path: Path, local_copy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As published: the wording, the window, the judge's model, and the picture that it gets."""
    folder = tmp_path / "sets" / "webvoyager"
    folder.mkdir(parents=True)
    row = {"web_name": "Shop", "id": "Shop--0", "ques": "How much is a lamp?"}
    row |= {"web": "https://www.shop.example/"}
    (folder / "WebVoyager_data.jsonl").write_bytes(orjson.dumps(row))
    (folder / "reference_answer.json").write_bytes(b"{}")
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    (row_here,) = await load_taskset("WebVoyager", hosts={"shop.example": local_copy})
    task = PROTOCOLS["webvoyager"].published(row_here, Conduct())
    assert task.prompt == (
        f"Now given a task: How much is a lamp?  Please interact with {local_copy}/ and get the "
        "answer."
    )
    with anyio.fail_after(120):
        async with judge_server(lambda _: "SUCCESS") as server:
            monkeypatch.setenv("HUD_MCP_JUDGE_URL", server.url)
            env = await gym.make(task)
            observation, *_ = await env.step()
            assert "The lamp costs 42.50 EUR." in (observation.text or "")
            await env.step([{"type": "response", "text": "42.50 EUR"}])
            await env.evaluate()
            await env.close()
            assert env.reward == 1.0
            asked = server.asked[0].body
            assert (asked["model"], asked["max_tokens"], asked["seed"], asked["temperature"]) == (
                "gpt-4-vision-preview", 1000, 42, 0
            )  # fmt: skip
            picture = asked["messages"][-1]["content"][1]["image_url"]["url"]
    kind, _, data = picture.partition(",")
    assert kind == "data:image/png;base64"
    assert orjson.dumps(task.context) == b'{"viewport_width":1024,"viewport_height":768}'
    shown = base64.b64decode(data)
    assert (int.from_bytes(shown[16:20]), int.from_bytes(shown[20:24])) == (1024, 768)
