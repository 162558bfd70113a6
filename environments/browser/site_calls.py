"""What the rows with a prompt of their own name: where a task begins, and what it is held to.

Each check is that of the template of the same task, over the state that the browser's sites are
in. What the sites were in when the task began is kept beside the session, by its world.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import admin_grading as desk
import board_grading as cards
import shop_grading as shop
from site_backend import initial_state
from site_choices import (
    ArchivedCard,
    Card,
    CartName,
    Category,
    Column,
    Country,
    Customer,
    Day,
    Days,
    Delivery,
    Email,
    Label,
    Language,
    Member,
    Month,
    Person,
    Plan,
    Priority,
    ProductName,
    Quantity,
    Rank,
    Rating,
    Topic,
)
from site_grading import Before
from site_opening import open_board, open_desk, open_page, open_shop

from hud_mcp import (
    Answer,
    BrowserWorld,
    Environment,
    Grade,
    exact_match,
    grade_checks,
    numeric_match,
)

__all__ = ["register"]


@dataclass(frozen=True)
class Began:
    """The sites as a task found them.

    Attributes:
        state: A copy.
        before: What says later what has changed.
    """

    state: dict[str, Any]
    before: Before


_began: WeakKeyDictionary[BrowserWorld, Began] = WeakKeyDictionary()


def begin(browser: BrowserWorld, changes: dict[str, int] | None = None) -> None:
    """Have all sites as every session finds them, also where a task is set up once more.

    Args:
        browser: The session's.
        changes: What a task wants of the products in the cart, where they are to lie there.
    """
    state = browser.state
    state.clear()
    state.update(initial_state())
    if changes is not None:
        shop.stock_cart(state["shop"], changes)
    _began[browser] = Began(deepcopy(state), Before(state))


def began(browser: BrowserWorld) -> Began:
    """The sites as the task found them.

    Raises:
        ValueError: None of the setups ran, so that nobody knows.
    """
    if browser not in _began:
        raise ValueError("the row's setup names none of at_shop, at_cart, at_sign_in, at_desk, …")
    return _began[browser]


async def at_shop(browser: BrowserWorld) -> None:
    """Begin at the shop's list of products."""
    begin(browser)
    await open_shop(browser)


async def at_cart(
    browser: BrowserWorld, remove: CartName, keep: CartName, quantity: Quantity
) -> None:
    """Begin at a cart that is to be corrected."""
    begin(browser, {remove: 0, keep: quantity})
    await open_page(browser, "/shop/cart/", shows=".line")


async def at_sign_in(browser: BrowserWorld) -> None:
    """Begin at the desk's sign-in."""
    begin(browser)
    await open_page(browser, "/admin/", shows="#login")


async def at_desk(browser: BrowserWorld) -> None:
    """Begin at the desk's list of tickets, where mara is signed in."""
    begin(browser)
    await open_desk(browser)


async def at_board(browser: BrowserWorld) -> None:
    """Begin at the board."""
    begin(browser)
    await open_board(browser)


async def price_is(
    browser: BrowserWorld, answer: Answer[str], product: ProductName, variant: str
) -> Grade:
    """How right the answer is about a variant's price, with nothing changed."""
    price = shop.price_of(*shop.find_variant(product, variant))
    right = numeric_match(answer.raw, price) == 1
    return grade_checks({"price": right}, began(browser).before.changes())


async def best_is(
    browser: BrowserWorld, answer: Answer[str], category: Category, rating: Rating
) -> Grade:
    """How right the answer is about the cheapest product rated so, with nothing changed."""
    best = shop.best_products(category, rating)
    right = any(exact_match(answer.raw, name) for name in best)
    return grade_checks({"name": right}, began(browser).before.changes())


async def spent_is(browser: BrowserWorld, answer: Answer[str], month: Month) -> Grade:
    """How right the answer is about what a month's orders cost, with nothing changed."""
    start = began(browser)
    total = shop.spent_in(start.state["shop"]["orders"], month)
    right = numeric_match(answer.raw, total, tolerance=0.001) == 1
    return grade_checks({"sum": right}, start.before.changes())


