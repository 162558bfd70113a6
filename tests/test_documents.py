"""The documents' own programs run here, with `hud` changed into `hud_mcp` and nothing else.

Each block stands as its document has it; where one leaves something out (`…`), the test says
what it fills in.
"""

import inspect
import textwrap
from pathlib import Path
from typing import Any

import pytest

import hud_mcp
from hud_mcp import Answer, Capability, Environment
from hud_mcp.call import FunctionConfig
from hud_mcp.task import Task
from hud_mcp.taskset import TaskSet


def run_block(block: str, **known: Any) -> dict[str, Any]:
    """Run a block as a program of its own, and return what it leaves."""
    names: dict[str, Any] = {"__name__": "block", **known}
    exec(compile(textwrap.dedent(block), "block.py", "exec"), names)  # ours
    return names


def test_a_task_is_created_as_document_002_creates_one() -> None:
    """Document 002, "Creating a Task"."""
    left = run_block("""
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
        """)  # noqa: W291  # as the document has it
    task = left["task"]
    assert task.gym == "hud-browser"
    assert task.setup == (FunctionConfig(function="goto", args=("https://example.com/login",)),)
    assert task.evaluate == (FunctionConfig(function="page_contains", args=("test",)),)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "name", ["prompt", "gym", "setup", "evaluate", "id", "metadata", "config", "target"]
)
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
