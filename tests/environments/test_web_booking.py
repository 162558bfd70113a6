"""The booking site: its grading stands attacks, its server refuses what is wrong, its pages work.

What needs no page is tried on the site's state, with the requests that pages send.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import date, timedelta
from typing import Any

import anyio
import pytest
from plays import environment_of, play_oracle, playing
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Before, Grade, Opening, SiteRequest, SiteResponse, Task
from hud_mcp.world import Shared

WEB = environment_of("web")
sys.path.insert(0, str(WEB.folder))

import web_booking_draws as draws  # noqa: E402
import web_booking_grading as grading  # noqa: E402
import web_booking_rivals as rivals  # noqa: E402
import web_booking_trips as trips  # noqa: E402
from web_booking_backend import booking_api  # noqa: E402
from web_booking_data import draw_catalogue  # noqa: E402
from web_booking_prices import day_text, free_units, money_text, quote  # noqa: E402
from web_booking_state import catalogue_of, new_booking_site  # noqa: E402
from web_booking_steps import read_rooms, reserve  # noqa: E402

pytestmark = [pytest.mark.anyio]

Site = dict[str, Any]


async def ask(site: Site, path: str, **query: str) -> Any:
    """What the site's server answers to a GET."""
    return await booking_api(path, SiteRequest(method="GET", path=path, query=query), site)


async def send(site: Site, path: str, given: Any) -> Any:
    """What the site's server answers to a POST."""
    body = json.dumps(given).encode()
    return await booking_api(path, SiteRequest(method="POST", path=path, body=body), site)


def begun(site: Site) -> Before:
    """What a task keeps of a state when it begins."""
    return Before({"booking": site}, allowed=["booking.compare"])


def form_of(stay: draws.Stay, units: list[int], **more: Any) -> dict[str, Any]:
    """What the checkout sends for a stay."""
    return {
        "place": stay.place["id"], "room": stay.room["id"], "units": units,
        "from": stay.start.isoformat(), "to": stay.end.isoformat(),
        "adults": stay.adults, "children": stay.children,
        "mains": {str(unit): "Ada Holm" for unit in units},
        "name": "Ada Holm", "email": "ada@holm.example", "phone": "+41 79 1000",
        "arrival": "15:00 to 17:00", "request": "", "terms": True, **more,
    }  # fmt: skip


ADA = {
    "mains": ["Ada Holm"],
    "contact": {"name": "Ada Holm", "email": "ada@holm.example", "phone": "+41 79 1000"},
    "arrival": "15:00 to 17:00",
    "request": "",
}


class Booked:
    """A stay of a seed, its site, and what booking it would be worth."""

    def __init__(self, seed: int = 5) -> None:
        self.site = new_booking_site(seed)
        self.stay = draws.draw_stay(seed, 3)
        self.known = {b["id"] for b in self.site["bookings"]}
        self.before = begun(self.site)
        catalogue, stay = draw_catalogue(seed), self.stay
        self.free = free_units(catalogue, self.site, stay.room, stay.start, stay.end)

    async def book(self, **more: Any) -> str:
        """Book the stay, changed as told; returns the number."""
        given = form_of(self.stay, self.free[:1], **more)
        reply = await send(self.site, "bookings", given)
        assert isinstance(reply, dict), reply
        return reply["id"]

    def grade(self, answer: str) -> Grade:
        """What the state and an answer are worth."""
        return grading.grade_booking(
            self.site, self.before, self.known, self.stay, form=ADA,
            answered=lambda booking: grading.names_only(answer, booking["id"]),
        )  # fmt: skip


async def test_a_stay_that_is_booked_as_asked_is_worth_all() -> None:
    """The place, the room, the days, the people, the form and the answer are as asked."""
    case = Booked()
    assert case.grade("RS-00000").reward == 0
    assert case.grade(await case.book()).reward == 1


async def test_another_booking_beside_the_right_one_costs_half() -> None:
    """Booking every room that is free does not help."""
    case = Booked()
    number = await case.book()
    later = case.stay.end + timedelta(days=1)
    days = [later + timedelta(days=n) for n in range(30)]
    for day in days:
        given = form_of(case.stay, [case.stay.room["units"][0]])
        given |= {"from": day.isoformat(), "to": (day + timedelta(days=1)).isoformat()}
        if isinstance(await send(case.site, "bookings", given), dict):
            break
    assert len(case.site["bookings"]) == len(case.known) + 2
    assert case.grade(number).reward == 0.5


