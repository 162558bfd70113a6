"""A live environment does the same in this process, over stdio, over HTTP and on the channel."""

import base64
import inspect
import io
from typing import Any

import anyio
import pytest
from PIL import Image
from places import PATIENCE_S, Place, bench_task, put

import hud_mcp
from hud_mcp import ClickAction, CustomAction, Outcome, Point, ResponseAction, Task
from hud_mcp.env import Environment, Observation, TaskResult
from hud_mcp.errors import (
    ActionFailed,
    GradingFailed,
    GymMakeException,
    InvalidAction,
    InvalidTask,
    SessionEnded,
)
from hud_mcp.record.job import Job
from hud_mcp.values.call import FunctionConfig

pytestmark = pytest.mark.anyio


async def test_a_step_gives_four_values_that_unpack_and_a_fifth_beside_them(place: Place) -> None:
    """What the documents promise of `step`, with the world's own rewards and ends."""
    env = await place.make(bench_task(setup=("put", "a", "b")))

    observation, reward, terminated, info = await env.step()
    assert (reward, terminated, info) == (0.0, False, {})
    assert observation.text == "words: a b; clicks: []"
    assert observation.screenshot is not None
    with Image.open(io.BytesIO(base64.b64decode(observation.screenshot))) as picture:
        assert (picture.format, picture.size, picture.getpixel((0, 0))) == (
            "PNG",
            (80, 40),
            (2, 0, 0),
        )

    pay = CustomAction(action="pay", args={"reward": 0.5})
    paid = await env.step([pay, pay, {"type": "move", "x": 3, "y": 4}])
    assert (paid.reward, paid.terminated, paid.truncated) == (1.0, False, False)
    assert paid.info == {"paid": 0.5}
    ended = await env.step(CustomAction(action="end"))
    assert (ended.reward, ended.terminated, ended.truncated) == (0.25, True, False)
    cut = await env.step({"type": "custom", "action": "cut"})
    assert (cut.reward, cut.terminated, cut.truncated) == (0.0, False, True)
    assert TaskResult.model_validate_json(cut.result.model_dump_json()) == cut.result


async def test_an_evaluation_measures_as_often_as_one_likes_and_the_last_one_is_the_grade(
    place: Place,
) -> None:
    """Each is a step of the record; `close` grades once, and closing twice is not an error."""
    env = await place.make(bench_task(), metadata={"seen": "by nobody"})
    assert env.metadata == {"seen": "by nobody"}
    assert await env.evaluate() == 0.0
    await env.step(put("lamp"))
    assert await env.evaluate() == 1.0
    assert env.reward is None
    await env.step([])
    assert await env.evaluate() == 1.0

    await env.close()
    await env.close()
    assert (env.reward, env.outcome) == (1.0, "graded")
    record = await place.record(env)
    assert (record.reward, record.outcome) == (1.0, Outcome.GRADED)
    assert [step.kind for step in record.steps] == [
        "evaluate",
        "step",
        "evaluate",
        "step",
        "evaluate",
    ]
    assert [step.info["results"] for step in record.steps[::2]] == [[0.0], [1.0], [1.0]]
    assert "by nobody" in (record.logs or "")
    with pytest.raises(SessionEnded, match=r"closed. Make another one with gym.make"):
        await env.step()


async def test_closed_without_a_measurement_it_was_cancelled_and_has_no_reward(
    place: Place,
) -> None:
    """A reward that nobody measured is none, and not 0."""
    async with await place.make(bench_task()) as env:
        await env.step(put("lamp"))
        await env.step(ResponseAction(text="done"))
        assert env.final_response == "done"

    assert (env.reward, env.outcome) == (None, "cancelled")
    record = await place.record(env)
    assert (record.reward, record.outcome) == (None, Outcome.CANCELLED)
    assert record.error == "Its operator closed it without a measurement."


async def test_another_evaluation_in_place_of_the_task_s_is_never_its_reward(
    place: Place,
) -> None:
    """What it returns is returned, and recorded as an override, and nothing more."""
    env = await place.make(bench_task())
    assert await env.evaluate() == 0.0
    assert await env.evaluate(("holds", "chair")) == 0.0
    await env.step(put("lamp"))
    assert await env.evaluate(["count", {"function": "holds", "args": "lamp"}]) == [1, 1.0]
    assert await env.evaluate([]) == []

    await env.close()
    assert (env.reward, env.outcome) == (0.0, "graded")
    steps = (await place.record(env)).steps
    assert [s.info.get("override") for s in steps if s.kind == "evaluate"] == [False, True, True]


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("count", 1),
        (("holds", "lamp"), 0.0),
        ({"function": "holds", "args": ["lamp"]}, 0.0),
        ({"function": "count"}, 1),
        (FunctionConfig(function="holds", args=("chair",)), 1.0),
        ([("holds", "chair")], 1.0),
        (["count", ("holds", "chair"), {"function": "clicked", "args": []}], [1, 1.0, []]),
    ],
    ids=repr,
)
async def test_every_form_of_a_call_is_taken_in_this_process(
    here: Place, config: Any, value: Any
) -> None:
    """Names, tuples, dicts, objects, lists of any of them; one gives its result, several a list."""
    env = await here.make(bench_task(setup=("put", "chair")))
    assert await env.evaluate(config) == value


