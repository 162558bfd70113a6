"""Three small sites: a shop, a support desk and a project board, with tasks on each.

The sites are in `sites/`, their server side is `site_backend`. Every task is graded on
the state in which it leaves them. How each is solved stands in `*_oracles`, what it
expects in `*_grading`. Rows with a prompt of their own name the functions of `site_calls`.
"""

from typing import Literal

import admin_grading as desk
import admin_oracles
import board_grading as cards
import board_oracles
import shop_grading as shop
import shop_oracles
import site_calls
from admin_data import PASSWORDS
from site_backend import backend, initial_state
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

from hud_mcp import Browser, BrowserWorld, Environment, exact_match, grade_checks, numeric_match

env = Environment(
    "browser",
    version="0.1.0",
    world=Browser(site="sites/", backend=backend, state=initial_state, start=None),
)


def on_off(value: bool) -> str:  # noqa: FBT001  # what it turns into words is the only thing here
    """How a switch is called in a prompt."""
    return "on" if value else "off"


@env.template(description="Find a product's price")
async def shop_price(
    browser: BrowserWorld, product: ProductName = "Heron desk lamp", variant: str = "Brass"
):
    """Ask what one variant of a product costs."""
    chosen, option = shop.find_variant(product, variant)
    before = Before(browser.state)
    await open_shop(browser)
    answer: str = yield (
        f"What does the {product} cost in the shop, with {chosen.kind.lower()} {variant!r}? "
        "Answer with the price in euros, and change nothing."
    )
    right = numeric_match(answer, shop.price_of(chosen, option)) == 1
    yield grade_checks({"price": right}, before.changes())


@env.template(description="Find the cheapest product that is good enough")
async def shop_best(browser: BrowserWorld, category: Category = "Lighting", rating: Rating = 4.5):
    """Ask for the cheapest product of a category that is in stock and rated well."""
    best = shop.best_products(category, rating)
    before = Before(browser.state)
    await open_shop(browser)
    answer: str = yield (
        f"Of the products in the category {category} that are in stock and rated at least "
        f"{rating:.1f} stars, which has the lowest price in the list? Answer with its name, and "
        "change nothing."
    )
    right = any(exact_match(answer, name) for name in best)
    yield grade_checks({"name": right}, before.changes())


@env.template(description="Add up the orders of a month")
async def shop_spent(browser: BrowserWorld, month: Month = "March"):
    """Ask what the orders of a month cost in all."""
    before = Before(browser.state)
    await open_shop(browser)
    answer: str = yield (
        f"How many euros do my orders of {month} 2026 come to, with delivery? Answer with the "
        "sum, and change nothing."
    )
    total = shop.spent_in(browser.state["shop"]["orders"], month)
    yield grade_checks(
        {"sum": numeric_match(answer, total, tolerance=0.001) == 1}, before.changes()
    )


@env.template(description="Put one product into the cart")
async def shop_fill_cart(
    browser: BrowserWorld,
    product: ProductName = "Field notebook",
    variant: str = "Dotted",
    quantity: Quantity = 3,
):
    """Ask for a cart that holds one product, some number of times."""
    chosen, _ = shop.find_variant(product, variant)
    before = Before(browser.state)
    await open_shop(browser)
    yield (
        f"Put {quantity} of the {product}, {chosen.kind.lower()} {variant!r}, into the cart, and "
        "leave the cart open. Do not order."
    )
    is_open = browser.url.removeprefix(browser.site_url).startswith("/shop/cart/")
    wanted = {(chosen.id, variant): quantity}
    yield shop.grade_cart(browser.state["shop"], before, wanted, is_open=is_open)


@env.template(description="Correct a cart and redeem a voucher")
async def shop_tidy_cart(
    browser: BrowserWorld,
    remove: CartName = "Brine storage jar",
    keep: CartName = "Linen tea towels",
    quantity: Quantity = 4,
):
    """Ask to correct a cart that holds three products, and for its total."""
    state = browser.state["shop"]
    changes, rest = shop.stock_cart(state, {remove: 0, keep: quantity})
    total = shop.total_of({**changes, **rest}, "SPRING10")
    before = Before(browser.state)
    await open_page(browser, "/shop/cart/", shows=".line")
    answer: str = yield (
        f"Correct my cart: take the {remove} out, and set the {keep} to {quantity}. Leave the "
        "rest. Then redeem the voucher SPRING10, and answer with the total before delivery. Do "
        "not order."
    )
    done = state["voucher"] == "SPRING10"
    right = done and numeric_match(answer, total, tolerance=0.001) == 1
    yield shop.grade_cart(state, before, changes, rest, voucher=done, total=right)