async def test_a_booking_of_other_people_is_worth_nothing() -> None:
    """Without the stay that was asked for, the form and the answer count for nothing."""
    case = Booked()
    number = await case.book(adults=1, children=0)
    assert (case.stay.adults, case.stay.children) != (1, 0)
    assert case.grade(number).reward == 0


async def test_all_numbers_in_an_answer_are_no_answer() -> None:
    """An answer that names every booking names none."""
    case = Booked()
    number = await case.book()
    every = ", ".join([*case.known, number])
    assert case.grade(every).reward == pytest.approx(5 / 6)
    assert case.grade(number.lower()).reward == 1


async def test_a_wrong_booking_that_was_cancelled_again_still_costs() -> None:
    """What a guest books by mistake stays in the list, and is seen."""
    case = Booked()
    first = await case.book(arrival="21:00 to 23:00")
    row = next(b for b in await ask(case.site, "bookings") if b["id"] == first)
    await send(case.site, f"bookings/{first}/cancel", {"fee": row["cancel_fee"]})
    assert case.grade(await case.book()).reward == 0.5


async def cancel(site: Site, number: str) -> None:
    """Cancel a booking for what it costs."""
    row = await ask(site, f"bookings/{number}")
    await send(site, f"bookings/{number}/cancel", {"fee": row["cancel_fee"]})


async def test_cancelling_every_booking_is_worth_nothing() -> None:
    """The free one among them does not make up for the fees of the others."""
    site, booking = trips.draw_cancel(3)
    before = begun(site)
    today = draw_catalogue(3).today.isoformat()
    coming = [b["id"] for b in site["bookings"] if b["from"] > today]
    await cancel(site, booking["id"])
    assert grading.grade_cancelled(site, before, booking["id"], booking["id"]).reward == 1
    for number in coming:
        await cancel(site, number)
    assert grading.grade_cancelled(site, before, booking["id"], booking["id"]).reward == 0


async def test_the_right_number_without_the_work_is_worth_nothing() -> None:
    """An answer counts only where the state is as asked."""
    site, booking = trips.draw_cancel(4)
    assert grading.grade_cancelled(site, begun(site), booking["id"], booking["id"]).reward == 0
    move = trips.draw_move(4, 1)
    days = (move.start, move.end)
    graded = grading.grade_moved(move.site, begun(move.site), move.booking["id"], days, right=True)
    assert graded.reward == 0


async def test_a_booking_that_is_cancelled_and_booked_anew_is_not_moved() -> None:
    """Only the booking itself on the new days is what was asked for."""
    move = trips.draw_move(6, 1)
    before, own = begun(move.site), move.booking["id"]
    days = {"from": move.start.isoformat(), "to": move.end.isoformat()}
    other = {**deepcopy(move.booking), "id": "RS-11111", **days}
    move.site["bookings"].append(other)
    await cancel(move.site, own)
    graded = grading.grade_moved(move.site, before, own, (move.start, move.end), right=True)
    assert graded.reward == 0
    move = trips.draw_move(6, 1)
    before = begun(move.site)
    reply = await send(move.site, f"bookings/{own}/dates", days)
    assert reply == {"id": own}
    graded = grading.grade_moved(move.site, before, own, (move.start, move.end), right=True)
    assert graded.reward == 1


@pytest.mark.parametrize("sold_out", [0, 1, 2])
async def test_a_booking_is_not_moved_to_where_a_night_is_sold_out(sold_out: int) -> None:
    """The server names the night, and the booking stays as it was."""
    move = trips.draw_move(8, sold_out)
    start = date.fromisoformat(move.booking["from"]) + timedelta(days=7)
    end = start + (move.end - move.start)
    kept = deepcopy(move.site)
    days = {"from": start.isoformat(), "to": end.isoformat()}
    reply = await send(move.site, f"bookings/{move.booking['id']}/dates", days)
    assert isinstance(reply, SiteResponse)
    night = day_text(start + timedelta(days=sold_out))
    assert f"The night of {night} is sold out." in reply.json["error"]
    assert move.site == kept