async def test_every_form_of_a_call_is_taken_in_every_place(place: Place) -> None:
    """The same forms go over each wire, in `evaluate`, in `reset` and in a task."""
    task = bench_task(
        setup=["put", ("put", "chair"), {"function": "put", "args": ["a", "b"]}],
        evaluate=[("holds", "a"), FunctionConfig(function="holds", args=("b",))],
    )
    env = await place.make(task)
    assert await env.evaluate() == [1.0, 1.0]
    for config, value in (
        ("count", 3),
        (("holds", "chair"), 1.0),
        ({"function": "holds", "args": "lamp"}, 0.0),
        (["count", ("holds", "a"), {"function": "clicked"}], [3, 1.0, []]),
    ):
        assert await env.evaluate(config) == value
    await env.reset([("put", "lamp"), "put", {"function": "put", "args": "x"}])
    assert await env.evaluate(["count", ("holds", "x")]) == [5, 1.0]

    async def coroutine() -> None: ...

    for wrong, said in (
        (coroutine(), "a coroutine was given"),
        ({"function": "count", "arguments": []}, "a call has no 'arguments'"),
        (("hold", "lamp"), "has no function 'hold'. Did you mean 'holds'"),
        ("holds", "takes 1 argument, got 0"),
        (("put", "lamp"), "'put' is a function for 'setup' and not for 'evaluate'"),
    ):
        with pytest.raises(InvalidTask, match=said):
            await env.evaluate(wrong)
    assert len((await place.record(env)).steps) == 7, "and nothing has run"


@pytest.mark.parametrize(
    ("config", "reward"), [(None, 0.0), ({"combine": "any"}, 1.0), ({"combine": "mean"}, 0.5)]
)
async def test_the_reward_of_several_functions_is_1_only_where_all_are(
    here: Place, config: dict[str, Any] | None, reward: float
) -> None:
    """Unless the task's `combine` says otherwise."""
    task = bench_task(
        setup=("put", "lamp"), evaluate=[("holds", "lamp"), ("holds", "x")], config=config
    )
    env = await here.make(task)
    assert await env.evaluate() == [1.0, 0.0]
    await env.close()
    assert env.reward == reward


async def test_a_reset_runs_the_setup_again_and_begins_with_the_prompt(place: Place) -> None:
    """What was measured and answered before does not count any more."""
    env = await place.make(bench_task(setup=("put", "lamp")))
    await env.step(ResponseAction(text="before"))
    assert await env.evaluate() == 1.0

    observation, info = await env.reset()
    assert observation.text == "Put a lamp on the bench.\n\nwords: lamp lamp; clicks: []"
    assert observation.screenshot is not None
    assert (info, env.final_response) == ({}, None)
    observation, _ = await env.reset(("put", "chair"))
    assert observation.text is not None
    assert observation.text.endswith("words: lamp lamp chair; clicks: []")

    with pytest.raises(ActionFailed, match="The setup failed: RuntimeError: it fell over with 3"):
        await env.reset("topple")
    assert (await env.step()).observation.text == "words: lamp lamp chair; clicks: []"
    await env._setup(("put", "table"))
    await env._setup()
    assert (await env.step()).observation.text == "words: lamp lamp chair table lamp; clicks: []"
    await env.close()
    assert (env.reward, env.outcome) == (None, "cancelled"), "as nothing was measured since"


async def test_a_refused_action_is_told_and_the_environment_goes_on(place: Place) -> None:
    """One that is malformed is an error, and then nothing was performed."""
    env = await place.make(bench_task())
    step = await env.step([put("a"), {"type": "custom", "action": "fly"}, put("b")])
    assert step.info["error"].startswith("actions[1]: custom failed: There is no 'fly' here.")
    assert step.info["performed"] == 1
    assert step.observation.text == "words: a; clicks: []"

    for wrong, said in (
        ([put("c"), {"type": "clik"}], r"actions\[1\]: unknown type 'clik'. Did you mean 'click'"),
        ([put("c"), {"type": "press"}], "'press' needs keys"),
        ([put("c"), {"type": "type", "text": "x"}], "'type' is not an action of environment"),
        ("click", "expected a list of actions"),
    ):
        with pytest.raises(InvalidAction, match=said):
            await env.step(wrong)
    assert (await env.step()).observation.text == "words: a; clicks: []"


