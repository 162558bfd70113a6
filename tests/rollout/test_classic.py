"""`run_job` takes an agent class of HUD's older SDK through tasks, and says what went wrong."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import (
    Job,
    ResponseAction,
    Store,
    Task,
    TaskSet,
    create_job,
    load_job,
    register_job,
    run_job,
)
from hud_mcp.errors import HudMcpError, InvalidEnvironment, SourceNotFound
from hud_mcp.plugins.hud import gym
from hud_mcp.record.job import current_job

pytestmark = pytest.mark.anyio

CELL = Task(
    id="cell",
    prompt="What is the powerhouse of the cell?",
    gym="qa",
    evaluate=("response_includes", "mitochondria"),  # type: ignore[arg-type]
)
CITY = Task(
    id="city",
    prompt="What is the capital of France?",
    gym="qa",
    evaluate=("response_includes", "Paris"),  # type: ignore[arg-type]
)
UNGRADED = Task(id="ungraded", prompt="What is the word?", gym="qa")
NOWHERE = Task(id="nowhere", prompt="Where?", gym="qaa", evaluate=("response_includes", "x"))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default store is a fresh one."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))


class Answering:
    """Answers every question with one word, after some looks."""

    made = 0

    def __init__(self, word: str = "mitochondria", looks: int = 1, adapter: Any = None) -> None:
        type(self).made += 1
        self.word = word
        self.looks = looks
        self.adapter = adapter
        self.prompts: list[str | None] = []

    async def predict(self, observation: Any) -> tuple[list[Any], bool]:
        """Look, then answer."""
        assert self.prompts or observation.text.startswith("What is the ")
        self.prompts.append(observation.text)
        if len(self.prompts) <= self.looks:
            return [], False
        return [ResponseAction(text=f"It is {self.word}.")], True


class Failing(Answering):
    """Raises in the second step."""

    async def predict(self, observation: Any) -> tuple[list[Any], bool]:
        """Look, then fail."""
        if self.prompts:
            raise RuntimeError("no idea")
        return await super().predict(observation)


class Stumbling(Answering):
    """Raises twice before each prediction."""

    tries = 0

    async def predict(self, observation: Any) -> tuple[list[Any], bool]:
        """Succeed at the third try."""
        self.tries += 1
        if self.tries % 3:
            raise RuntimeError("again")
        return await super().predict(observation)


class Acting(Answering):
    """Does what the environment does not take."""

    async def predict(self, observation: Any) -> tuple[list[Any], bool]:
        """Click where nothing is."""
        del observation
        return [{"type": "click", "point": {"x": 1, "y": 2}}], True


async def test_each_task_has_a_new_agent_and_is_graded_by_its_own_calls() -> None:
    """The job has both trajectories, and what they amount to."""
    Answering.made = 0
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(
            Answering, TaskSet(tasks=[CELL, CITY], description="two"), "questions",
            agent_kwargs={"looks": 2}, job_metadata={"k": 1},
        )  # fmt: skip
    assert Answering.made == 2
    assert job.errors == []
    assert (job.name, job.agent) == ("questions", "Answering")
    assert job.metadata == {"k": 1, "agent_in_process": True}, "its agent had to be trusted"
    found = await load_job(job.id)
    trajectories = {t.task.id: t for t in await found.load_trajectories()}
    assert {i: (t.reward, t.error) for i, t in trajectories.items()} == {
        "cell": (1.0, None), "city": (0.0, None)
    }  # fmt: skip
    assert [s.kind for s in trajectories["cell"].steps][-2:] == ["step", "evaluate"]
    assert await found.get_analytics() == {
        "task_count": 2, "avg_reward": 0.5, "success_rate": 50.0
    }  # fmt: skip
    assert [t.id for t in await found.load_tasks()] == ["cell", "city"]


async def test_what_goes_wrong_is_a_row_of_the_job_and_stops_no_other_task() -> None:
    """A gym that is not there, a step that raised, a task that names nothing to evaluate."""
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(Answering, [NOWHERE, UNGRADED, CELL], "some", run_parallel=False)
        failed = await run_job(Failing, CELL, "failing")
    assert [(e["task_id"], e["type"]) for e in job.errors] == [
        ("nowhere", "setup_error"), ("ungraded", "evaluation_error")
    ]  # fmt: skip
    assert "'qaa'" in job.errors[0]["error"]
    assert all(e["timestamp"] for e in job.errors)
    assert (await load_job(job.id)).errors == job.errors
    outcomes = {t.task.id: (t.outcome, t.reward) for t in await job.load_trajectories()}
    assert outcomes == {"cell": ("graded", 1.0), "ungraded": ("cancelled", None)}

    (error,) = failed.errors
    assert (error["type"], error["step"]) == ("step_error", 1)
    assert error["error"] == "RuntimeError: no idea"
    (record,) = await failed.load_trajectories()
    assert (record.outcome, record.reward) == ("cancelled", None), "a step error is not evaluated"
    assert (await failed.get_analytics())["avg_reward"] is None


async def test_a_prediction_that_raises_is_tried_again() -> None:
    """Five times at the most; the agent may have stumbled over its model."""
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(Stumbling, CELL, "stumbling")
    assert job.errors == []
    assert [t.reward for t in await job.load_trajectories()] == [1.0]


async def test_steps_are_bounded_and_the_task_is_evaluated_then() -> None:
    """An agent that never answers gets what its task says of that."""
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(
            Answering, CELL, "looking", agent_kwargs={"looks": 99}, max_steps_per_task=3
        )
    (record,) = await job.load_trajectories()
    assert record.reward == 0.0
    assert [s.kind for s in record.steps] == ["step"] * 4 + ["evaluate"], "the first is a look"


async def test_an_action_that_the_environment_does_not_take_is_a_step_error() -> None:
    """None was performed, and nothing is evaluated."""
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(Acting, CELL, "clicking")
    assert [(e["type"], e["step"]) for e in job.errors] == [("step_error", 0)]
    assert "'click' is not an action" in job.errors[0]["error"]


async def test_an_adapter_is_made_for_each_agent() -> None:
    """With its own arguments."""
    made: list[Any] = []

    class Adapter:
        def __init__(self, width: int) -> None:
            self.width = width
            made.append(self)

    with anyio.fail_after(PATIENCE_S):
        await run_job(
            Answering, TaskSet([CELL, CITY]), "adapted",
            adapter_cls=Adapter, adapter_kwargs={"width": 7},
        )  # fmt: skip
    assert [a.width for a in made] == [7, 7]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"auto_reply_question": True}, "needs HUD's cloud"),
        ({"max_steps_per_task": 0}, "max_steps_per_task is 0; give 1 or more"),
        ({"max_concurrent_tasks": -1}, "max_concurrent_tasks is -1"),
        ({"task_or_taskset": []}, "holds no tasks"),
        ({"task_or_taskset": [5]}, "a taskset is made of tasks, not of 5"),
    ],
)
async def test_what_cannot_work_is_refused_before_anything_is_recorded(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    """No job is made."""
    with pytest.raises(HudMcpError, match=said):
        await run_job(**{"agent_cls": Answering, "task_or_taskset": CELL, "job_name": "x", **given})
    assert not (tmp_path / "store.sqlite3").exists()  # one look


async def test_the_document_s_example_reads_what_a_job_has() -> None:
    """Document 001, with its import changed."""
    job = await create_job("by hand", gym_id="qa", metadata={"k": 1})
    with anyio.fail_after(PATIENCE_S):
        env = await gym.make(CELL, job=job)
        await env.step([ResponseAction(text="mitochondria")])
        await env.evaluate()
        await env.close()
    lines: list[str] = []
    await analyze_job_trajectories(job.id, lines.append)
    assert lines[0].startswith("--- Trajectory 1 (ID: traj-")
    assert lines[1:3] == ["  Reward: 1.0", "  Number of steps: 2"]
    assert job.metadata == {"gym_id": "qa", "k": 1}


async def analyze_job_trajectories(job_id: str, print: Any) -> None:  # noqa: A002  # the example's
    """The example, whose `print` is the test's."""
    job = await load_job(job_id)
    trajectories = await job.load_trajectories()

    for i, traj in enumerate(trajectories):
        print(f"--- Trajectory {i + 1} (ID: {traj.id}) ---")
        print(f"  Reward: {traj.reward}")
        print(f"  Number of steps: {len(traj.trajectory)}")  # Access the list of steps
        if traj.error:
            print(f"  Error: {traj.error}")