async def test_saving_all_places_to_a_list_is_worth_nothing() -> None:
    """Each place that does not belong into the list takes one away."""
    case = trips.draw_favourites(9)
    site = new_booking_site(9)
    before = begun(site)
    row = await send(site, "lists", {"name": case.name})
    for place in case.places:
        await send(site, f"lists/{row['id']}/places", {"place": place, "on": True})
    assert grading.grade_favourites(site, before, case.name, case.places).reward == 1
    for place in draw_catalogue(9).places:
        await send(site, f"lists/{row['id']}/places", {"place": place, "on": True})
    assert grading.grade_favourites(site, before, case.name, case.places).reward == 0


async def test_a_guest_of_another_kind_is_another_guest() -> None:
    """A child is not the adult that was asked for."""
    site, booking, person = trips.draw_guest(10)
    own, name = booking["id"], person["name"]
    before = begun(site)
    await send(site, f"bookings/{own}/guests", {"name": name, "kind": "child"})
    assert grading.grade_guest(site, before, own, (name, "child"), right=True).reward == 1
    assert grading.grade_guest(site, before, own, (name, "adult"), right=True).reward == 0


@each_of(
    ("answer", "right"),
    [
        ("Fri 4 Jun 2027", True),
        ("4 June 2027", True),
        ("June 4th, 2027", True),
        ("2027-06-04", True),
        ("04.06.2027", True),
        ("the 4th of June 2027", True),
        ("5 Jun 2027", False),
        ("4 Jun 2026", False),
        ("Jun 2027", False),
        ("4 Jun 2027 or 11 Jun 2027", False),
        ("", False),
    ],
)
def test_a_day_is_read_in_any_usual_form(answer: str, right: bool) -> None:  # noqa: FBT001
    """One day counts, however it is written, and a list of days does not."""
    assert grading.names_day(answer, date(2027, 6, 4)) is right


