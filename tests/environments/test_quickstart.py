"""The quickstart set: every row is solved by its solution, and by nothing less.

Tasks are played on real worlds, without a server, as `plays` does it.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from plays import Play, playing
from waiting import PATIENCE_S

from hud_mcp import Grade, Opening, Task, Taskset
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import load_environments
from hud_mcp.task import FROM_JSON
from hud_mcp.world import Shared

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

ROWS = Taskset.load(find_taskset("quickstart"))
ENVIRONMENTS = {e.name: e for e in load_environments(["letter_count", "browser"])}
BROWSER = ENVIRONMENTS["browser"]
CALLS = Taskset([BROWSER.bind(row) for row in Taskset.load(find_taskset("quickstart_calls"))])
"""The same tasks of the sites, as prompts with calls of the environment's functions."""
WAYS = ("oracle", "nop", "wrong_answer")
AT_ONCE = 3
"""More sessions than this only wait for each other on two cores."""


def mint(template: str, **args: Any) -> Task:
    """A task of the browser environment."""
    return BROWSER.templates[template](**args)


TOO_MUCH = {
    "a second order": ("shop-buy-lamp", "/shop/", ROWS["shop-buy-lamp"]),
    "a product left in the cart": ("shop-buy-lamp", "/shop/", ROWS["shop-cart-mug"]),
    "another product in the cart": ("shop-cart-mug", "/shop/", ROWS["shop-cart-notebooks"]),
    "a cart filled beside a question": ("shop-price-lamp", "/shop/", ROWS["shop-cart-mug"]),
    "tickets of another topic": (
        "desk-assign-technical",
        "/admin/tickets/",
        mint("desk_assign_open", topic="Billing"),
    ),
    "another customer deleted": (
        "desk-customer-moved",
        "/admin/tickets/",
        ROWS["desk-delete-customer"],
    ),
    "another contract renewed": (
        "desk-renew-hotel",
        "/admin/tickets/",
        mint("desk_renew", customer="Gull Ferries"),
    ),
    "another setting turned": (
        "desk-settings-danish",
        "/admin/tickets/",
        mint(
            "desk_settings",
            digest=False,
            weekend_cover=False,
            close_after=14,
            reply_language="Danish",
        ),
    ),
    "another card dragged": (
        "board-drag-card",
        "/board/",
        mint("board_drag", card="Print tickets on A6", column="Done"),
    ),
    "the card made twice": ("board-new-card", "/board/", ROWS["board-new-card"]),
    "another column archived": (
        "board-archive-done",
        "/board/",
        mint("board_archive", column="Review"),
    ),
}
"""A row, where its solution is followed by that of another task, and that task."""

IN_PART = {
    "an order with another delivery": (
        "shop-buy-lamp",
        mint("shop_buy", delivery="express"),
        5 / 6,
    ),
    "six of fourteen tickets": (
        "desk-assign-all",
        mint("desk_assign_open", topic="Technical", assignee="Tomas Vik"),
        6 / 14,
    ),
    "a card at the wrong end": ("board-drag-card", mint("board_drag", place="bottom"), 1 / 2),
    "a card with another owner": ("board-new-card", mint("board_new_card", owner="Amal"), 4 / 5),
}
"""A row, another task that is solved in its place, and what that is worth."""

SAMPLE = {
    *(row.id for row in ROWS if row.env == "letter_count"),
    "board-drag-card",
}  # fmt: skip
"""The rows that `make test` plays; `make prove` plays them all."""


def sampled(row_id: str, value: Any) -> Any:
    """A parameter that is of the sample where its row is."""
    return value if row_id in SAMPLE else pytest.param(value, marks=pytest.mark.prove)


each_row = pytest.mark.parametrize(
    "row", [sampled(row.id, row) for row in ROWS], ids=[row.id for row in ROWS]
)
each_call = pytest.mark.parametrize(
    "row", [sampled(row.metadata["twin"], row) for row in CALLS], ids=[row.id for row in CALLS]
)