async def cart_holds(
    browser: BrowserWorld, product: ProductName, variant: str, quantity: Quantity
) -> Grade:
    """How much of a cart with these and no others is there, with the cart left open."""
    chosen, _ = shop.find_variant(product, variant)
    is_open = browser.url.removeprefix(browser.site_url).startswith("/shop/cart/")
    wanted = {(chosen.id, variant): quantity}
    start = began(browser)
    return shop.grade_cart(browser.state["shop"], start.before, wanted, is_open=is_open)


async def cart_corrected(
    browser: BrowserWorld,
    answer: Answer[str],
    remove: CartName,
    keep: CartName,
    quantity: Quantity,
) -> Grade:
    """How much of a cart is corrected, its voucher redeemed, and its total the answer."""
    changes, rest = shop.stock_cart({}, {remove: 0, keep: quantity})
    total = shop.total_of({**changes, **rest}, "SPRING10")
    state = browser.state["shop"]
    done = state["voucher"] == "SPRING10"
    right = done and numeric_match(answer.raw, total, tolerance=0.001) == 1
    before = began(browser).before
    return shop.grade_cart(state, before, changes, rest, voucher=done, total=right)


async def order_placed(
    browser: BrowserWorld,
    answer: Answer[str],
    product: ProductName,
    variant: str,
    quantity: Quantity = 1,
    *,
    delivery: Delivery = "standard",
    gift: bool = False,
    voucher: bool = False,
) -> Grade:
    """How much of one order is as asked, and its number the answer."""
    chosen, option = shop.find_variant(product, variant)
    return shop.grade_order(
        browser.state["shop"],
        began(browser).before,
        answer=answer.raw,
        line=(chosen.id, variant, quantity),
        form={**shop.NORA, "delivery": delivery, "gift": gift},
        discount=shop.best_discount(chosen, option, quantity) if voucher else 0,
    )


async def ticket_has(
    browser: BrowserWorld, ticket: str, priority: Priority, assignee: Member
) -> Grade:
    """How much of a ticket is as asked, and no other."""
    wanted = {"priority": priority, "assignee": assignee}
    return _row_grade(browser, "tickets", ticket, wanted)


async def open_tickets_assigned(
    browser: BrowserWorld, topic: Topic | Literal["Any"], assignee: Member
) -> Grade:
    """How many of a topic's open tickets that nobody had are assigned, and no other."""
    start = began(browser)
    ids = desk.unassigned(start.state["admin"]["tickets"], topic)
    tickets = browser.state["admin"]["tickets"]
    return desk.grade_rows(start.before, tickets, ids, "assignee", assignee)


async def ticket_count_is(
    browser: BrowserWorld, answer: Answer[str], topic: Topic, priority: Priority
) -> Grade:
    """How right the answer is about how many tickets there are, with nothing changed."""
    start = began(browser)
    tickets = start.state["admin"]["tickets"]
    number = sum((t["topic"], t["priority"]) == (topic, priority) for t in tickets)
    right = numeric_match(answer.raw, number) == 1
    return grade_checks({"number": right}, start.before.changes())


async def top_customer_is(
    browser: BrowserWorld, answer: Answer[str], plan: Plan, rank: Rank = 1
) -> Grade:
    """How right the answer is about who has spent most, with nothing changed."""
    start = began(browser)
    rows = [c for c in start.state["admin"]["customers"] if c["plan"] == plan]
    name = sorted(rows, key=lambda c: -c["spent"])[rank - 1]["name"]
    right = exact_match(answer.raw, name) == 1
    return grade_checks({"name": right}, start.before.changes())


async def customer_moved(
    browser: BrowserWorld, customer: Customer, email: str, country: Country, region: str
) -> Grade:
    """How much of a customer's record is as asked, and no other."""
    wanted = {"email": email, "country": country, "region": region}
    return _row_grade(browser, "customers", customer, wanted)


async def contract_renewed(
    browser: BrowserWorld, customer: Customer, years: Literal[1, 2, 3]
) -> Grade:
    """How much of a contract follows the one before it, and no other has changed."""
    customers = began(browser).state["admin"]["customers"]
    wanted = desk.renewed(desk.find_row(customers, customer)["end"], years)
    return _row_grade(browser, "customers", customer, wanted)


async def customer_deleted(browser: BrowserWorld, customer: Customer) -> Grade:
    """Whether a customer is gone, and no other."""
    start = began(browser)
    key = desk.find_row(start.state["admin"]["customers"], customer)["id"]
    gone = all(row["id"] != key for row in browser.state["admin"]["customers"])
    return grade_checks({"deleted": gone}, start.before.changes(beside=[f"admin.customers.{key}"]))


