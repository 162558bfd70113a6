"""The sets of our own: what their rows say of themselves is so.

Each row is solved by its solution and by nothing less, is the same in every process, and tells
an agent nothing of how it is graded. `make test` plays the first row of every eighth template;
`make prove` plays all rows in all ways.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

import anyio
import pytest
from plays import (
    NOP,
    Play,
    answers_of,
    environment_of,
    play_oracle,
    play_row,
    playing,
    told_elsewhere,
)
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Grade, Task, Taskset
from hud_mcp.loading.source import shipped_folder
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.sandbox]

DATA = shipped_folder("taskset_data")
SETS = ("quickstart", "shell", "web", "questions", "office")
"""The sets that come with the package and need no extra, no network and no account."""
NEW = [name for name in SETS if name != "quickstart"]
"""Those whose templates draw from a seed; the rows of quickstart are played by test_quickstart."""
ROWS = {name: Taskset.load(DATA / f"{name}.jsonl") for name in SETS}

LEVELS = ("easy", "medium", "hard")
MANY_STEPS = 12
"""A row of so many steps may be called hard without a trap."""
SHARE_OF_HARD = 1 / 4
MOST_SKILLS = 30
"""How many words the vocabulary of a set may have."""
MOST_BYTES = 300_000
WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
AT_ONCE = 3
"""More sessions than this only wait for each other on two cores."""


def template_key(row: Task) -> tuple[str, str]:
    """What a row is one of."""
    return row.env, row.template


def first_rows(rows: Iterable[Task]) -> list[Task]:
    """The first row of each template."""
    found: dict[tuple[str, str], Task] = {}
    for row in rows:
        found.setdefault(template_key(row), row)
    return list(found.values())


def sample_of(rows: Iterable[Task]) -> list[Task]:
    """Of the first rows of templates, every eighth."""
    return first_rows(rows)[::8]


SAMPLE = [row.id for name in NEW for row in sample_of(ROWS[name])]
"""The rows that `make test` plays."""
BY_ID = {row.id: row for name in NEW for row in ROWS[name]}

each_set = pytest.mark.parametrize("name", SETS)
each_new_set = pytest.mark.parametrize("name", NEW)
rows_in_turn = pytest.mark.parametrize(
    "row_ids",
    [
        pytest.param(SAMPLE, id="sample"),
        pytest.param(list(BY_ID), id="all", marks=pytest.mark.prove),
    ],
)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all worlds of these tests."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


Plays = dict[tuple[str, str], Play | Exception]


def ways_of(item: pytest.Item, row_id: str) -> list[str]:
    """The ways in which a test looks at a row's plays."""
    asked = item.get_closest_marker("ways")
    ways = ["oracle", *(asked.args if asked else ())]
    if "wrong answers" not in ways:
        return ways
    every = item.get_closest_marker("prove") is not None
    numbers = [str(number) for number, _ in enumerate(answers_of(BY_ID[row_id]))]
    return ["oracle", *(numbers if every else numbers[:1])]


def wanted_by(item: pytest.Item) -> list[tuple[str, str]]:
    """The plays that a test looks at: the row's id, and the way."""
    if not isinstance(item, pytest.Function) or "played" not in item.fixturenames:
        return []
    params = item.callspec.params
    if "row_ids" in params:
        return [(row_id, way) for row_id in params["row_ids"] for way in ways_of(item, row_id)]
    every = item.get_closest_marker("prove") is not None
    rows = ROWS[params["name"]]
    return [(row.id, "oracle") for row in (rows if every else sample_of(rows))]


@pytest.fixture(scope="module")
async def played(
    request: pytest.FixtureRequest, anyio_backend: str, shared: Shared, machine: None
) -> Plays:
    """What the tests of this run ask for, played; what failed is told by the test that asks."""
    items = [item for item in request.session.items if item.path == request.path]
    wanted = dict.fromkeys(each for item in items for each in wanted_by(item))
    results: Plays = {}
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def keep(key: tuple[str, str], work: Callable[[], Awaitable[Play]]) -> None:
        async with turns:
            try:
                with anyio.fail_after(PATIENCE_S):
                    results[key] = await work()
            except Exception as exc:  # noqa: BLE001  # raised again by `play_of`
                results[key] = exc

    async with anyio.create_task_group() as group:
        for row_id, way in wanted:
            group.start_soon(keep, (row_id, way), partial(play_row, BY_ID[row_id], way, shared))
    return results


def play_of(played: Plays, row_id: str, way: str) -> tuple[Play, Grade]:
    """What was played, and its grade; raises what went wrong on the way to it."""
    result = played[row_id, way]
    if isinstance(result, Exception):
        raise result
    assert result.grade is not None
    return result, result.grade


