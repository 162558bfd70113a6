"""Where the names of the HUD SDK are, and what the name of a gym means."""

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest
from peers import child_environment
from places import PATIENCE_S, Place, bench_task
from tables import each_of

import hud_mcp
from hud_mcp import CustomGym, Environment, Outcome, ResponseAction, Task, gym
from hud_mcp.errors import GymMakeException
from hud_mcp.loading.source import load_environments

pytestmark = pytest.mark.anyio


@each_of(
    ("module", "names"),
    [
        ("hud_mcp", "CLA Client CustomGym FunctionConfig FunctionConfigs Gym HudStyleConfigs"),
        ("hud_mcp", "Response Task TaskSet"),
        ("hud_mcp.adapters", "CLA ResponseAction"),
        ("hud_mcp.agents.types", "EvaluationResult"),
        ("hud_mcp.adapters.common", "CLA"),
        ("hud_mcp.adapters.common.types", "CLA ClickAction Point ResponseAction TypeAction"),
        ("hud_mcp.env", "Client Environment Observation TaskResult"),
        ("hud_mcp.env.client", "Client"),
        ("hud_mcp.env.environment", "Environment Observation TaskResult"),
        ("hud_mcp.exceptions", "GymMakeException"),
        ("hud_mcp.gym", "GymMakeException make"),
        ("hud_mcp.task", "Task"),
        ("hud_mcp.taskset", "TaskSet"),
        ("hud_mcp.types", "CustomGym Gym"),
        ("hud_mcp.utils", "FunctionConfig FunctionConfigs"),
        ("hud_mcp.utils.common", "FunctionConfig FunctionConfigs Observation"),
        ("hud_mcp.utils.config", "FunctionConfig FunctionConfigs HudStyleConfigs"),
    ],
)
def test_a_name_is_where_the_hud_sdk_had_it(module: str, names: str) -> None:
    """A program's import lines work once `hud` reads `hud_mcp`."""
    found = importlib.import_module(module)
    for name in names.split():
        assert hasattr(found, name)
        assert name in found.__all__ or found is hud_mcp  # whose list has the public names alone


def test_the_declaration_and_the_live_environment_are_two_classes() -> None:
    """`hud_mcp.Environment` is what exists, `hud_mcp.env.Environment` what runs."""
    assert hud_mcp.Environment is not hud_mcp.env.Environment
    assert hud_mcp.env.Environment.__module__ == "hud_mcp.plugins.hud.live.environment"
    assert hud_mcp.gym.make is gym.make
    assert hud_mcp.Response is ResponseAction