def cases_of(*tables: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """The cases of tables, by the rows that they are of."""
    return [sampled(table[case][0], case) for table in tables for case in table]


def twin_of(row: Task) -> Task:
    """The row of a template that asks the same."""
    return ROWS[row.metadata["twin"]]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all worlds of these tests."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


Played = dict[tuple[str, str], Play | Exception]


@pytest.fixture(scope="module")
async def played(request: pytest.FixtureRequest, anyio_backend: str, shared: Shared) -> Played:
    """What the tests of this run ask for, played; what failed is told by the test that asks."""
    chosen = [
        each.callspec.params
        for each in request.session.items
        if isinstance(each, pytest.Function)
        and each.path == request.path
        and hasattr(each, "callspec")
    ]
    rows = {params["row"].id for params in chosen if "row" in params}
    cases = {params["case"] for params in chosen if "case" in params}
    calls = [row for row in CALLS if row.id in rows]
    rows |= {twin_of(row).id for row in calls}
    results: Played = {}
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def keep(key: tuple[str, str], work: Callable[[], Awaitable[Play]]) -> None:
        async with turns:
            try:
                with anyio.fail_after(PATIENCE_S):
                    results[key] = await work()
            except Exception as exc:  # noqa: BLE001  # raised again by `grade_of`
                results[key] = exc

    async with anyio.create_task_group() as group:
        for row in [*(row for row in ROWS if row.id in rows), *calls]:
            for way in WAYS:
                group.start_soon(keep, (row.id, way), partial(play_row, row, way, shared))
        for kind, table, play in (
            ("too much", TOO_MUCH, play_too_much),
            ("in part", IN_PART, play_in_part),
        ):
            for case in (case for case in table if case in cases):
                group.start_soon(keep, (kind, case), partial(play, case, shared))
                as_calls = partial(play_as_calls, case, shared)
                group.start_soon(keep, ("as calls", case), as_calls)
    return results


async def play_row(row: Task, way: str, shared: Shared) -> Play:
    """Play a row to its grade in one way."""
    async with playing(row, shared) as play:
        if way == "oracle":
            await play.solve(row if row.prompt is None else twin_of(row))
        elif way == "nop":
            await play.agent.respond("")
        else:
            assert row.validation is not None
            await play.agent.respond(row.validation.wrong_answer)
    return play


async def play_as_calls(case: str, shared: Shared) -> Play:
    """Play a case of doing too much, or a part, in the row with calls."""
    row_id = (TOO_MUCH.get(case) or IN_PART[case])[0]
    row = CALLS[f"{row_id}-calls"]
    if case in TOO_MUCH:
        return await play_too_much(case, shared, row)
    return await play_in_part(case, shared, row)


async def play_too_much(case: str, shared: Shared, row: Task | None = None) -> Play:
    """Solve a row, and then what another task asks for."""
    row_id, start, other = TOO_MUCH[case]
    async with playing(row or ROWS[row_id], shared) as play:
        await play.solve(ROWS[row_id])
        await play.agent.custom("goto", url=start)
        await play.tools.world.page.wait_for_load_state("networkidle")
        await play.solve(other)  # the first answer stands
    return play


async def play_in_part(case: str, shared: Shared, row: Task | None = None) -> Play:
    """Start a row, and do what another task asks for."""
    row_id, other, _ = IN_PART[case]
    async with playing(row or ROWS[row_id], shared) as play:
        await play.solve(other)
    return play


def grade_of(played: Played, *key: str) -> Grade:
    """The grade of what was played; raises what went wrong on the way to it."""
    result = played[key[0], key[1]]
    if isinstance(result, Exception):
        raise result
    assert result.grade is not None
    return result.grade


@pytest.mark.sampled(3)
@each_row
def test_a_row_is_solved_by_its_solution(row: Task, played: Played) -> None:
    """The template's own solution, through a client's actions, gets exactly 1."""
    grade = grade_of(played, row.id, "oracle")
    assert grade.reward == 1.0, grade


@pytest.mark.sampled(3)
@each_row
def test_doing_nothing_gets_nothing(row: Task, played: Played) -> None:
    """An empty answer at once gets exactly 0: no part of a row holds before it is worked on."""
    grade = grade_of(played, row.id, "nop")
    assert grade.reward == 0.0, grade


@pytest.mark.sampled(3)
@each_row
def test_a_wrong_answer_alone_does_not_pass(row: Task, played: Played) -> None:
    """What sounds right, or claims a deed that was not done, gets less than 1."""
    grade = grade_of(played, row.id, "wrong_answer")
    assert grade.reward < 1.0, grade


@pytest.mark.sampled(3)
@each_row
def test_the_steps_of_a_row_are_those_of_its_solution(row: Task, played: Played) -> None:
    """The number in the metadata is what the solution took, with its answer and without waits."""
    grade_of(played, row.id, "oracle")
    play = played[row.id, "oracle"]
    taken = play.agent.steps - play.tools.waits + 1
    assert abs(row.metadata["steps"] - taken) <= 1  # a slow page may need one more scroll


@each_row
def test_the_prompt_does_not_hold_the_answer(row: Task, played: Played) -> None:
    """Where a row asks for an answer, that is not among the words of its prompt."""
    grade_of(played, row.id, "oracle")
    play = played[row.id, "oracle"]
    answer = play.tools.answer
    assert not answer or not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", play.agent.prompt)


@pytest.mark.parametrize("case", cases_of(TOO_MUCH))
def test_doing_too_much_is_not_full_success(case: str, played: Played) -> None:
    """A row that is solved, with something else done beside it, gets half."""
    grade = grade_of(played, "too much", case)
    assert grade.reward == 0.5, grade
    assert "something else changed" in (grade.content or "")


@pytest.mark.parametrize("case", cases_of(IN_PART))
def test_a_part_of_a_task_is_worth_its_share(case: str, played: Played) -> None:
    """What is not as asked costs its share and no more, and the subscores add up to the reward."""
    grade = grade_of(played, "in part", case)
    assert grade.reward == pytest.approx(IN_PART[case][2])
    assert sum(p.value * p.weight for p in grade.subscores) == pytest.approx(grade.reward)


@each_call
def test_a_row_with_calls_gives_what_its_template_gives(row: Task, played: Played) -> None:
    """The same prompt; and solved, left alone or answered wrongly, the same grade in every part."""
    for way in WAYS:
        grade = grade_of(played, row.id, way)
        assert grade == grade_of(played, twin_of(row).id, way), way
    one, other = played[row.id, "nop"], played[twin_of(row).id, "nop"]
    assert isinstance(one, Play)
    assert isinstance(other, Play)
    assert one.agent.prompt == other.agent.prompt == row.prompt


@pytest.mark.parametrize("case", cases_of(TOO_MUCH, IN_PART))
def test_rows_with_calls_see_what_is_too_much_and_what_is_missing(
    case: str, played: Played
) -> None:
    """What another task did beside or in place of a row costs what it costs in the template."""
    kind = "too much" if case in TOO_MUCH else "in part"
    assert grade_of(played, "as calls", case) == grade_of(played, kind, case)


def test_every_task_of_the_sites_is_there_as_calls_too() -> None:
    """One row for each, with an id of its own; what it compares with is in no field for agents."""
    assert [row.metadata["twin"] for row in CALLS] == [r.id for r in ROWS if r.env == "browser"]
    assert not set(CALLS.ids) & set(ROWS.ids)
    assert all(row.validation and row.validation.oracle is None for row in CALLS)


PAGES = (
    "/",
    "/shop/",
    "/shop/?category=Lighting&sort=price&stock=1",
    "/shop/?q=nothing+like+it",
    "/shop/product/?id=heron-desk-lamp",
    "/shop/cart/",
    "/shop/checkout/",
    "/shop/orders/?placed=AG-58213",
    "/shop/offers/",
    "/admin/",
    "/admin/tickets/?status=Open&page=2",
    "/admin/tickets/edit/?id=T-2009",
    "/admin/customers/?sort=spent&order=desc",
    "/admin/customers/edit/?id=C-105",
    "/admin/settings/",
    "/board/",
    "/board/activity/",
)


@asynccontextmanager
async def browsing(shared: Shared, **context: Any) -> AsyncIterator[Any]:
    """A browser on the sites, with a cart that holds something and mara signed in."""
    filled = BROWSER.split_context(context)
    opening = Opening(context=filled, folder=BROWSER.folder, shared=shared)
    world = await BROWSER.world.open(opening)
    world.state["admin"]["user"] = "mara"
    line = {"product": "drift-blanket", "variant": "Heather", "quantity": 2}
    world.state["shop"]["cart"].append(line)
    try:
        yield world
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await world.close()


CONTROLS = "button|link|textbox|searchbox|combobox|checkbox|radio|spinbutton|switch"
NAMELESS = re.compile(rf"- (?:{CONTROLS}) \[.*")


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
async def test_pages_have_no_errors_and_can_be_read(width: int, shared: Shared) -> None:
    """No page logs an error, lacks a file, a heading or a control's name, or is too wide."""
    problems: list[str] = []
    async with browsing(shared, viewport_width=width) as world:
        page = world.page
        page.on("pageerror", lambda exc: problems.append(f"{page.url}: {exc}"))
        page.on("response", lambda r: problems.append(f"{r.url}: {r.status}") if not r.ok else None)
        page.on(
            "console",
            lambda m: problems.append(f"{page.url}: {m.text}") if m.type == "error" else None,
        )
        for path in PAGES:
            with anyio.fail_after(PATIENCE_S):
                await world.goto(path)
                wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
                tree = await page.aria_snapshot(mode="ai")
            problems += [f"{path} is wider than {width} px"] if wide else []
            problems += [] if "- heading " in tree else [f"{path} has no heading"]
            problems += [f"{path}: {line} has no name" for line in NAMELESS.findall(tree)]
    assert problems == []


async def test_looking_around_changes_nothing_and_tells_no_secret(shared: Shared) -> None:
    """No GET of the sites' API changes the state or tells a password; the desk needs a login."""
    paths = (
        "shop/products",
        "shop/products/heron-desk-lamp",
        "shop/cart",
        "shop/orders",
        "shop/cart/add",
        "admin/me",
        "admin/choices",
        "admin/tickets",
        "admin/customers/C-101/delete",
        "admin/settings",
        "board/cards",
        "board/cards/K1/archive",
        "board/activity",
    )
    async with browsing(shared) as world:
        before = deepcopy(world.state)
        async with httpx.AsyncClient(
            base_url=f"{world.site_address}/api/", trust_env=False
        ) as http:
            replies = [await http.get(path) for path in paths]
            assert world.state == before
            assert not any("lantern-42" in reply.text for reply in replies)
            world.state["admin"]["user"] = None
            shut = [await http.get(path) for path in paths if path.startswith("admin/")]
    assert {reply.status_code for reply in shut} == {401}


def test_the_set_is_as_its_page_says() -> None:
    """The set has rows of both environments and all difficulties, and each can be checked."""
    assert len(ROWS) >= 24
    assert {r.env for r in ROWS} == {"letter_count", "browser"}
    assert {r.metadata["difficulty"] for r in ROWS} == {"easy", "medium", "hard"}
    assert {r.template for r in ROWS if r.env == "browser"} == set(BROWSER.templates)
    for r in ROWS:
        assert r.description
        assert r.metadata["skills"]
        assert r.validation is not None
        assert (r.validation.oracle, r.validation.nop) == (1.0, 0.0)
        assert r.validation.wrong_answer


def test_the_examples_of_the_page_are_rows() -> None:
    """The rows that the README shows can be read and started, and their fields are explained."""
    text = (Path(find_taskset("quickstart")).parent / "README.md").read_text(encoding="utf-8")
    examples = [json.loads(each) for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    tasks = [Task.model_validate(each, context=FROM_JSON) for each in examples]
    assert {task.prompt is None for task in tasks} == {True, False}
    for task in tasks:
        load_environments([task.env])[0].bind(task)
    for name in Task.model_fields:
        assert f"| `{name}` |" in text