async def test_what_a_registered_function_makes_belongs_to_a_job_of_its_own() -> None:
    """Each call records a new one; outside of it there is none, and inside the innermost counts."""
    seen: list[Job] = []

    @register_job("registered", metadata={"k": 2})
    async def program(number: int, *, fails: bool = False) -> int:
        """A user's program."""
        job = current_job.get()
        assert job is not None
        seen.append(job)
        env = await gym.make(CELL)
        await env.close()
        if fails:
            raise ValueError("the program's own")
        return number + 1

    with anyio.fail_after(PATIENCE_S):
        assert await program(1) == 2
        with pytest.raises(ValueError, match="the program's own"):
            await program(2, fails=True)
    assert current_job.get() is None
    assert len({job.id for job in seen}) == 2
    assert program.__name__ == "program"
    for job in seen:
        found = await load_job(job.id)
        assert (found.name, found.metadata) == ("registered", {"k": 2})
        assert [t.outcome for t in await found.load_trajectories()] == ["cancelled"]


async def test_two_registered_functions_at_once_keep_their_jobs_apart() -> None:
    """Tasks of one loop each have their own."""

    @register_job("apart")
    async def program(begun: anyio.Event, go_on: anyio.Event) -> Job | None:
        begun.set()
        await go_on.wait()
        return current_job.get()

    first, second, go_on = anyio.Event(), anyio.Event(), anyio.Event()
    found: list[Job | None] = []

    async def one(begun: anyio.Event) -> None:
        found.append(await program(begun, go_on))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(one, first)
            group.start_soon(one, second)
            await first.wait()
            await second.wait()
            go_on.set()
    assert len({job.id for job in found if job is not None}) == 2


def test_a_function_that_is_not_async_cannot_be_registered() -> None:
    """The text says what to write."""
    with pytest.raises(InvalidEnvironment, match="decorates an async function"):
        register_job("x")(lambda: None)  # type: ignore[arg-type,return-value]


async def test_a_job_is_recorded_where_it_says(tmp_path: Path) -> None:
    """A store of the user's own, and not the default one."""
    place = str(tmp_path / "mine.sqlite3")
    with anyio.fail_after(PATIENCE_S):
        job = await run_job(Answering, CELL, "elsewhere", store=place)
    assert len(await job.load_trajectories()) == 1
    with pytest.raises(SourceNotFound):
        await load_job(job.id)
    store = Store(place)
    assert (await load_job(job.id, store)).name == "elsewhere"
    await store.close()