async def test_a_gym_is_named_in_every_way(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shipped, in `./env.py`, by its file, by a Gymnasium id, and as it was declared."""
    (tmp_path / "env.py").write_text(
        "from hud_mcp import Environment\none = Environment('one-of-two')\n"
        "two = Environment('two-of-two')\n"
    )
    (tmp_path / "alone.py").write_text("import hud_mcp\nenv = hud_mcp.Environment('alone')\n")
    monkeypatch.chdir(tmp_path)
    declared = Environment("declared-here")
    for name, found in (
        ("qa", "qa"),
        ("two-of-two", "two-of-two"),
        ("env.py:one-of-two", "one-of-two"),
        ("./alone.py", "alone"),
        (tmp_path / "alone.py", "alone"),
        ("CartPole-v1", "CartPole-v1"),
        ("gym:CartPole-v1", "CartPole-v1"),
        (declared, "declared-here"),
        ("declared-here", "declared-here"),
    ):
        env = await here.make(name)
        assert env.build_data["name"] == found
        await env.step()

    with pytest.raises(GymMakeException, match=r"has 2 environments; name one, such as ./env.py"):
        await here.make("./env.py")
    for wrong, said in (
        (
            "two-of-to",
            "There is no gym 'two-of-to'. Did you mean 'two-of-two'? ",
        ),
        ("OSWorld-Ubuntu", "'OSWorld-Ubuntu' was a desktop"),
        ("missing/env.py", "There is no environment at 'missing/env.py'"),
        (3, "3 is not a gym; pass a task"),
        (None, "None is not a gym"),
        ("", "'' is not a gym"),
        (bench_task(gym="docker"), "or give a CustomGym with an image"),
        (CustomGym(location="remote", image_or_build_context="an-image"), "remote"),
    ):
        with pytest.raises(GymMakeException) as caught:
            await here.make(wrong)
        assert said in str(caught.value)

    async def coroutine() -> None: ...

    with pytest.raises(GymMakeException, match="a coroutine is not a gym"):
        await here.make(coroutine())
    with pytest.raises(GymMakeException, match=r"'ftp://x' is not an address of an environment"):
        await gym.make("qa", url="ftp://x")
    with pytest.raises(GymMakeException, match=r"Nothing answers at tcp://127.0.0.1:9"):
        await gym.make("qa", url="tcp://127.0.0.1:9")
    with pytest.raises(GymMakeException, match=r"No server answers at http://127.0.0.1:9/mcp"):
        await gym.make("qa", url="http://127.0.0.1:9/mcp")


async def test_a_task_of_an_environment_that_a_program_declares_is_found(here: Place) -> None:
    """A program need write no file: its template mints a task, and that is made live."""
    shop = Environment("shop-of-a-test")

    @shop.template()
    async def buy(item: str = "tea"):  # noqa: ANN202
        answer = yield f"Buy {item}."
        yield float(answer == "bought")

    env = await here.make(buy(item="milk"))
    assert env.prompt == "Buy milk."
    await env.step(ResponseAction(text="bought"))
    assert await env.evaluate() == 1.0
    assert (await here.record(env)).environment == "shop-of-a-test"

    again = Environment("shop-of-a-test")
    assert (await here.make("shop-of-a-test")).build_data["digest"] == again.digest
    with pytest.raises(GymMakeException, match="has no template 'buy'"):
        await here.make(Task(env="shop-of-a-test", template="buy"))
    await env.reset()  # of the declaration that it was made of
    assert env.prompt == "Buy milk."


async def test_a_make_that_is_cancelled_leaves_no_session(here: Place) -> None:
    """What was half made ends as cancelled, and the next one is made as ever."""
    slow = Environment("slow-of-a-test")
    begun, ended = anyio.Event(), anyio.Event()

    @slow.function(use="setup")
    async def dawdle() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    task = Task(prompt="a", gym="slow-of-a-test", setup="dawdle")
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(here.make, task)
            await begun.wait()
            group.cancel_scope.cancel()
        await ended.wait()
        env = await here.make("slow-of-a-test")
        await env.close()
    assert await here.count() == 2


async def test_a_template_gets_the_same_reward_from_its_operator_as_from_an_agent(
    here: Place,
) -> None:
    """`evaluate` submits what `response` submits."""
    from hud_mcp.session.caller import Caller  # noqa: PLC0415  # the agent's side
    from hud_mcp.session.registry import Sessions  # noqa: PLC0415  # the same
    from hud_mcp.store import Store  # noqa: PLC0415  # the same

    (letters,) = load_environments(["letter_count"])
    sessions = Sessions([letters], store=Store(here.store.with_name("agent.sqlite3")))
    try:
        for answer, reward in (("3", 1.0), ("4", 0.0), ("three", 0.0)):
            task = letters.templates["count"](word="strawberry", letter="r")
            session = await sessions.start(task, caller=Caller(principal="ann"))
            receipt = await session.respond(answer)
            env = await here.make(task)
            await env.step(ResponseAction(text=answer))
            assert receipt is not None
            assert (await env.evaluate(), receipt.reward) == (reward, reward)
    finally:
        await sessions.close()


@pytest.mark.long
@pytest.mark.browser
def test_a_program_that_closes_nothing_ends_without_a_word(tmp_path: Path) -> None:
    """The loop ends what it left: a browser, live pages, a session; nothing is printed."""
    program = textwrap.dedent("""
        import asyncio
        import hud_mcp

        async def main():
            env = await hud_mcp.gym.make("hud-browser")
            step = await env.step([{"type": "move", "x": 5, "y": 6}, hud_mcp.ClickAction()])
            assert step.observation.screenshot
            urls = await env.get_urls()
            assert urls["url"] == "about:blank" and urls["live_url"].startswith("http://127.0.0.1:")
            closed = await hud_mcp.gym.make("qa")
            await closed.close()
            print(env.trajectory)

        asyncio.run(main())
        asyncio.run(main())
    """)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=child_environment(HUD_MCP_STORE=str(tmp_path / "store.sqlite3")),
    )
    kept = [
        line
        for line in done.stderr.decode().splitlines()
        if "runs without its sandbox" not in line  # said of this machine
    ]
    assert (done.returncode, kept) == (0, [])
    assert len(done.stdout.split()) == 2


@pytest.mark.long
async def test_a_session_that_its_program_left_is_no_reward(here: Place) -> None:
    """The record says that it was lost, and not that it failed."""
    program = textwrap.dedent("""
        import asyncio, sys
        import hud_mcp

        async def main():
            task = hud_mcp.Task(prompt="a", evaluate=("response_includes", "b"))
            env = await hud_mcp.gym.make(task)
            await env.step(hud_mcp.Response(text="b"))
            await env.evaluate()
            print(env.trajectory)

        asyncio.run(main())
    """)
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [sys.executable, "-W", "error", "-c", program],
            env=child_environment(HUD_MCP_STORE=str(here.store)),
        )
    record = await here.load(done.stdout.decode().strip())
    assert (record.outcome, record.reward) == (Outcome.LOST, None)
