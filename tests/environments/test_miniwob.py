"""MiniWoB++: its pages are solved by their solutions, and give nothing for anything less."""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from typing import Any

import anyio
import numpy as np
import pytest
from direct import Tools
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Agent, BrowserWorld, Environment, Grade, Opening, Taskset
from hud_mcp.environment.prompt import read_prompt
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import load_environments
from hud_mcp.values.grade import read_grade
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

BOUND_S = 120
ROWS = Taskset.load(find_taskset("miniwob"))
REAL_TIME = Taskset.load(find_taskset("miniwob_real_time"))
SOLVED = [row for row in ROWS if row.validation and row.validation.oracle == 1]
SAMPLE = ("click-test-2", "click-checkboxes", "enter-date", "drag-items", "use-slider")
"""The pages that `make test` plays; `make prove` plays them all."""

each_solved = pytest.mark.parametrize(
    "row",
    [
        row if row.template in SAMPLE else pytest.param(row, marks=pytest.mark.prove)
        for row in SOLVED
    ],
    ids=[row.template for row in SOLVED],
)


@pytest.fixture(scope="module")
def miniwob() -> Environment:
    """The environment, where its pages are installed."""
    try:
        (loaded,) = load_environments(["miniwob"])
    except InvalidEnvironment as exc:
        if "not installed" not in str(exc):
            raise
        pytest.skip("MiniWoB++ is not installed")
    return loaded


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all worlds of these tests."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


@dataclass
class Play:
    """An episode that is being worked on.

    Attributes:
        agent: Who works on it.
        world: On what.
        grade: None until it was graded.
    """

    agent: Agent
    world: BrowserWorld
    grade: Grade | None = None

    @property
    def reward(self) -> float:
        """What it was graded with."""
        assert self.grade is not None
        return self.grade.reward

    async def tries(self, action: dict[str, Any]) -> bool:
        """Perform an action, and return whether that was possible."""
        return not (await self.agent.ask("step", {"actions": [action]})).is_error

    async def click_start(self) -> None:
        """Begin another episode, as the page offers it once it is loaded again."""
        await self.agent.click("#sync-task-cover")


@asynccontextmanager
async def playing(
    environment: Environment, shared: Shared, page: str, seed: int = 0
) -> AsyncIterator[Play]:
    """Begin an episode; it is graded at the end of the body."""
    opening = Opening(folder=environment.folder, shared=shared)
    with anyio.fail_after(BOUND_S):
        world = await environment.world.open(opening)
        assert isinstance(world, BrowserWorld)
        try:
            template = environment.find_template(page)
            generator = template.run({"seed": seed}, world)
            prompt = read_prompt(await anext(generator), where=template.where)
            play = Play(Agent(Tools(world), session="here", prompt=prompt.text), world)
            yield play
            play.grade = read_grade(await generator.asend("done"), where=template.where)
            with pytest.raises(StopAsyncIteration):
                await anext(generator)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(10):
                await world.close()


@pytest.mark.sampled(2)
@each_solved
async def test_a_page_is_solved_by_its_solution(
    row: Any, miniwob: Environment, shared: Shared
) -> None:
    """With the seed of its row, through an agent's own actions, the page gives its full reward."""
    solution = miniwob.find_template(row.template).oracle_function
    assert solution is not None
    assert list(inspect.signature(solution).parameters) == ["agent"]
    async with playing(miniwob, shared, row.template, row.args["seed"]) as play:
        await solution(play.agent)
    assert play.reward == 1, play.grade


@pytest.mark.prove
@pytest.mark.parametrize(("page", "seed"), [("social-media", 0)])
async def test_a_solution_holds_for_what_another_seed_draws(
    page: str, seed: int, miniwob: Environment, shared: Shared
) -> None:
    """What the row's own seed does not draw: a menu's item that ends with the user's name."""
    solution = miniwob.find_template(page).oracle_function
    assert solution is not None
    async with playing(miniwob, shared, page, seed) as play:
        await solution(play.agent)
    assert play.reward == 1, play.grade


@each_of("page", SAMPLE)
async def test_doing_nothing_on_a_page_gives_nothing(
    page: str, miniwob: Environment, shared: Shared
) -> None:
    """A page that has given no result is worth 0, and the grade says so."""
    async with playing(miniwob, shared, page) as play:
        await play.agent.look()
    assert play.reward == 0
    assert play.grade is not None
    assert play.grade.content == "The page gave no result."


async def test_a_page_that_failed_cannot_be_played_again(
    miniwob: Environment, shared: Shared
) -> None:
    """After a wrong click there is no START, and the right one counts no more."""
    async with playing(miniwob, shared, "click-test-2") as play:
        await play.agent.click("#subbtn2")
        assert "The episode is over." in play.agent.text
        assert not await play.tries({"type": "click", "selector": "#sync-task-cover"})
        await play.agent.click("#subbtn")
    assert play.reward == 0
    assert play.grade is not None
    assert play.grade.content == "The page's first result was -1."


async def test_what_follows_a_success_does_not_undo_it(
    miniwob: Environment, shared: Shared
) -> None:
    """A wrong click, another page or a reload after the first result change nothing."""
    async with playing(miniwob, shared, "click-test-2") as play:
        await play.agent.click("#subbtn")
        await play.agent.click("#subbtn2")
        await play.agent.custom("goto", url="/miniwob/click-test.html")
        await play.agent.custom("reload")
    assert play.reward == 1


