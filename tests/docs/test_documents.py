"""The documents' own programs run here, with `hud` changed into `hud_mcp` and nothing else.

Each block stands as its document has it; where one leaves something out (`…`), the test says
what it fills in.
"""

import asyncio
import inspect
import shlex
import socket
import ssl
import subprocess
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp import Answer, Capability, Environment
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.hud import gym
from hud_mcp.task import Task
from hud_mcp.taskset import TaskSet
from hud_mcp.values.call import FunctionConfig
from hud_mcp.worlds.browser.chromium import find_chromium


def run_block(block: str, **known: Any) -> dict[str, Any]:
    """Run a block as a program of its own, and return what it leaves."""
    names: dict[str, Any] = {"__name__": "block", **known}
    exec(compile(textwrap.dedent(block), "block.py", "exec"), names)  # ours
    return names


LOG_IN = """
    from hud_mcp.task import Task

    task = Task(
        prompt="Log in to example.com with username 'test'",
        gym="hud-browser", # Request a browser environment

        setup=[ # Actions run by gym.make(task)

            ("goto", "https://example.com/login")
        ],
        evaluate={ # Logic run by env.evaluate()

            "function": "page_contains",
            "args": ["test"]
        }
    )
    """


def test_a_task_is_created_as_document_002_creates_one() -> None:
    """Document 002, "Creating a Task"."""
    task = run_block(LOG_IN)["task"]
    assert task.gym == "hud-browser"
    assert task.setup == (FunctionConfig(function="goto", args=("https://example.com/login",)),)
    assert task.evaluate == (FunctionConfig(function="page_contains", args=("test",)),)