async def test_a_click_without_a_place_is_where_the_pointer_was_put_last(place: Place) -> None:
    """Before anything has put it anywhere, such a click is refused as ever."""
    env = await place.make(bench_task())
    with pytest.raises(InvalidAction, match="'click' needs x and y, a ref, or a selector"):
        await env.step(ClickAction())
    with pytest.raises(InvalidAction, match=r"actions\[1\]: 'click' needs x and y"):
        await env.step([put("a"), {"type": "click"}])

    await env.step([{"type": "move", "point": {"x": 3, "y": 4}}, ClickAction()])
    await env.step([ClickAction(button="wheel"), {"type": "move", "offset_x": 1, "offset_y": 1}])
    await env.step({"type": "click"})
    drag = {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 9, "y": 8}]}
    await env.step([drag, ClickAction(), ClickAction(selector="#far")])
    await env.step(ClickAction())
    assert await env.evaluate("clicked") == [[3, 4], [3, 4], [4, 5], [9, 8], [70, 7], [70, 7]]
    places = [p for step in (await place.record(env)).steps for p in step.places if p is not None]
    assert Point(x=9, y=8) in places, "so that a viewer can show it"


async def test_a_template_is_graded_once_and_gives_the_same_again_until_a_reset(
    place: Place,
) -> None:
    """A reset begins another session of the same task; the reward is that of `response`."""
    env = await place.make(Task(env="bench", template="say", args={"word": "oak"}))
    first = env.trajectory
    observation, _ = await env.reset()
    assert (env.prompt, env.trajectory) == ("Say 'oak'.", first), "it was as it began"
    assert observation.text == "Say 'oak'.\n\nwords: start; clicks: []"

    await env.step(ResponseAction(text="elm"))
    assert await env.evaluate(("holds", "start")) == 1.0
    assert [await env.evaluate(), await env.evaluate()] == [0.25, 0.25]
    with pytest.raises(
        SessionEnded, match=r"its grade stands. call `reset` to start the task again"
    ):
        await env.step(ResponseAction(text="oak"))

    await env.reset()
    assert env.trajectory != first
    await env.step(ResponseAction(text="oak"))
    assert await env.evaluate() == 1.0
    await env.close()
    assert (env.reward, env.outcome) == (1.0, "graded")
    before, after = await place.load(first), await place.record(env)
    assert (before.reward, after.reward) == (0.25, 1.0)
    assert after.receipt is not None
    assert after.receipt.content == "You said 'oak'."


async def test_a_template_that_was_not_evaluated_is_cancelled_by_a_reset_and_by_the_end(
    place: Place,
) -> None:
    """Neither is a reward."""
    env = await place.make(Task(env="bench", template="say"))
    first = env.trajectory
    await env.step(put("a"))
    observation, _ = await env.reset(("put", "b"))
    assert observation.text == "Say 'lamp'.\n\nwords: start b; clicks: []"
    await env.close()
    assert (env.reward, env.outcome) == (None, "cancelled")
    assert (await place.load(first)).outcome is Outcome.CANCELLED


@pytest.mark.long
async def test_a_grader_that_cannot_run_is_no_reward_of_0(place: Place) -> None:
    """It says its file and line; where nothing was measured since, the grading has failed."""
    env = await place.make(bench_task(evaluate=("broken", 0)))
    with pytest.raises(GradingFailed, match=r"bench\.py:\d+: broken: ZeroDivisionError"):
        await env.evaluate()
    assert (await env.step()).observation.text == "words: ; clicks: []", "and it goes on"
    await env.close()
    assert (env.reward, env.outcome) == (None, "grading_failed")

    env = await place.make(Task(env="bench", template="quarrel"))
    for _ in range(2):
        with pytest.raises(GradingFailed, match=r"bench\.py:\d+"):
            await env.evaluate()
    await env.close()
    assert (env.reward, env.outcome) == (None, "grading_failed")


@pytest.mark.sampled(1)
async def test_what_is_no_number_is_returned_and_is_no_reward(place: Place) -> None:
    """`evaluate` returns what the functions return."""
    env = await place.make(bench_task(evaluate="said"))
    await env.step(ResponseAction(text="forty-two"))
    assert await env.evaluate() == "forty-two"
    await env.close()
    assert (env.reward, env.outcome) == (None, "grading_failed")