@env.template(description="Order one product, delivered to an address")
async def shop_buy(
    browser: BrowserWorld,
    product: ProductName = "Heron desk lamp",
    variant: str = "Brass",
    *,
    quantity: Quantity = 1,
    delivery: Delivery = "standard",
    gift: bool = False,
    voucher: bool = False,
):
    """Ask for an order, with everything that a checkout needs, and for its number."""
    chosen, option = shop.find_variant(product, variant)
    before = Before(browser.state)
    await open_shop(browser)
    wrapped = " Have it wrapped as a gift, without a card." if gift else ""
    saving = " Use the voucher of the offers page that saves most." if voucher else ""
    answer: str = yield (
        f"Order {quantity} of the {product}, {chosen.kind.lower()} {variant!r}. Delivery: "
        f"{shop.delivery_label(delivery)}.{wrapped}{saving} Deliver to Nora Lindqvist, Mill Lane "
        "7, 1020 Vienna, Austria; e-mail nora@lindqvist.example. Pay by invoice, and accept the "
        "terms. Order nothing else. Answer with the order number."
    )
    yield shop.grade_order(
        browser.state["shop"],
        before,
        answer=answer,
        line=(chosen.id, variant, quantity),
        form={**shop.NORA, "delivery": delivery, "gift": gift},
        discount=shop.best_discount(chosen, option, quantity) if voucher else 0,
    )


@env.template(description="Sign in, and change one ticket")
async def desk_update_ticket(
    browser: BrowserWorld,
    ticket: str = "T-2023",
    priority: Priority = "Urgent",
    assignee: Member = "Ruth Maas",
):
    """Ask for a ticket's priority and assignee to be changed, and for nothing else."""
    row = desk.find_row(browser.state["admin"]["tickets"], ticket)
    wanted = desk.differing(row, {"priority": priority, "assignee": assignee})
    before = Before(browser.state)
    await open_page(browser, "/admin/", shows="#login")
    yield (
        f"Sign in to the desk as 'mara' with the password {PASSWORDS['mara']!r}. Give ticket "
        f"{ticket} the priority {priority}, assign it to {assignee}, and save it."
    )
    yield desk.grade_fields(before, f"admin.tickets.{ticket}", row, wanted)


@env.template(description="Assign all tickets that nobody has, in one go")
async def desk_assign_open(
    browser: BrowserWorld,
    topic: Topic | Literal["Any"] = "Technical",
    assignee: Member = "Okan Demir",
):
    """Ask for every open, unassigned ticket of a topic to be assigned to one person."""
    tickets = browser.state["admin"]["tickets"]
    ids = desk.unassigned(tickets, topic)
    before = Before(browser.state)
    await open_desk(browser)
    which = "of any topic" if topic == "Any" else f"of the topic {topic}"
    yield (
        f"Assign every open ticket {which} that nobody has yet to {assignee}. Change no other "
        "ticket, and nothing else about these."
    )
    yield desk.grade_rows(before, tickets, ids, "assignee", assignee)


@env.template(description="Count tickets over several pages")
async def desk_count(
    browser: BrowserWorld, topic: Topic = "Technical", priority: Priority = "High"
):
    """Ask how many tickets of a topic have a priority, whatever their status."""
    tickets = browser.state["admin"]["tickets"]
    number = sum((t["topic"], t["priority"]) == (topic, priority) for t in tickets)
    before = Before(browser.state)
    await open_desk(browser)
    answer: str = yield (
        f"How many tickets of the topic {topic} have the priority {priority}, whatever their "
        "status? Answer with the number, and change nothing."
    )
    yield grade_checks({"number": numeric_match(answer, number) == 1}, before.changes())