def test_prices_are_what_the_rules_say() -> None:
    """Nights, weekly discount, voucher, cleaning and tax make the total; children pay no tax."""
    catalogue = draw_catalogue(12)
    place = next(p for p in catalogue.places.values() if p["weekly"] and p["cleaning"])
    room, start = place["rooms"][0], catalogue.today + timedelta(days=20)
    code = catalogue.vouchers[0]
    price = quote(
        catalogue, place, room, start, start + timedelta(days=7), adults=2, units=2,
        voucher=code["code"],
    )  # fmt: skip
    off = (price["nights"] * place["weekly"] + 50) // 100
    assert price["weekly"] == -off
    assert price["voucher"] == -(((price["nights"] - off) * code["percent"] + 50) // 100)
    assert price["cleaning"] == 2 * place["cleaning"]
    assert price["tax"] == 2 * 7 * catalogue.town_of(place)["tax"]
    parts = ("nights", "weekly", "voucher", "cleaning", "tax")
    assert price["total"] == sum(price[name] for name in parts)
    six = quote(catalogue, place, room, start, start + timedelta(days=6), adults=2)
    assert (six["weekly"], six["voucher"]) == (0, 0)
    assert money_text(123450) == "€1,234.50"


BAD = [
    ("bookings", {}),
    ("bookings", []),
    ("bookings", {"units": [1, "2"], "place": 7}),
    ("lists", {"name": "  "}),
    ("lists", {"name": "SOMEDAY"}),
    ("lists", {"name": "New", "place": "nowhere"}),
    ("lists/L1/places", {"place": "nowhere", "on": True}),
    ("lists/L1/places", {"place": ["x"], "on": True}),
    ("lists/L1/rename", {"name": ""}),
    ("compare", {"place": "nowhere", "on": True}),
    ("compare", {}),
]
"""What a page never sends."""


@each_of(("path", "given"), BAD)
async def test_bad_requests_are_refused_and_change_nothing(path: str, given: Any) -> None:
    """Each is answered with 400 and a sentence."""
    site = new_booking_site(1)
    kept = deepcopy(site)
    reply = await send(site, path, given)
    assert isinstance(reply, SiteResponse)
    assert reply.status == 400
    assert reply.json["error"].endswith(".")
    assert site == kept


@each_of(
    "change",
    [
        {"units": []},
        {"units": [0]},
        {"units": [True]},
        {"adults": 0},
        {"adults": 40},
        {"adults": "2"},
        {"children": -1},
        {"from": "2020-01-01"},
        {"to": "tomorrow"},
        {"terms": "yes"},
        {"email": "nobody"},
        {"phone": "x"},
        {"arrival": "at night"},
        {"mains": {}},
        {"voucher": "NONE"},
        {"room": "nothing"},
    ],
)
async def test_a_booking_with_a_mistake_is_refused(change: dict[str, Any]) -> None:
    """Nothing is booked, and the reply says what is wrong."""
    case = Booked()
    kept = deepcopy(case.site)
    given = form_of(case.stay, case.free[:1]) | change
    reply = await send(case.site, "bookings", given)
    assert isinstance(reply, SiteResponse)
    assert reply.status == 400
    assert reply.json["error"]
    assert case.site == kept


async def test_a_room_is_not_booked_twice() -> None:
    """What one has booked oneself is no longer free, until it is cancelled."""
    case = Booked()
    number = await case.book()
    again = await send(case.site, "bookings", form_of(case.stay, case.free[:1]))
    assert isinstance(again, SiteResponse)
    assert "no longer free" in again.json["error"]
    await cancel(case.site, number)
    assert isinstance(await send(case.site, "bookings", form_of(case.stay, case.free[:1])), dict)


async def test_a_price_that_has_risen_is_not_paid_unseen() -> None:
    """A stay is booked only for the total that its form has shown."""
    case = Booked()
    stay, site = case.stay, case.site

    def total() -> int:
        place = catalogue_of(site).places[stay.place["id"]]
        room = next(each for each in place["rooms"] if each["id"] == stay.room["id"])
        days = (stay.start, stay.end)
        return quote(catalogue_of(site), place, room, *days, adults=stay.adults)["total"]

    old = total()
    site["dearer"] = {stay.room["id"]: rivals.RISE}
    kept = deepcopy(site)
    reply = await send(site, "bookings", form_of(stay, case.free[:1], total=old))
    assert isinstance(reply, SiteResponse)
    assert money_text(total()) in reply.json["error"]
    assert site == kept
    assert total() > old
    await case.book(total=total())
    assert site["bookings"][-1]["price"]["total"] == total()


async def test_a_fee_is_not_paid_unseen() -> None:
    """A booking is cancelled only for the fee that it costs, and only once."""
    site, booking = trips.draw_cancel(2)
    today = draw_catalogue(2).today.isoformat()
    dear = next(b for b in site["bookings"] if b["from"] > today and b is not booking)
    kept = deepcopy(site)
    for fee in (0, None, True, -5):
        reply = await send(site, f"bookings/{dear['id']}/cancel", {"fee": fee})
        assert isinstance(reply, SiteResponse)
    assert site == kept
    await cancel(site, dear["id"])
    again = await send(site, f"bookings/{dear['id']}/cancel", {"fee": dear["fee"]})
    assert isinstance(again, SiteResponse)


async def test_looking_around_the_booking_site_changes_nothing() -> None:
    """No GET changes the state, and what is asked wrongly is an answer too."""
    site = new_booking_site(1)
    kept = deepcopy(site)
    place = min(draw_catalogue(1).places)
    number = site["bookings"][0]["id"]
    for path, query in (
        ("site", {}), ("places", {"page": "x", "max": "-1"}), ("places", {"from": "x"}),
        (f"places/{place}", {"from": "2027-99-99", "to": "x"}), ("vouchers", {}), ("lists", {}),
        (f"places/{place}/calendar", {}), (f"places/{place}/reviews", {"page": "99"}),
        (f"places/{place}/quote", {"units": "a,b"}), (f"places/{place}/nothing", {}),
        ("bookings", {}), (f"bookings/{number}", {}), (f"bookings/{number}/quote", {}),
        (f"bookings/{number}/cancel", {}), ("compare", {}), ("nothing", {}), ("", {}),
    ):  # fmt: skip
        await ask(site, path, **query)
    assert site == kept
    assert json.loads(json.dumps(site)) == site


def test_two_seeds_are_two_sites() -> None:
    """Another seed has other places, people, prices and vouchers; the same has the same."""
    one, other = draw_catalogue(1), draw_catalogue(2)
    assert new_booking_site(1) == new_booking_site(1) != new_booking_site(2)
    assert one.vouchers != other.vouchers
    shared = [
        name
        for name in set(one.places) & set(other.places)
        if one.places[name] == other.places[name]
    ]
    assert shared == []
    assert len(one.places) >= 40


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all worlds of these tests."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


@asynccontextmanager
async def browsing(shared: Shared, seed: int, **context: Any) -> AsyncIterator[Any]:
    """A browser on the booking site of a seed."""
    filled = WEB.split_context(context)
    opening = Opening(context=filled, folder=WEB.folder, shared=shared)
    world = await WEB.world.open(opening)
    world.state["booking"] = new_booking_site(seed)
    try:
        yield world
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await world.close()


def mint(template: str, **more: Any) -> Task:
    """A task of the site, of a seed of its own."""
    context = more.pop("context", {})
    return WEB.templates[template](**more).model_copy(update={"context": context})


@pytest.mark.long
@pytest.mark.browser
async def test_a_room_that_has_become_too_dear_is_worth_nothing(shared: Shared) -> None:
    """The kind of room that was asked for is wrong once it costs more than the user wants."""
    row = mint("booking_rival", seed=841, change="dearer").model_copy(update={"env": "web"})
    stay, _ = rivals.case_of(841, "dearer")
    with anyio.fail_after(PATIENCE_S):
        async with playing(row, shared) as play:
            site = play.tools.world.state["booking"]
            await rivals.show_stay(play.agent, stay)
            unit = (await read_rooms(play.agent))[stay.room["name"]]["free"][0]
            assert "dearer" not in site
            await reserve(play.agent, stay.room["name"], [unit])
            assert site["dearer"]
            user = site["user"]
            more = {**user, "mains": {str(unit): user["name"]}, "arrival": rivals.ARRIVAL}
            booked = await send(site, "bookings", form_of(stay, [unit], **more))
            await play.agent.respond(booked["id"])
    assert play.grade is not None
    assert play.grade.reward == 0


@pytest.mark.long
@pytest.mark.browser
async def test_a_booking_site_s_guest_is_added_by_keyboard_alone(shared: Shared) -> None:
    """Tab, letters, the space bar, Enter and Escape are enough, and the focus comes back."""
    row = mint("booking_guest", seed=5, kind="adult")
    _, booking, person = trips.draw_guest(5)
    with anyio.fail_after(PATIENCE_S):
        async with playing(row, shared) as play:
            page = play.tools.world.page
            place = draw_catalogue(5).places[booking["place"]]["name"]
            await tab_to(page, place)
            await page.keyboard.press("Enter")
            await page.get_by_role("button", name="Add a guest").wait_for()
            await tab_to(page, "Add a guest")
            await page.keyboard.press("Enter")
            await page.keyboard.press("Escape")
            await page.locator("dialog").wait_for(state="detached")
            assert await focused(page) == "Add a guest"
            await page.keyboard.press("Enter")
            await tab_to(page, "guest-name")
            await page.keyboard.type(person["name"])
            await page.keyboard.press("Tab")
            await page.keyboard.press("Space")
            await tab_to(page, "Add this guest")
            await page.keyboard.press("Enter")
            await page.get_by_text("The guest is added.").wait_for()
            total = await page.locator("dd.grand").inner_text()
            await play.agent.respond(total)
    assert play.grade is not None
    assert play.grade.reward == 1, play.grade


async def focused(page: Any) -> str:
    """What has the focus: its text, or its id."""
    return await page.evaluate(
        "(document.activeElement.textContent || document.activeElement.id).trim()"
    )


async def tab_to(page: Any, wanted: str) -> None:
    """Press Tab until the focus is there."""
    for _ in range(80):
        if await focused(page) == wanted:
            return
        await page.keyboard.press("Tab")
    raise LookupError(f"Tab never comes to {wanted!r}")


PHONE = {"viewport_width": 390, "viewport_height": 844}
HARD = {
    "latency_ms": 150, "color_scheme": "dark", "font_scale": 1.5, "locale": "ar-EG",
    "timezone": "Pacific/Auckland", "reduced_motion": "reduce",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize(
    ("template", "args", "context"),
    [
        ("booking_guest", {"seed": 5, "kind": "child"}, PHONE),
        ("booking_cancel", {"seed": 6}, PHONE),
        ("booking_move", {"seed": 7, "sold_out": 1}, HARD),
        ("booking_families", {"seed": 8}, HARD),
        ("booking_deadline", {"seed": 9}, {**HARD, **PHONE}),
        ("booking_total", {"seed": 10, "nights": 7}, HARD),
    ],
)
async def test_the_booking_site_s_tasks_are_done_in_other_contexts(
    template: str, args: dict[str, Any], context: dict[str, Any], shared: Shared
) -> None:
    """On a phone; and slow, dark, with large text, in another language and time zone at once."""
    with anyio.fail_after(PATIENCE_S):
        play = await play_oracle(mint(template, **args, context=context), shared)
    assert play.grade is not None
    assert play.grade.reward == 1, play.grade


def paths_of(seed: int) -> list[str]:
    """The pages of the site, with something on each."""
    site, stay = new_booking_site(seed), draws.draw_stay(seed, 3)
    free = free_units(draw_catalogue(seed), site, stay.room, stay.start, stay.end)
    days = f"from={stay.start}&to={stay.end}&adults={stay.adults}&children={stay.children}"
    place, room = stay.place["id"], stay.room["id"]
    return [
        "", f"?town={stay.place['town']}&{days}", "?q=nothing+like+it", "?from=x&to=y",
        f"place/?id={place}&{days}", "place/?id=nowhere",
        f"checkout/?place={place}&room={room}&units={free[0]}&{days}", "checkout/",
        "trips/", f"trips/trip/?id={site['bookings'][1]['id']}", "trips/trip/?id=RS-00000",
        "lists/", "compare/", "vouchers/",
    ]  # fmt: skip


NAMES = """() => [...document.querySelectorAll('a[href], button, input, select, textarea')]
  .filter(e => e.checkVisibility() && !(e.getAttribute('aria-label') || e.textContent.trim()
    || (e.labels && [...e.labels].some(label => label.textContent.trim()))))
  .map(e => e.outerHTML)"""


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize(
    "context",
    [{}, PHONE, {**PHONE, "font_scale": 1.5}, {"color_scheme": "dark"}],
    ids=["window", "phone", "large-text", "dark"],
)
async def test_the_booking_site_s_pages_are_whole(context: dict[str, Any], shared: Shared) -> None:
    """No page raises, asks another host, lacks a heading or a name, or is wider than the view."""
    problems: list[str] = []
    async with browsing(shared, 3, **context) as world:
        world.state["booking"]["compare"] = sorted(draw_catalogue(3).places)[:4]
        page = world.page
        page.on("pageerror", lambda exc: problems.append(f"{page.url}: {exc}"))
        page.on("request", lambda r: keep_foreign(r.url, world.site_url, problems))
        width = context.get("viewport_width", 1280)
        for path in paths_of(3):
            with anyio.fail_after(PATIENCE_S):
                await world.goto(f"/booking/{path}")
                await page.wait_for_load_state("networkidle")
                wide = await page.evaluate("document.documentElement.scrollWidth")
                nameless = await page.evaluate(NAMES)
                loading = await page.get_by_text("Loading…").count()
            problems += [f"{path}: {wide} px wide"] if wide > width else []
            problems += [f"{path}: {each} has no name" for each in nameless]
            problems += [f"{path} never ends to load"] if loading else []
            problems += [] if await page.locator("h1").count() == 1 else [f"{path}: no h1"]
    assert problems == []


def keep_foreign(url: str, own: str, problems: list[str]) -> None:
    """Note a request that does not go to the site."""
    if not url.startswith((own, "data:", "blob:")):
        problems.append(f"asked {url}")


@pytest.mark.long
@pytest.mark.browser
async def test_a_button_of_the_booking_site_is_pressed_once(shared: Shared) -> None:
    """Two clicks on a slow network save once, and the button says that it works meanwhile."""
    async with browsing(shared, 4, latency_ms=400) as world:
        with anyio.fail_after(PATIENCE_S):
            await world.goto("/booking/lists/")
            await world.page.get_by_text("1 list").wait_for()
            await world.page.get_by_label("New list").fill("Spring")
            button = world.page.get_by_role("button", name="Create list")
            await button.dblclick()
            await world.page.get_by_role("button", name="Please wait…").wait_for()
            await world.page.get_by_text("“Spring” is created.").wait_for()
            assert await world.page.locator(".error").count() == 0
        assert [row["name"] for row in world.state["booking"]["lists"]] == ["Someday", "Spring"]