@rows_in_turn
def test_a_row_of_our_own_is_solved_by_its_solution(row_ids: list[str], played: Plays) -> None:
    """The template's own solution, through a client's actions, gets what the row says: 1."""

    @each_of("row_id", row_ids)
    def is_solved(row_id: str) -> None:
        validation = BY_ID[row_id].validation
        assert validation is not None
        grade = play_of(played, row_id, "oracle")[1]
        assert grade.reward == validation.oracle == 1.0, grade

    is_solved()


@pytest.mark.ways("nop")
@rows_in_turn
def test_doing_nothing_in_a_row_of_our_own_gets_nothing(row_ids: list[str], played: Plays) -> None:
    """An empty answer at once gets 0: no part of a row holds before it is worked on."""

    @each_of("row_id", row_ids)
    def gets_nothing(row_id: str) -> None:
        validation = BY_ID[row_id].validation
        assert validation is not None
        grade = play_of(played, row_id, "nop")[1]
        assert grade.reward == validation.nop == 0.0, grade

    gets_nothing()


@pytest.mark.ways("wrong answers")
@rows_in_turn
def test_a_wrong_answer_to_a_row_of_our_own_does_not_pass(
    row_ids: list[str], played: Plays, request: pytest.FixtureRequest
) -> None:
    """A hasty agent's answer, given at once, gets less than the solution."""
    ways = [(row_id, way) for row_id in row_ids for way in ways_of(request.node, row_id)[1:]]

    @each_of("row_id, way", ways)
    def does_not_pass(row_id: str, way: str) -> None:
        grade = play_of(played, row_id, way)[1]
        assert grade.reward < play_of(played, row_id, "oracle")[1].reward, grade

    does_not_pass()


@rows_in_turn
def test_the_steps_of_a_row_of_our_own_are_measured(row_ids: list[str], played: Plays) -> None:
    """The metadata say how many steps the solution takes, with the answer and without waits."""

    @each_of("row_id", row_ids)
    def is_measured(row_id: str) -> None:
        row, play = BY_ID[row_id], play_of(played, row_id, "oracle")[0]
        # A slow page may need one more scroll.
        spare = 1 if play.environment.world.name == "browser" else 0
        assert abs(row.metadata["steps"] - play.steps) <= spare, play.steps

    is_measured()


@rows_in_turn
def test_an_agent_reads_nothing_of_a_row_s_trap(row_ids: list[str], played: Plays) -> None:
    """Neither the prompt, nor a reply, nor what is public of the environment tells it."""

    @each_of("row_id", row_ids)
    def tells_nothing(row_id: str) -> None:
        play = play_of(played, row_id, "oracle")[0]
        trap = BY_ID[row_id].metadata.get("trap")
        public = json.dumps(play.environment.manifest(), ensure_ascii=False)
        texts = [play.agent.prompt, public, *play.tools.replies]
        assert not trap or not any(trap in text for text in texts)

    tells_nothing()


@pytest.mark.long
@rows_in_turn
async def test_a_row_of_another_seed_is_another_task(
    row_ids: list[str], played: Plays, shared: Shared
) -> None:
    """The next seed has another prompt, another answer, or another solution."""

    @each_of("row_id", row_ids)
    async def is_another(row_id: str) -> None:
        row, play = BY_ID[row_id], play_of(played, row_id, "oracle")[0]
        other = row.model_copy(update={"args": {**row.args, "seed": row.args["seed"] + 1}})
        with anyio.fail_after(PATIENCE_S):
            async with playing(other, shared) as begun:
                if begun.agent.prompt != play.agent.prompt:
                    return
                await begun.solve(other)
            if begun.tools.answer != play.tools.answer:
                return
            mistaken = await play_oracle(other, shared, of=row)
        assert mistaken.grade is not None
        assert mistaken.grade.reward < 1.0

    await is_another()


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == "office" else pytest.mark.long) for each in NEW]
)
async def test_prompts_of_our_own_are_the_same_in_another_process(name: str, played: Plays) -> None:
    """Rows of templates ask the same where the order of sets and hashes is another."""
    rows = sample_of(ROWS[name])
    there = await anyio.to_thread.run_sync(partial(told_elsewhere, rows, solved=False))
    for row in rows:
        assert there[row.id]["prompt"] == play_of(played, row.id, "oracle")[0].agent.prompt


@pytest.mark.prove
@each_new_set
async def test_rows_of_our_own_are_the_same_in_another_process(name: str, played: Plays) -> None:
    """Every row has the same prompt, the same answer and the same grade in all its parts."""
    there = await anyio.to_thread.run_sync(partial(told_elsewhere, ROWS[name], solved=True))
    for row in ROWS[name]:
        here = play_of(played, row.id, "oracle")[0].result
        assert there[row.id] == json.loads(json.dumps(here)), row.id
        assert here["answer"] not in answers_of(row)