@env.template(description="Find who has spent most")
async def desk_top_customer(browser: BrowserWorld, plan: Plan = "Plus", rank: Rank = 1):
    """Ask which customer of a plan comes first, second or third by what was spent."""
    rows = [c for c in browser.state["admin"]["customers"] if c["plan"] == plan]
    name = sorted(rows, key=lambda c: -c["spent"])[rank - 1]["name"]
    before = Before(browser.state)
    await open_desk(browser)
    place = ("most", "second most", "third most")[rank - 1]
    answer: str = yield (
        f"Which customer on the {plan} plan has spent the {place}? Answer with the name, and "
        "change nothing."
    )
    yield grade_checks({"name": exact_match(answer, name) == 1}, before.changes())


@env.template(description="Write down that a customer has moved")
async def desk_edit_customer(
    browser: BrowserWorld,
    customer: Customer = "Elm Street Clinic",
    email: str = "post@elmclinic.example",
    country: Country = "Germany",
    region: str = "Bavaria",
):
    """Ask for a customer's e-mail, country and region to be changed."""
    row = desk.find_row(browser.state["admin"]["customers"], customer)
    wanted = desk.differing(row, {"email": email, "country": country, "region": region})
    before = Before(browser.state)
    await open_desk(browser)
    yield (
        f"{customer} has moved to {region}, {country}, and its e-mail address is {email} now. "
        "Write that down in its customer record."
    )
    yield desk.grade_fields(before, f"admin.customers.{row['id']}", row, wanted)


@env.template(description="Write down a renewed contract")
async def desk_renew(
    browser: BrowserWorld, customer: Customer = "Dune Hotel", years: Literal[1, 2, 3] = 2
):
    """Ask for the dates of the contract that follows the present one."""
    row = desk.find_row(browser.state["admin"]["customers"], customer)
    wanted = desk.renewed(row["end"], years)
    before = Before(browser.state)
    await open_desk(browser)
    yield (
        f"{customer} has renewed. Its new contract starts on the day after the present one ends, "
        f"and runs for {years} full year{'s' if years > 1 else ''}. Write its dates into the "
        "customer record in place of the old ones."
    )
    yield desk.grade_fields(before, f"admin.customers.{row['id']}", row, wanted)


@env.template(description="Delete a customer")
async def desk_delete_customer(browser: BrowserWorld, customer: Customer = "Iris Optics"):
    """Ask for one customer to be deleted."""
    customers = browser.state["admin"]["customers"]
    key = desk.find_row(customers, customer)["id"]
    before = Before(browser.state)
    await open_desk(browser)
    yield f"Delete the customer {customer} for good. Leave all others."
    gone = all(row["id"] != key for row in customers)
    yield grade_checks({"deleted": gone}, before.changes(beside=[f"admin.customers.{key}"]))


@env.template(description="Find whose address it is")
async def desk_email_owner(
    browser: BrowserWorld,
    customer: Customer = "Lark Music Shop",
    email: Email = "ops@gullferries.example",
):
    """Ask who has an e-mail address that the desk refuses to give to another customer."""
    owner = desk.owner_of(browser.state["admin"]["customers"], email, beside=customer)
    before = Before(browser.state)
    await open_desk(browser)
    answer: str = yield (
        f"{customer} says that its new e-mail address is {email}, but the desk does not take it. "
        "Which customer has this address? Answer with the name, and change nothing."
    )
    yield grade_checks({"name": exact_match(answer, owner) == 1}, before.changes())


@env.template(description="Change the desk's settings")
async def desk_settings(
    browser: BrowserWorld,
    *,
    two_step: bool = True,
    weekend_cover: bool = True,
    digest: bool = True,
    close_after: Days = 30,
    reply_language: Language = "English",
):
    """Ask for settings; those that are so already are to stay."""
    wanted = {
        "two_step": two_step,
        "weekend_cover": weekend_cover,
        "digest": digest,
        "close_after": close_after,
        "reply_language": reply_language,
    }
    asked = desk.differing(browser.state["admin"]["settings"], wanted)
    before = Before(browser.state)
    await open_desk(browser)
    yield (
        "See to it that the desk's settings are these, and save them. "
        f"Two-step sign-in: {on_off(two_step)}. Weekend cover: {on_off(weekend_cover)}. "
        f"Daily digest: {on_off(digest)}. Waiting tickets are closed after {close_after} days. "
        f"Automatic replies are in {reply_language}. Leave the other settings as they are."
    )
    yield desk.grade_fields(before, "admin.settings", browser.state["admin"]["settings"], asked)