async def email_owner_is(
    browser: BrowserWorld, answer: Answer[str], customer: Customer, email: Email
) -> Grade:
    """How right the answer is about whose address it is, with nothing changed."""
    start = began(browser)
    owner = desk.owner_of(start.state["admin"]["customers"], email, beside=customer)
    right = exact_match(answer.raw, owner) == 1
    return grade_checks({"name": right}, start.before.changes())


async def settings_are(
    browser: BrowserWorld,
    *,
    two_step: bool,
    weekend_cover: bool,
    digest: bool,
    close_after: Days,
    reply_language: Language,
) -> Grade:
    """How many of the settings that were to change are as asked, and no other."""
    wanted = {
        "two_step": two_step,
        "weekend_cover": weekend_cover,
        "digest": digest,
        "close_after": close_after,
        "reply_language": reply_language,
    }
    start = began(browser)
    asked = desk.differing(start.state["admin"]["settings"], wanted)
    settings = browser.state["admin"]["settings"]
    return desk.grade_fields(start.before, "admin.settings", settings, asked)


async def card_moved(
    browser: BrowserWorld, card: Card, column: Column, place: Literal["top", "bottom"]
) -> Grade:
    """Whether a card is at the top or the bottom of a column, and all others where they were."""
    start = began(browser)
    key = cards.find_card(start.state["board"], card, outside=column)["id"]
    board = browser.state["board"]
    return cards.grade_move(board, start.before, key, column=column, place=place)


async def card_added(
    browser: BrowserWorld, title: str, label: Label, owner: Person, due: Day
) -> Grade:
    """How much of one new card in the column Ideas is as asked."""
    start = began(browser)
    known = {c["id"] for c in start.state["board"]["cards"]}
    wanted = {"title": title, "label": label, "owner": owner, "due": due, "column": "Ideas"}
    return cards.grade_new_card(browser.state["board"], start.before, known, wanted)


async def column_archived(browser: BrowserWorld, column: Column) -> Grade:
    """How many of a column's cards are off the board, and no other."""
    start = began(browser)
    ids = [c["id"] for c in start.state["board"]["cards"] if c["column"] == column]
    return cards.grade_archive(browser.state["board"], start.before, ids)


async def label_advanced(browser: BrowserWorld, label: Label) -> Grade:
    """How many of the cards with a label are one column on, and no other."""
    start = began(browser)
    moves = cards.advance(start.state["board"], label)
    return cards.grade_columns(browser.state["board"], start.before, moves)


async def archivist_is(browser: BrowserWorld, answer: Answer[str], card: ArchivedCard) -> Grade:
    """How right the answer is about who archived a card, with nothing changed."""
    start = began(browser)
    who = cards.archivist(start.state["board"], card)
    right = exact_match(answer.raw, who) == 1
    return grade_checks({"name": right}, start.before.changes())


def _row_grade(browser: BrowserWorld, table: str, name: str, wanted: dict[str, Any]) -> Grade:
    """Grade the fields of one ticket or customer; one that is gone has none of them."""
    start = began(browser)
    row = desk.find_row(start.state["admin"][table], name)
    asked = desk.differing(row, wanted)
    rows = browser.state["admin"][table]
    now: dict[str, Any] = next((each for each in rows if each["id"] == row["id"]), {})
    return desk.grade_fields(start.before, f"admin.{table}.{row['id']}", now, asked)


SETUPS = (at_shop, at_cart, at_sign_in, at_desk, at_board)
CHECKS = (
    price_is,
    best_is,
    spent_is,
    cart_holds,
    cart_corrected,
    order_placed,
    ticket_has,
    open_tickets_assigned,
    ticket_count_is,
    top_customer_is,
    customer_moved,
    contract_renewed,
    customer_deleted,
    email_owner_is,
    settings_are,
    card_moved,
    card_added,
    column_archived,
    label_advanced,
    archivist_is,
)


def register(env: Environment) -> None:
    """Let rows of an environment with these sites name all of it."""
    for setup in SETUPS:
        env.function(use="setup")(setup)
    for check in CHECKS:
        env.function(use="evaluate")(check)