def test_ids_of_our_own_are_distinct_and_name_their_set() -> None:
    """No two sets share an id; one of a new set begins with the set's name."""
    counted = Counter(row_id for rows in ROWS.values() for row_id in rows.ids)
    assert [row_id for row_id, count in counted.items() if count > 1] == []
    for name in NEW:
        assert [row.id for row in ROWS[name] if not row.id.startswith(f"{name}-")] == []


@each_set
def test_rows_of_our_own_say_what_they_measure(name: str) -> None:
    """Each has a difficulty, skills of the set's small vocabulary, steps, and maybe a trap."""
    for row in ROWS[name]:
        told = row.metadata
        assert row.description, row.id
        assert "\n" not in row.description
        assert told["difficulty"] in LEVELS, row.id
        assert type(told["steps"]) is int, row.id
        assert told["steps"] >= 1, row.id
        assert isinstance(told["skills"], list), row.id
        assert told["skills"], row.id
        assert all(WORD.fullmatch(skill) for skill in told["skills"]), row.id
        assert len(set(told["skills"])) == len(told["skills"]), row.id
        if "trap" in told:
            assert isinstance(told["trap"], str), row.id
            assert re.fullmatch(r"[A-Z0-9].*\w.*[.]", told["trap"]), row.id
    vocabulary = {skill for row in ROWS[name] for skill in row.metadata["skills"]}
    assert len(vocabulary) <= MOST_SKILLS, vocabulary


@each_new_set
def test_new_sets_have_enough_that_is_hard(name: str) -> None:
    """A quarter is hard, by many steps or by a trap; and some of each difficulty is there."""
    rows = list(ROWS[name])
    levels = Counter(row.metadata["difficulty"] for row in rows)
    assert levels["hard"] >= SHARE_OF_HARD * len(rows), levels
    assert set(levels) == set(LEVELS)
    for row in rows:
        if row.metadata["difficulty"] == "hard":
            assert row.metadata["steps"] >= MANY_STEPS or "trap" in row.metadata, row.id


@each_new_set
def test_new_sets_draw_from_a_seed(name: str) -> None:
    """Each template has a bounded seed; rows of a template differ in it, or in another argument."""
    seen: Counter[str] = Counter()
    for row in ROWS[name]:
        schema = environment_of(row.env).find_template(row.template).arguments.schema
        seed = schema["properties"]["seed"]
        assert seed["type"] == "integer"
        assert {"minimum", "maximum"} <= set(seed) | {
            {"exclusiveMaximum": "maximum", "exclusiveMinimum": "minimum"}.get(key, key)
            for key in seed
        }, row.template
        seen[json.dumps([*template_key(row), row.args], sort_keys=True)] += 1
        assert "seed" in row.args, row.id
    assert [key for key, count in seen.items() if count > 1] == []


@each_new_set
def test_every_template_of_a_new_set_has_a_row_and_an_oracle(name: str) -> None:
    """What an environment offers is in the set of its name, and somebody can solve it."""
    for env in ROWS[name].environment_names:
        templates = environment_of(env).templates
        assert set(templates) == {row.template for row in ROWS[name] if row.env == env}
        assert [each.id for each in templates.values() if each.oracle_function is None] == []


def files_of(env: str) -> list[Path]:
    """The files of an environment's folder."""
    folder = environment_of(env).folder
    assert folder != shipped_folder("environments"), f"{env} has no folder of its own"
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def site_of(inside: tuple[str, ...]) -> str:
    """Which site of the web a file is of, by its folder or its name; empty for what all share."""
    if inside[0] == "sites":
        return inside[1] if inside[2:] else ""
    parts = inside[0].split("_")
    return parts[1] if parts[2:] else ""


@each_new_set
def test_new_sets_are_small(name: str) -> None:
    """The files of a set are less than 300 kB; of the web, those of each site."""
    for env in ROWS[name].environment_names:
        sizes: Counter[str] = Counter()
        for path in files_of(env):
            inside = path.relative_to(environment_of(env).folder).parts
            sizes[site_of(inside) if name == "web" else ""] += path.stat().st_size
        assert {site: size for site, size in sizes.items() if size >= MOST_BYTES} == {}
    assert (DATA / f"{name}.jsonl").stat().st_size < MOST_BYTES


@pytest.mark.long
async def test_a_play_is_graded_as_a_session_is(shared: Shared) -> None:
    """A row of quickstart, whose rewards are known, gets them in these plays too."""
    row = Taskset.load(DATA / "quickstart.jsonl")["count-r-strawberry"]
    with anyio.fail_after(PATIENCE_S):
        solved = await play_oracle(row, shared)
        rewards = [(await play_row(row, way, shared)).grade for way in (NOP, "0")]
        there = await anyio.to_thread.run_sync(partial(told_elsewhere, [row], solved=True))
    assert solved.grade is not None
    assert solved.grade.reward == 1.0
    assert [grade and grade.reward for grade in rewards] == [0.0, 0.0]
    assert solved.steps == row.metadata["steps"]
    assert there == {row.id: json.loads(json.dumps(solved.result))}