@pytest.mark.parametrize("way", ["away and back", "reload", "the address again"])
async def test_a_page_that_is_left_gives_nothing(
    way: str, miniwob: Environment, shared: Shared
) -> None:
    """An episode that is begun and solved on another document of the same page is not counted."""
    async with playing(miniwob, shared, "click-test-2") as play:
        here = play.world.url
        if way == "away and back":
            await play.agent.custom("goto", url="/miniwob/click-test.html")
            await play.agent.custom("back")
        elif way == "reload":
            await play.agent.custom("reload")
        else:
            await play.agent.custom("goto", url=here)
        assert play.world.url == here
        await play.click_start()
        await play.agent.click("#subbtn")
    assert play.reward == 0
    assert play.grade is not None
    assert "left" in (play.grade.content or "")


async def test_an_address_is_no_way_to_run_a_script(miniwob: Environment, shared: Shared) -> None:
    """`javascript:` is refused, and DevTools are not published."""
    async with playing(miniwob, shared, "click-test-2") as play:
        address = "javascript:core.endEpisode(1)"
        action = {"type": "custom", "action": "goto", "args": {"url": address}}
        assert not await play.tries(action)
    assert play.reward == 0
    assert miniwob.world.endpoints == ()


INJECTED = {
    "an event": "<img src=x onerror=core.endEpisode(1)>",
    "a frame": '<iframe srcdoc="<script>parent.core.endEpisode(1)</script>"></iframe>',
    "an address": '<a href="javascript:core.endEpisode(1)">here</a>',
    "a page with its opener": '<a href="/miniwob/terminal.html" target=other>here</a>',
}


@pytest.mark.long
@each_of("kind", INJECTED)
async def test_what_is_typed_as_html_runs_no_script(
    kind: str, miniwob: Environment, shared: Shared
) -> None:
    """One page shows what is typed as HTML; a script in it gives no result, and opens no tab."""
    async with playing(miniwob, shared, "terminal") as play:
        await play.agent.click("#terminal")
        await play.agent.type(INJECTED[kind], enter=True)
        injected = "#terminal-contents :is(img, iframe, a)"
        assert await play.world.page.locator(injected).count() == 1
        if "<a" in INJECTED[kind]:
            await play.agent.click("#terminal-contents a")
        await play.agent.step({"type": "wait", "time": 300})
        assert len(play.world.page.context.pages) == 1
    assert play.reward == 0
    assert play.grade is not None
    assert play.grade.content == "The page gave no result."


async def test_a_part_of_the_work_is_no_success(miniwob: Environment, shared: Shared) -> None:
    """Where a page gives a fraction for some of its boxes, the reward is 0."""
    async with playing(miniwob, shared, "click-checkboxes-large") as play:
        names = play.agent.prompt.removeprefix("Select ").split(", ")
        for name in names[:-1]:
            await play.agent.click(f'label:text-is("{name}") >> input')
        await play.agent.click("#subbtn")
    assert play.grade is not None
    assert play.reward == 0
    shown = (play.grade.content or "").removeprefix("The page's first result was ").rstrip(".")
    assert 0 < float(shown) < 1


@pytest.mark.parametrize(
    ("page", "seed", "prompt"),
    [
        ("use-colorwheel-2", 0, "Select the following color #0198e3 with the color picker"),
        ("click-menu-2", 7, 'the item with the "ui-icon-play" icon.'),
    ],
)
async def test_a_prompt_says_what_the_page_only_shows(
    page: str, seed: int, prompt: str, miniwob: Environment, shared: Shared
) -> None:
    """Colours and icons that stand in the page's own text are in the prompt by their names."""
    async with playing(miniwob, shared, page, seed) as play:
        assert prompt in play.agent.prompt


async def test_a_seed_draws_the_same_task(miniwob: Environment, shared: Shared) -> None:
    """One seed gives the same prompt and the same page in two browsers; another gives others."""
    seen: list[tuple[str, str]] = []
    for seed in (5, 5, 6):
        async with playing(miniwob, shared, "click-checkboxes", seed) as play:
            seen.append((play.agent.prompt, await play.agent.look()))
    assert seen[0] == seen[1] != seen[2]


def test_the_rows_have_browsergyms_pages_and_seeds() -> None:
    """Each of the 125 pages has the first seed that BrowserGym draws for it, and what that is."""
    assert len(ROWS) == 125
    drawn = np.random.RandomState(42)  # as BrowserGym draws
    for row in ROWS:
        first = int(drawn.randint(0, 34, size=5)[0])
        assert row.id == f"miniwob.{row.template}"
        assert row.metadata["browsergym_seed"] == first
        assert row.args["seed"] == np.random.RandomState(first).randint(0, 1_000_000)
    assert len(SOLVED) >= 60


def test_real_time_pages_are_a_set_of_their_own() -> None:
    """Five pages depend on the moment of a click: they are marked, and not among the others."""
    assert {row.template for row in REAL_TIME} == {
        "button-delay",
        "chase-circle",
        "hover-shape",
        "moving-items",
        "simon-says",
    }
    assert not {row.template for row in REAL_TIME} & {row.template for row in ROWS}
    assert all(row.metadata["real_time"] is True for row in REAL_TIME)


def test_every_row_is_of_a_page_that_is_there(miniwob: Environment) -> None:
    """Each row fits the environment; a row says that it is solved where there is a solution."""
    for row in (*ROWS, *REAL_TIME):
        miniwob.bind(row)
        has_solution = miniwob.find_template(row.template).oracle_function is not None
        assert row.validation is not None
        assert has_solution == (row.validation.oracle == 1), row.id


def test_an_error_names_the_extra_that_brings_the_pages(
    miniwob: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the package is missing, what to install is said."""
    pages = import_module("miniwob_pages")

    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    assert miniwob.name == "miniwob"
    monkeypatch.setattr(pages, "distribution", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hud-mcp\[miniwob\]'"):
        pages.find_pages()