@pytest.mark.long
async def test_a_run_belongs_to_its_job_and_says_where_it_can_be_watched(place: Place) -> None:
    """The job by its object or its id, also after a reset that begins another session."""
    job = Job(name="mine")
    env = await place.make(Task(env="bench", template="say"), job=job)
    other = await place.make(bench_task(), job_id=job.id)
    await env.step()
    await env.reset()
    assert (await place.record(env)).job_id == job.id
    assert (await place.record(other)).job_id == job.id
    with pytest.raises(GymMakeException, match="job_id: no job 'job-of-nobody' is recorded"):
        await place.make(bench_task(), job_id="job-of-nobody")

    urls = await env.get_urls()
    assert urls == {"url": env.url, "live_url": env.live_url}
    assert env.url is None
    assert (env.live_url is not None) is (place.name in ("here", "http"))


@pytest.mark.long
async def test_what_cannot_be_made_says_why_and_nothing_has_run(place: Place) -> None:
    """Names, arity and rows are checked before anything is started."""
    before = await place.count()
    for task, said in (
        (bench_task(evaluate="hold"), "evaluate: environment 'bench' has no function 'hold'. Did"),
        (
            bench_task(evaluate=("holds", "a", "b")),
            r"evaluate: holds\(word\) takes 1 argument, got",
        ),
        (bench_task(setup=("holds", "a")), "setup: 'holds' is a function for 'evaluate'"),
        (Task(env="bench", template="sy"), "has no template 'sy'. Did you mean 'say'"),
        (Task(env="bench", template="say", args={"wrd": 1}), "wrd"),
    ):
        with pytest.raises(GymMakeException, match=said) as caught:
            await place.make(task)
        assert isinstance(caught.value.data["exception"], InvalidTask)
    assert await place.count() == before

    with pytest.raises(GymMakeException, match="fell over"):
        await place.make(bench_task(setup=["put", "topple"]))
    with pytest.raises(InvalidTask, match="has no `evaluate` calls"):
        await (await place.make(bench_task(evaluate=None))).evaluate()


async def test_a_gym_without_a_task_is_there_to_act_in(place: Place) -> None:
    """Nothing is asked; functions can be called by `reset` and `evaluate`."""
    env = await place.make("bench")
    assert env.task is None
    assert env.build_data["name"] == "bench"
    observation, _ = await env.reset(("put", "lamp"))
    assert observation.text == "words: lamp; clicks: []"
    assert await env.evaluate("count") == 1
    await env.close()
    assert (env.reward, env.outcome) == (None, "cancelled")


@pytest.mark.long
async def test_several_live_environments_at_once_are_apart(place: Place) -> None:
    """Each has a world of its own, in one place."""
    envs: list[Environment] = []

    async def work(word: str) -> None:
        env = await place.make(bench_task(evaluate=("holds", word)))
        envs.append(env)
        await env.step([put(word)])
        assert await env.evaluate() == 1.0
        assert (await env.step()).observation.text == f"words: {word}; clicks: []"

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for word in ("ash", "elm", "oak"):
                group.start_soon(work, word)
    for env in envs:
        await env.close()
    assert [env.reward for env in envs] == [1.0] * 3


async def test_a_picture_and_a_result_are_written_as_json_and_read_back(here: Place) -> None:
    """In the HUD SDK's form: `screenshot` is base64 PNG, or None."""
    env = await here.make(bench_task())
    seen = (await env.step()).observation
    assert Observation.model_validate_json(seen.model_dump_json()) == seen
    assert Observation(text="a", screenshot=seen.screenshot).screenshot == seen.screenshot
    assert Observation(screenshot=None) == Observation()
    assert Observation().model_dump_json() == '{"screenshot":null,"text":null}'


def test_the_signatures_are_those_of_the_documents() -> None:
    """As document 000 writes them."""
    assert hud_mcp.plugins.hud.gym.make.__kwdefaults__ == {
        "job": None, "job_id": None, "url": None, "metadata": None
    }  # fmt: skip
    for name, parameters in (
        ("step", ["actions"]),
        ("evaluate", ["config"]),
        ("reset", ["configs"]),
        ("get_urls", []),
        ("close", []),
    ):
        method = getattr(Environment, name)
        assert inspect.iscoroutinefunction(method)
        signature = inspect.signature(method)
        assert list(signature.parameters) == ["self", *parameters]
        assert all(signature.parameters[p].default is None for p in parameters)
    assert list(TaskResult.model_fields)[:3] == ["observation", "reward", "terminated"]