PAGE = """<!doctype html><title>Log in</title><h1>Log in</h1>
<form onsubmit="document.body.textContent = 'Hello, ' + user.value; return false">
<input id="user" aria-label="Username"><button>Log in</button></form>"""


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for example.com that nobody has signed, and its key."""
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=example.com", "-addext", "subjectAltName=DNS:example.com"]
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True, timeout=PATIENCE_S)
    return made, key


@pytest.fixture
async def example_com(
    certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """https://example.com on the loopback, with a certificate that this browser takes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = PAGE.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    browser = tmp_path / "chromium"
    real = shlex.quote(find_chromium() or "")
    browser.write_text(f'#!/bin/sh\nexec {real} --ignore-certificate-errors "$@"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("HUD_MCP_CHROMIUM", str(browser))
    look_up, connect = socket.getaddrinfo, asyncio.open_connection

    def at_home(host: Any, *rest: Any, **more: Any) -> Any:
        return look_up("127.0.0.1" if host == "example.com" else host, *rest, **more)

    async def to_its_port(host: str, wanted: int, **more: Any) -> Any:
        return await connect(host, port if wanted == 443 else wanted, **more)

    monkeypatch.setattr(socket, "getaddrinfo", at_home)
    monkeypatch.setattr(asyncio, "open_connection", to_its_port)
    yield
    server.close()


@pytest.mark.anyio
@pytest.mark.browser
@pytest.mark.usefixtures("example_com")
async def test_the_task_of_document_002_is_made_worked_on_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents 000 and 002: make, step, evaluate, get_urls and close, on example.com's page."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    with anyio.fail_after(120):
        env = await gym.make(run_block(LOG_IN)["task"])
        observation, reward, terminated, info = await env.step()
        assert "Username" in (observation.text or "")
        assert (observation.screenshot or "").startswith("iVBOR")  # a PNG, as base64
        assert (reward, terminated, info.get("error")) == (0.0, False, None)
        assert await env.evaluate() == 0.0
        await env.step([{"type": "type", "selector": "#user", "text": "test"}])
        await env.step([{"type": "click", "selector": "button"}])
        assert await env.evaluate() == 1.0
        assert set(await env.get_urls()) == {"url", "live_url"}
        await env.close()
        await env.close()
    assert env.reward == 1.0


@pytest.mark.anyio
async def test_a_set_of_hud_s_platform_says_how_to_get_it() -> None:
    """Document 002, "Loading a TaskSet": the name is known, and its rows are not shipped."""
    left = run_block("""
        from hud_mcp import load_taskset

        async def load():
            taskset = await load_taskset("OSWorld-Ubuntu")
            print(f"Number of tasks: {len(taskset)}") # TaskSet acts like a list

            first_task = taskset[0]
        """)
    with pytest.raises(SourceNotFound, match=r"github\.com/xlang-ai/OSWorld"):
        await left["load"]()


@each_of(
    ("written", "calls"),
    [
        ("browser.maximize", [("browser.maximize",)]),
        (("goto", "https://google.com"), [("goto", "https://google.com")]),
        (
            {"function": "wait_for_element", "args": ["#submit"]},
            [("wait_for_element", "#submit")],
        ),
        ([("goto", "page1"), ("click", "#next")], [("goto", "page1"), ("click", "#next")]),
        ((), []),
        (("contains_text", "Success!"), [("contains_text", "Success!")]),
        (("file_exists", "/path/to/output.txt"), [("file_exists", "/path/to/output.txt")]),
    ],
)
def test_each_configuration_style_of_document_002_is_read(written: Any, calls: list[Any]) -> None:
    """Document 002, "Configuration Styles", in `setup` and in `evaluate`."""
    wanted = tuple(FunctionConfig(function=name, args=args) for name, *args in calls)
    task = Task(prompt="x", gym="hud-browser", setup=written, evaluate=written)
    assert task.setup == task.evaluate == wanted


def test_a_taskset_is_created_as_document_002_creates_one() -> None:
    """Document 002, "Creating a TaskSet Manually"; `…` is a prompt each."""
    block = """
        from hud_mcp.task import Task
        from hud_mcp.taskset import TaskSet

        task1 = Task(...); task2 = Task(...)
        my_taskset = TaskSet(tasks=[task1, task2], description="My set")
        """
    filled = block.replace("...", 'prompt="one"', 1).replace("...", 'prompt="two"', 1)
    made: TaskSet = run_block(filled)["my_taskset"]
    assert (made.description, made.id) == ("My set", None)
    assert len(made) == len(made.tasks) == 2
    assert made[0].prompt == "one"
    assert [task.prompt for task in made] == ["one", "two"]


def test_a_question_is_created_as_document_002_creates_one() -> None:
    """Document 002, "Defining Question-Answering (QA) Tasks"."""
    left = run_block("""
        from hud_mcp.task import Task

        qa_task = Task(
            prompt="What is the powerhouse of the cell?",
            gym="hud-browser", # Or potentially a future "qa" type

            # No complex setup needed for pure QA

            setup=(),
            # Evaluation checks the agent's final submitted text response

            evaluate=("response_includes", "mitochondria"), # Assumes a function of the response

        )
        """)
    assert left["qa_task"].setup == ()
    assert left["qa_task"].evaluate == (
        FunctionConfig(function="response_includes", args=("mitochondria",)),
    )


@each_of("name", ["prompt", "gym", "setup", "evaluate", "id", "metadata", "config", "target"])
def test_a_task_has_the_attributes_of_document_002(name: str) -> None:
    """Document 002, "Key Attributes"; those that may be None are given so."""
    task = Task(prompt="x", id=None, metadata=None, config=None, gym=None)
    assert hasattr(task, name)


@pytest.mark.anyio
async def test_an_environment_of_document_004_asks_and_grades() -> None:
    """Document 004, "Registering tasks"."""
    left = run_block("""
        from hud_mcp import Environment
        env = Environment()

        @env.template(id="count", description="Count a letter", returns=int)
        async def count_letter(word: str = "strawberry", letter: str = "r"):
            answer = yield f"How many '{letter}'s in '{word}'?"
            yield 1.0 if str(word.count(letter)) in str(answer.content) else 0.0
        """)
    env, count = left["env"], left["count_letter"]
    assert (env.name, env.version) == ("environment", "0.0.1")
    assert count() == Task(
        id="count", env="environment", template="count", description="Count a letter"
    )
    steps = count.run({"word": "lamp", "letter": "a"}, None)
    assert await anext(steps) == "How many 'a's in 'lamp'?"
    assert await steps.asend(Answer(content=1, raw="1")) == 1.0


@pytest.mark.anyio
async def test_hooks_and_capabilities_of_document_004(tmp_path: Path) -> None:
    """Document 004, "Capabilities" and "Lifecycle hooks"; hooks run around start and stop."""
    left = run_block(
        """
        from hud_mcp.environment import Environment
        env = Environment()

        env.workspace("/workspace")    # attach a Workspace; publishes "shell" (ssh/2) at serve
        env.add_capability(cap)        # publish concrete wire data (replaces a same-named entry)

        @env.initialize
        async def _seed():
            (ROOT / "fixture.txt").write_text("...")

        @env.shutdown
        async def _stop():
            ...
        """,
        ROOT=tmp_path,
        cap=Capability.cdp(name="page", url="ws://127.0.0.1:9222"),
    )
    env: Environment = left["env"]
    assert "page" in [capability.name for capability in env.capabilities]
    await env.start()
    assert (tmp_path / "fixture.txt").read_text() == "..."
    await env.stop()


def test_the_signatures_of_document_004() -> None:
    """Document 004: the constructor and the decorator take what the document says, so."""
    init = inspect.signature(Environment.__init__).parameters
    documented = {"name": "environment", "version": "0.0.1", "capabilities": None}
    assert {name: init[name].default for name in documented} == documented
    assert init["name"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {init["version"].kind, init["capabilities"].kind} == {inspect.Parameter.KEYWORD_ONLY}
    template = inspect.signature(Environment.template).parameters
    defaults = {"id": None, "description": "", "input": None, "returns": None}
    assert {name: template[name].default for name in defaults} == defaults
    assert all(template[name].kind is inspect.Parameter.KEYWORD_ONLY for name in defaults)


def test_the_names_of_the_documents_are_where_they_say() -> None:
    """Every import line of the documents, after the change."""
    run_block("""
        from hud_mcp import load_job
        from hud_mcp import Environment
        from hud_mcp.environment import Environment
        from hud_mcp.task import Task
        from hud_mcp.taskset import TaskSet
        from hud_mcp.carl.envs.carl_env import CARLEnv
        """)
    assert hud_mcp.TaskSet is TaskSet
