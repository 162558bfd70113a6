"""Models for servers that ask their client for one, where the author allows it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from judge_server import Asked, JudgeServer, judge_server, status
from peers import Held, Peer, stdio_peer
from provider_server import Asked as Request
from provider_server import Call, Says, provider_server
from running_servers import stored_in

from hud_mcp import evaluate
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.plugins.servers.use import load_use
from hud_mcp.store import opened_store

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ASKING_SERVER = Path(__file__).parent / "asking_server.py"
SECRET, KEY = "a token of theirs 4711", "a key of the operator 7120"
ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

world = ToolServer(
    ["/usr/bin/python3", "asking_server.py"], secrets=["ASKING_TOKEN"], sampling={sampling}
)
env = Environment("asking", world=world)


@env.template(description="Ask a model")
async def ask(server: ToolServerWorld):
    await server.shell.write("notes.txt", "begun")
    yield "Ask a model."
    yield float(server.calls.errors_at_most(0))


tasks = [ask()]
"""


def write(folder: Path, *, sampling: bool) -> str:
    """Write an environment over the asking server."""
    shutil.copy(ASKING_SERVER, folder)
    (folder / "asking_env.py").write_text(ENVIRONMENT.format(sampling=sampling))
    return str(folder / "asking_env.py")


def variables(judge: JudgeServer | None) -> dict[str, str]:
    """The variables of our server's process."""
    told = {"ASKING_TOKEN": SECRET}
    if judge is not None:
        told |= {"HUD_MCP_JUDGE_URL": judge.url, "HUD_MCP_JUDGE_MODEL": "judge-1"}
    return told | {"HUD_MCP_JUDGE_API_KEY": KEY}


async def asked_in(peer: Peer, task: Held) -> list[Any]:
    """The recorded requests of the server, one list for each call."""
    steps = [step for step in (await peer.record(task)).steps if step.kind == "tool"]
    replies: list[Any] = [step.info["hud-mcp/reply"] for step in steps]
    return [reply.get("asked", []) for reply in replies]


@pytest.mark.long
async def test_a_server_is_answered_by_the_model_of_judges(tmp_path: Path) -> None:
    """With its rules and its bound on tokens; the step says so, and secrets stay here."""

    def script(asked: Asked) -> str:
        return f"heard {len(asked.body['messages'])}"

    async with judge_server(script) as judge:
        words, told = (write(tmp_path, sampling=True),), variables(judge)
        async with stdio_peer(tmp_path, words, env=told) as peer:
            task = await peer.start("ask")
            said = await peer.ok("sample", session=task.session)
            assert '"model": "judge-1"' in said.text
            assert '"text": "heard 2"' in said.text
            picture = await peer.ok("sample_all", session=task.session)
            assert '"text": "heard 4"' in picture.text
            assert [[(e["method"], e["action"], e["model"]) for e in each] for each in (
                await asked_in(peer, task)
            )] == [[("sampling/createMessage", "answered", "judge-1")]] * 2  # fmt: skip
    first, second = (each.body for each in judge.asked)
    assert (first["max_tokens"], second["max_tokens"]) == (5, 4096)
    assert [each["role"] for each in second["messages"]] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip
    assert second["messages"][0]["content"] == "Be [masked]"
    assert second["messages"][3]["content"][1]["image_url"]["url"].startswith("data:image/png")
    assert (second["temperature"], second["stop"]) == (0.5, ["END"])
    assert judge.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.long
