"""Nobody but the operator measures, resets or starts in the operator's name.

An agent that could would write its own reward, or ask the grader until it agrees.
"""

import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import types
from mcp.shared.exceptions import MCPError
from peers import ENVELOPE, WAYS, Peer, Way, http_peer, stdio_peer
from peers import HttpServer as Server
from places import BENCH, PATIENCE_S, TOKEN, bench_task, serving, token_file
from pydantic import TypeAdapter

from hud_mcp.channel.client import ChannelClient
from hud_mcp.errors import GymMakeException, OperatorRefused
from hud_mcp.plugins.hud import gym
from hud_mcp.plugins.hud.operations import OPERATIONS
from hud_mcp.plugins.hud.wire.streams import ChannelRefused
from hud_mcp.session.caller import CREDENTIAL, OPERATOR_TOKEN

pytestmark = pytest.mark.anyio

ANN = "ann-s-token-of-a-test"
WRONG = ("", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), ANN, None, 3, True, [TOKEN], {"a": TOKEN})
"""What is not the operator's token."""


@contextmanager
def http(folder: Path, *options: str, token: bool = True) -> Iterator[Server]:
    """A server over HTTP, with an operator's token or without."""
    folder.mkdir(exist_ok=True)
    store, log = folder / "store.sqlite3", folder / "log"
    given = ["--operator-token-file", str(token_file(folder))] if token else []
    command = [
        "serve",
        str(BENCH),
        "--http",
        "127.0.0.1:0",
        "--store",
        str(store),
        *given,
        *options,
    ]
    with serving(command, log) as (process, url):
        yield Server(process, url, store, log)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes the operator's calls."""
    with http(tmp_path_factory.mktemp("operated")) as found:
        yield found


@asynccontextmanager
async def peer_by(way: Way, server: Server, folder: Path, **env: str) -> AsyncIterator[Peer]:
    """An agent's connection of one kind, to a server that has an operator."""
    mode = "legacy" if way.era == "legacy" else "auto"
    if way.transport == "http":
        async with http_peer(server, era=mode) as peer:
            yield peer
    else:
        token = token_file(folder)
        options = ("--operator-token-file", str(token))
        async with stdio_peer(folder, [str(BENCH)], *options, era=mode, env=env) as peer:
            yield peer


async def operate(peer: Peer, name: str, credential: Any, **arguments: Any) -> Any:
    """Call an operation with some credential, as a raw request."""
    params = {"name": name, "arguments": arguments, "_meta": {CREDENTIAL: credential}}
    request = types.CallToolRequest(params=types.CallToolRequestParams.model_validate(params))
    with anyio.fail_after(PATIENCE_S):
        return await peer.client.session.send_request(request, TypeAdapter(types.CallToolResult))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_without_the_token_no_operation_exists(
    way: Way, server: Server, tmp_path: Path
) -> None:
    """The answer is that to any unknown tool, and no list has one."""
    async with peer_by(way, server, tmp_path) as peer:
        listed = await peer.client.list_tools()
        assert not [tool.name for tool in listed.tools if tool.name.startswith("hud-mcp/")]
        assert "hud-mcp/" not in listed.model_dump_json()
        for name in (*OPERATIONS, "hud-mcp/nothing", "hud-mcp/"):
            for credential in WRONG:
                with pytest.raises(MCPError) as caught:
                    await operate(peer, name, credential, session="sess-1", task={})
                error = caught.value.error
                assert (error.code, error.message) == (-32602, f"Unknown tool: {name}")
                assert error.data is None
        with pytest.raises(MCPError, match="Unknown tool: hud-mcp/nothing"):
            await operate(peer, "hud-mcp/nothing", TOKEN)
        begun = await operate(peer, "hud-mcp/start", TOKEN, task=bench_task().row)
        assert not begun.is_error
        assert begun.structured_content["session"].startswith("sess-")