@env.template(description="Drag a card to another column")
async def board_drag(
    browser: BrowserWorld,
    card: Card = "Fix the tide table",
    column: Column = "Doing",
    place: Literal["top", "bottom"] = "top",
):
    """Ask for a card to be moved to the top or the bottom of another column."""
    board = browser.state["board"]
    key = cards.find_card(board, card, outside=column)["id"]
    before = Before(browser.state)
    await open_board(browser)
    yield f"Move the card {card!r} to the {place} of the column {column}. Leave all other cards."
    yield cards.grade_move(board, before, key, column=column, place=place)


@env.template(description="Make a card, with a day from the calendar")
async def board_new_card(
    browser: BrowserWorld,
    title: str = "Sign for the ferry pier",
    label: Label = "Design",
    owner: Person = "Dora",
    due: Day = "2026-07-15",
):
    """Ask for a new card with a label, an owner and a due date."""
    board = browser.state["board"]
    known = {c["id"] for c in board["cards"]}
    before = Before(browser.state)
    await open_board(browser)
    yield (
        f"Add a card to the board, in the column Ideas: title {title!r}, label {label}, owner "
        f"{owner}, due on {cards.long_date(due)}."
    )
    wanted = {"title": title, "label": label, "owner": owner, "due": due, "column": "Ideas"}
    yield cards.grade_new_card(board, before, known, wanted)


@env.template(description="Archive a column's cards through their menus")
async def board_archive(browser: BrowserWorld, column: Column = "Done"):
    """Ask for every card of a column to be archived."""
    board = browser.state["board"]
    ids = [c["id"] for c in board["cards"] if c["column"] == column]
    before = Before(browser.state)
    await open_board(browser)
    yield f"Archive every card in the column {column}. Leave all other cards."
    yield cards.grade_archive(board, before, ids)


@env.template(description="Move all cards with a label one column on")
async def board_advance(browser: BrowserWorld, label: Label = "Docs"):
    """Ask for every card with a label to be moved one column to the right."""
    board = browser.state["board"]
    moves = cards.advance(board, label)
    before = Before(browser.state)
    await open_board(browser)
    yield (
        f"Move every card with the label {label} that is not done yet one column to the right; "
        "where in the column does not matter. Leave all other cards."
    )
    yield cards.grade_columns(board, before, moves)


@env.template(description="Find an entry far down in a log")
async def board_archivist(browser: BrowserWorld, card: ArchivedCard = "Newsletter archive"):
    """Ask who archived a card, which the log of activity says."""
    who = cards.archivist(browser.state["board"], card)
    before = Before(browser.state)
    await open_board(browser)
    answer: str = yield (
        f"Who archived the card {card!r}? The board's log of activity tells. Answer with the name, "
        "and change nothing."
    )
    yield grade_checks({"name": exact_match(answer, who) == 1}, before.changes())


ORACLES = (
    (shop_price, shop_oracles.price),
    (shop_best, shop_oracles.best),
    (shop_spent, shop_oracles.spent),
    (shop_fill_cart, shop_oracles.fill_cart),
    (shop_tidy_cart, shop_oracles.tidy_cart),
    (shop_buy, shop_oracles.buy),
    (desk_update_ticket, admin_oracles.update_ticket),
    (desk_assign_open, admin_oracles.assign_open),
    (desk_count, admin_oracles.count),
    (desk_top_customer, admin_oracles.top_customer),
    (desk_edit_customer, admin_oracles.edit_customer),
    (desk_renew, admin_oracles.renew),
    (desk_delete_customer, admin_oracles.delete_customer),
    (desk_email_owner, admin_oracles.email_owner),
    (desk_settings, admin_oracles.settings),
    (board_drag, board_oracles.drag),
    (board_new_card, board_oracles.new_card),
    (board_archive, board_oracles.archive),
    (board_advance, board_oracles.advance),
    (board_archivist, board_oracles.archived_by),
)
for _template, _oracle in ORACLES:
    _template.oracle(_oracle)

site_calls.register(env)