async def test_a_server_is_answered_by_the_model_that_is_named_for_it(tmp_path: Path) -> None:
    """In place of the judges'; the step has its tokens, and a wrong name is nobody's model."""

    def script(asked: Request) -> Says:
        return Says(f"heard {asked.heard.prompt}", tokens=(30, 7))

    with provider_server(script) as server:
        async with judge_server(lambda _: "never") as judge:
            words, named = (
                (write(tmp_path, sampling=True),),
                {
                    "HUD_MCP_SAMPLING_MODEL": "openai-compatible:model-7",
                    "HUD_MCP_SAMPLING_URL": server.base_url("openai-chat"),
                },
            )
            async with stdio_peer(tmp_path, words, env=variables(judge) | named) as peer:
                task = await peer.start("ask")
                said = await peer.ok("sample_all", session=task.session)
                assert '"model": "openai-compatible:model-7"' in said.text
                ((asked,),) = await asked_in(peer, task)
                assert (asked["action"], asked["model"], asked["tokens"]) == (
                    "answered", "openai-compatible:model-7", 37,
                )  # fmt: skip
            named["HUD_MCP_SAMPLING_URL"] = ""
            async with stdio_peer(tmp_path, words, env=variables(judge) | named) as peer:
                task = await peer.start("ask")
                assert "no model" in (await peer.ok("sample", session=task.session)).text
    assert judge.asked == []
    (body,) = (each.body for each in server.asked)
    system, first, _answer, last = body["messages"]
    assert (system["role"], system["content"], first["role"]) == ("system", "Be [masked]", "user")
    assert last["content"][1]["image_url"]["url"].startswith("data:image/png")
    assert (body["temperature"], body["stop"]) == (0.5, ["END"])


async def test_a_jobs_model_answers_its_servers_and_is_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model` plays, and its server asks the same model; only the agent's turns are its own."""

    def script(asked: Request) -> Says:
        if not asked.heard.tools:
            return Says("for the server", tokens=(30, 7))
        called = asked.heard.results
        return Says(calls=(Call("response", {"answer": ""}) if called else Call("sample", {}),))

    monkeypatch.setenv("ASKING_TOKEN", SECRET)
    with provider_server(script) as server:
        model = ModelOptions(name="openai-compatible:m", base_url=server.base_url("openai-chat"))
        store = str(tmp_path / "store.sqlite3")
        job = await evaluate(write(tmp_path, sampling=True), model, store=store)
    assert job.reward == 1.0, job
    assert len(server.asked) == 3
    async with opened_store(store) as opened:
        use = await load_use(opened.database, job.id)
    assert use is not None
    assert use["sampled"] == {"requests": 1, "tokens": 37}


@pytest.mark.long
@pytest.mark.parametrize("how", ["not allowed", "no model"])
async def test_a_server_is_refused_without_a_word_of_its_author_or_a_model(
    how: str, tmp_path: Path
) -> None:
    """The server gets an error, the step says so, and no model is asked."""
    async with judge_server(lambda _: "never") as judge:
        words = (write(tmp_path, sampling=how != "not allowed"),)
        told = variables(None if how == "no model" else judge)
        async with stdio_peer(tmp_path, words, env=told) as peer:
            task = await peer.start("ask")
            said = await peer.ok("sample", session=task.session)
            assert '"code": -' in said.text
            refused = {"method": "sampling/createMessage", "action": "refused"}
            assert await asked_in(peer, task) == [[refused]]
    assert judge.asked == []


@pytest.mark.long
async def test_what_a_server_asks_of_a_model_is_bounded(tmp_path: Path) -> None:
    """A session has so many requests; odd ones are refused, and the model's own words stay here."""

    def script(asked: Asked) -> Any:
        return status(401, f"no key {KEY}") if asked.number == 0 else "heard"

    async with judge_server(script) as judge:
        words, told = (write(tmp_path, sampling=True),), variables(judge)
        async with stdio_peer(tmp_path, words, env=told) as peer:
            task, other = await peer.start("ask"), await peer.start("ask")
            failed = await peer.ok("sample", session=task.session)
            assert "The model did not answer" in failed.text
            assert KEY not in failed.text
            assert judge.url not in failed.text
            for tool in ("sample_tools", "sample_huge", "sample_nothing", "sample_sound"):
                assert "-32602" in (await peer.ok(tool, session=task.session)).text, tool
            assert len(judge.asked) == 1
            for _ in range(15):
                assert "heard" in (await peer.ok("sample", session=task.session)).text
            assert "20 requests" in (await peer.ok("sample", session=task.session)).text
            assert "heard" in (await peer.ok("sample", session=other.session)).text
    assert len(judge.asked) == 17
    assert KEY.encode() not in stored_in(tmp_path)