@pytest.mark.long
async def test_the_refusal_is_byte_for_byte_that_of_a_server_without_an_operator(
    server: Server, tmp_path: Path
) -> None:
    """Nothing shows that there is one: neither the body nor the headers."""
    with http(tmp_path / "none", token=False) as other:
        seen: list[list[tuple[int, bytes, list[str]]]] = []
        for each in (server, other):
            replies: list[tuple[int, bytes, list[str]]] = []
            async with httpx.AsyncClient(timeout=PATIENCE_S) as web:
                for name in (*OPERATIONS, "hud-mcp/evaluatf"):
                    for meta in ({}, {CREDENTIAL: "wrong"}, {CREDENTIAL: TOKEN[:-1]}):
                        reply = await web.post(each.url, **modern(name, meta))
                        kept = sorted(set(reply.headers) - {"date"})
                        replies.append((reply.status_code, reply.content, kept))
            seen.append(replies)
        assert seen[0] == seen[1]
        one, another = seen[0][0][1], seen[0][-1][1]
        assert one.replace(OPERATIONS[0].encode(), b"X") == another.replace(
            b"hud-mcp/evaluatf", b"X"
        )


def modern(name: str, meta: dict[str, Any]) -> dict[str, Any]:
    """A request of the 2026 era, as it goes over the wire."""
    params = {"name": name, "arguments": {"session": "sess-1"}, "_meta": {**ENVELOPE, **meta}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    return {"content": json.dumps(body), "headers": headers}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_an_operator_s_session_answers_to_no_agent_that_knows_its_id(
    way: Way, server: Server, tmp_path: Path
) -> None:
    """Its id is as good as one that nobody has, for every tool and resource, word for word."""
    async with peer_by(way, server, tmp_path) as peer:
        begun = await operate(peer, "hud-mcp/start", TOKEN, task=bench_task().row)
        real = begun.structured_content["session"]
        guess = f"sess-{secrets.token_hex(16)}"
        for tool, arguments in (
            ("step", {"actions": [{"type": "custom", "action": "end"}]}),
            ("act", {"type": "custom", "action": "end"}),
            ("screenshot", {}),
            ("response", {"answer": "lamp"}),
            ("task_status", {}),
            ("cancel_task", {}),
        ):
            said = [await peer.error(tool, session=each, **arguments) for each in (real, guess)]
            assert said[0] == said[1]
            assert said[0].startswith("There is no such session.")
        if way.remembers:
            assert "No session yet" in await peer.error("task_status")
        for what in ("trajectory", "screenshot"):
            refusals: list[str] = []
            for each in (real, guess):
                with pytest.raises(MCPError) as caught:
                    await peer.client.read_resource(f"hud://sessions/{each}/{what}")
                refusals.append(str(caught.value).replace(each, "ID"))
            assert refusals[0] == refusals[1]
        measured = await operate(peer, "hud-mcp/evaluate", TOKEN, session=real)
        assert measured.structured_content["value"] == 0.0, "and it goes on, untouched"


async def test_an_agent_s_session_answers_to_no_operator(server: Server) -> None:
    """The token opens what the operator started, and nothing of an agent's."""
    async with http_peer(server) as peer:
        held = await peer.start("say")
        for name in OPERATIONS[1:]:
            reply = await operate(peer, name, TOKEN, session=held.session)
            assert reply.is_error
            assert reply.content[0].text.startswith("There is no such session.")
            assert reply.meta == {"hud-mcp/error": "SessionNotFound"}
        assert (await peer.status(held.session))["state"] == "open"


async def test_an_operation_that_is_misused_says_what_it_takes(server: Server) -> None:
    """Bad parameters are the operator's errors, and nothing breaks."""
    async with http_peer(server) as peer:
        begun = await operate(peer, "hud-mcp/start", TOKEN, task=bench_task().row)
        session = begun.structured_content["session"]
        for name, arguments, said in (
            ("hud-mcp/start", {}, "task: a task is an object, not NoneType"),
            ("hud-mcp/start", {"task": "nothing"}, "There is no task 'nothing'."),
            ("hud-mcp/start", {"task": {"prompt": "a", "gym": "moon"}}, "no environment 'moon'"),
            ("hud-mcp/start", {"task": bench_task().row, "job_id": 3}, "job_id: expected text"),
            ("hud-mcp/start", {"task": bench_task().row, "job": {"id": 3}}, "job: "),
            ("hud-mcp/step", {}, "Pass `session`"),
            ("hud-mcp/step", {"session": 4}, "session: expected text, got int"),
            ("hud-mcp/step", {"session": session, "actions": 3}, "expected a list of actions"),
            ("hud-mcp/step", {"session": session, "look": {"image": "bmp"}}, "look: "),
            ("hud-mcp/step", {"session": session, "look": 3}, "look: "),
            ("hud-mcp/evaluate", {"session": session, "calls": 3}, "evaluate: 3 is not a call"),
            ("hud-mcp/reset", {"session": session, "calls": [["put", {}]]}, "words: expected"),
        ):
            reply = await operate(peer, name, TOKEN, **arguments)
            assert reply.is_error
            assert said in reply.content[0].text, reply.content[0].text


@pytest.mark.long
async def test_an_agent_s_bearer_is_not_the_operator_s_and_the_operator_s_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tokens are asked for, one is enough for the operator; an agent has none."""
    with http(tmp_path, "--token", f"ann={ANN}") as server:
        async with http_peer(server, token=ANN) as peer:
            for credential in (ANN, f"ann={ANN}", "#operator"):
                with pytest.raises(MCPError, match="Unknown tool: hud-mcp/start"):
                    await operate(peer, "hud-mcp/start", credential, task=bench_task().row)
        async with http_peer(server, token=TOKEN) as peer:
            with pytest.raises(MCPError, match="Unknown tool: hud-mcp/start"):
                await operate(peer, "hud-mcp/start", None, task=bench_task().row)
        for token, said in ((ANN, "does not take the operator's token"), ("x" * 20, "No server")):
            monkeypatch.setenv(OPERATOR_TOKEN, token)
            with pytest.raises(GymMakeException, match=said):
                await gym.make(bench_task(), url=server.url)
        address = server.url.replace("http://", f"http://{TOKEN}@")
        async with await gym.make(bench_task(), url=address) as env:
            assert await env.evaluate() == 0.0
        assert TOKEN not in server.logged()


@pytest.mark.long
async def test_a_server_without_a_token_takes_no_operator_s_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off by default: neither no token nor any other opens it, and the error says what to do."""
    with http(tmp_path, token=False) as server:
        async with http_peer(server) as peer:
            for credential in WRONG:
                with pytest.raises(MCPError, match="Unknown tool"):
                    await operate(peer, "hud-mcp/start", credential, task=bench_task().row)
        monkeypatch.delenv(OPERATOR_TOKEN, raising=False)
        with pytest.raises(GymMakeException, match=r"none was given. Start it with") as caught:
            await gym.make(bench_task(), url=server.url)
        assert isinstance(caught.value.data["exception"], OperatorRefused)


@pytest.mark.long
async def test_the_token_is_nowhere_that_a_template_or_a_neighbour_looks(tmp_path: Path) -> None:
    """Not in the environment of the server, of its children, or in what /proc shows of it."""
    task = bench_task(evaluate=("environment_has", OPERATOR_TOKEN))
    for env, options in (
        ({OPERATOR_TOKEN: TOKEN}, ()),
        ({}, ("--operator-token-file", str(token_file(tmp_path)))),
    ):
        folder = tmp_path / str(len(options))
        async with stdio_peer(folder, [str(BENCH)], *options, env=env) as peer:
            begun = await operate(peer, "hud-mcp/start", TOKEN, task=task.row)
            session = begun.structured_content["session"]
            measured = await operate(peer, "hud-mcp/evaluate", TOKEN, session=session)
            assert measured.structured_content["value"] == 0.0


@pytest.mark.long
async def test_a_child_of_gym_make_shows_its_token_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its arguments nor its environment hold it, and its file is gone."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv(OPERATOR_TOKEN, TOKEN)
    env = await gym.make(bench_task(), url=f"stdio:{BENCH}")
    try:
        token = env.client._token  # type: ignore[attr-defined]
        assert len(token) == 64
        found = [shown for shown in _children() if b"--operator-token-file" in shown[0]]
        ((arguments, environment),) = (
            shown for shown in found if not {b"--http", b"channel"} & set(shown[0].split(b"\0"))
        )
        for secret in (token.encode(), TOKEN.encode()):
            assert secret not in arguments + environment
        words = arguments.split(b"\0")
        named = os.fsdecode(words[words.index(b"--operator-token-file") + 1])
        assert not await anyio.Path(named).exists()
    finally:
        await env.close()


def _children() -> list[tuple[bytes, bytes]]:
    """The arguments and the environment of each child of this process, as /proc shows them."""
    processes = [p for p in Path("/proc").iterdir() if p.name.isdigit()]
    own = [p for p in processes if _parent(p) == os.getpid()]
    return [((p / "cmdline").read_bytes(), (p / "environ").read_bytes()) for p in own]


def _parent(process: Path) -> int | None:
    try:
        stat = (process / "stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


@pytest.mark.long
async def test_the_channel_knows_no_operation_without_the_token(tmp_path: Path) -> None:
    """A peer with the channel's own token is an agent; ids of the operator's are unknown to it."""
    options = ["--token", ANN, "--operator-token-file", str(token_file(tmp_path))]
    store = str(tmp_path / "store.sqlite3")
    command = ["channel", "serve", str(BENCH), "--store", store, *options]
    with serving(command, tmp_path / "log") as (_, port):
        place = f"tcp://{ANN}@127.0.0.1:{port}"
        async with ChannelClient.connect(place) as peer:
            for name in (*OPERATIONS, "hud-mcp/nothing"):
                for credential in WRONG:
                    with pytest.raises(ChannelRefused) as caught:
                        await peer.call(name, {CREDENTIAL: credential, "session": "sess-1"})
                    assert (caught.value.code, caught.value.data) == (-32601, {})
                    assert caught.value.message == f"method not found: {name}"

        async with await gym.make(bench_task(), url=f"tcp://{TOKEN}@127.0.0.1:{port}") as env:
            session = env._session
            async with ChannelClient.connect(place) as peer:
                with pytest.raises(ChannelRefused, match="no task in progress"):
                    await peer.grade("lamp")
            for each in (session, f"sess-{secrets.token_hex(16)}"):
                with pytest.raises(ChannelRefused, match=f"unknown session: '{each}'"):
                    async with ChannelClient.connect(place, session_id=each):
                        pass
            assert await env.evaluate() == 0.0
        with pytest.raises(GymMakeException, match="does not take the operator's token"):
            await gym.make(bench_task(), url=place)
        with pytest.raises(GymMakeException, match="does not take the operator's token"):
            await gym.make(bench_task(), url=f"tcp://nobody@127.0.0.1:{port}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--token", f"ann={TOKEN}", "--http", "127.0.0.1:0"], "'ann' has the operator's"),
        (
            ["serve", "--channel", "0", "--channel-token", TOKEN],
            "Clients have the operator's token",
        ),
        (["channel", "serve", "--token", TOKEN], "Clients have the operator's token"),
    ],
)
async def test_a_server_does_not_start_where_agents_have_the_operator_s_token(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    """Nor where it is too short to be a secret, or cannot be read."""
    base = [*arguments, str(BENCH), "--store", str(tmp_path / "s.sqlite3"), "--operator-token-file"]
    short = token_file(tmp_path, "short")
    missing = tmp_path / "missing"
    for file, text in ((short, "at least 16"), (missing, "cannot be read")):
        assert text in await _refusal([*base, str(file)])
    assert said in await _refusal([*base, str(token_file(tmp_path))])


async def _refusal(arguments: list[str]) -> str:
    import subprocess  # noqa: PLC0415  # only here
    import sys  # noqa: PLC0415

    from peers import child_environment  # noqa: PLC0415

    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            env=child_environment(),
        )
    assert done.returncode == 1
    return done.stderr.decode()
