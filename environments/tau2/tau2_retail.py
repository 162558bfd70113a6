"""The shop of tau2: its orders, its products, its customers, and what a desk may do with them.

What a tool accepts and changes is what the benchmark's own tools accept and change, with one
exception: items that are replaced in an order each get their own price and options. There, all of
them get those of the last one, so that the order of a list decides a grade.
"""

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field
from tau2_tables import Database, Row

from hud_mcp import ActionFailed

__all__ = ["NOUNS", "READS", "WRITES"]

NOUNS = {"products": "Product", "users": "User", "orders": "Order"}

OrderId = Annotated[str, Field(description="With its # before it, such as #W0000000.")]
ItemIds = Annotated[
    list[str], Field(description="One each, such as 1008292230; an item may occur several times.")
]
NewItemIds = Annotated[
    list[str], Field(description="Another item of the same product, in place of the one above it.")
]
PaymentId = Annotated[str, Field(description="Such as gift_card_0000000; user details list them.")]
UserId = Annotated[str, Field(description="Such as sara_doe_496.")]
Reason = Literal["no longer needed", "ordered by mistake"]


def find_user_id_by_email(db: Database, email: str) -> str:
    """Find the id of a user by an email address."""
    return _first_user(db, lambda user: user["email"].lower() == email.lower())


def find_user_id_by_name_zip(db: Database, first_name: str, last_name: str, zip: str) -> str:  # noqa: A002  # the benchmark's name
    """Find the id of a user by name and zip code, for those who do not know their email address."""
    name = (first_name.lower(), last_name.lower(), zip)
    return _first_user(db, lambda user: _name_zip(user) == name)


def get_user_details(db: Database, user_id: UserId) -> Row:
    """Look at a user: address, payment methods, and the ids of their orders."""
    return db["users"][user_id]


def get_order_details(db: Database, order_id: OrderId) -> Row:
    """Look at an order: its status, its items, its address, and how it was paid."""
    return db["orders"][order_id]


def get_product_details(db: Database, product_id: str) -> Row:
    """Look at a product with all its items. The id of a product is not that of an item."""
    return db["products"][product_id]


def get_item_details(db: Database, item_id: str) -> Row:
    """Look at one item of a product. The id of an item is not that of a product."""
    for product in db["products"].values():
        if item_id in product["variants"]:
            return product["variants"][item_id]
    raise ActionFailed("Item not found")


def list_all_product_types(db: Database) -> dict[str, str]:
    """List the products: the id of each by its name."""
    return dict(sorted((each["name"], each["product_id"]) for each in db["products"].values()))


def cancel_pending_order(db: Database, order_id: OrderId, reason: Reason) -> Row:
    """Cancel a pending order, and pay all of it back: to a gift card at once, else in 5 to 7 days.

    Tell the user the details, and get a yes before.
    """
    order = db["orders"][order_id]
    if order["status"] != "pending":
        raise ActionFailed("Non-pending order cannot be cancelled")
    if reason not in ("no longer needed", "ordered by mistake"):
        raise ActionFailed("Invalid reason")
    for payment in order["payment_history"]:
        _method(db, order["user_id"], payment["payment_method_id"])
    order = db["orders"].edit(order_id)
    for payment in list(order["payment_history"]):
        _charge(db, order["user_id"], payment["payment_method_id"], -payment["amount"])
        order["payment_history"].append({**payment, "transaction_type": "refund"})
    order |= {"status": "cancelled", "cancel_reason": reason}
    return order


def modify_pending_order_address(
    db: Database,
    order_id: OrderId,
    *,
    address1: str,
    address2: str,
    city: str,
    state: str,
    country: str,
    zip: str,  # noqa: A002
) -> Row:
    """Send a pending order to another address. Tell the user the details, and get a yes before."""
    _check_pending(db["orders"][order_id])
    order = db["orders"].edit(order_id)
    order["address"] = _address(address1, address2, city, state, country, zip)
    return order


def modify_pending_order_payment(
    db: Database, order_id: OrderId, payment_method_id: PaymentId
) -> Row:
    """Pay a pending order in another way. Tell the user the details, and get a yes before."""
    order = db["orders"][order_id]
    _check_pending(order)
    method = _method(db, order["user_id"], payment_method_id)
    history = order["payment_history"]
    if len(history) != 1 or history[0]["transaction_type"] != "payment":
        raise ActionFailed("There should be exactly one payment for a pending order")
    former, amount = history[0]["payment_method_id"], history[0]["amount"]
    if former == payment_method_id:
        raise ActionFailed("The new payment method should be different from the current one")
    _check_balance(method, amount, "Insufficient gift card balance to pay for the order")
    _method(db, order["user_id"], former)
    order = db["orders"].edit(order_id)
    order["payment_history"] += [
        _payment("payment", amount, payment_method_id),
        _payment("refund", amount, former),
    ]
    _charge(db, order["user_id"], payment_method_id, amount)
    _charge(db, order["user_id"], former, -amount)
    return order


def modify_pending_order_items(
    db: Database,
    order_id: OrderId,
    item_ids: ItemIds,
    new_item_ids: NewItemIds,
    payment_method_id: PaymentId,
) -> Row:
    """Replace items of a pending order by others of the same products, once for an order.

    Tell the user the details, and get a yes before.
    """
    order = db["orders"][order_id]
    if order["status"] != "pending":
        raise ActionFailed("Non-pending order cannot be modified")
    if any(old == new for old, new in zip(item_ids, new_item_ids, strict=False)):
        raise ActionFailed("The new item id should be different from the old item id")
    variants, difference = _replacements(db, order, item_ids, new_item_ids)
    method = _method(db, order["user_id"], payment_method_id)
    _check_balance(method, difference, "Insufficient gift card balance to pay for the new item")
    order = db["orders"].edit(order_id)
    kind = "payment" if difference > 0 else "refund"
    order["payment_history"].append(_payment(kind, abs(difference), payment_method_id))
    _charge(db, order["user_id"], payment_method_id, difference)
    for item_id, variant in zip(item_ids, variants, strict=True):
        item = next(each for each in order["items"] if each["item_id"] == item_id)
        item |= {name: variant[name] for name in ("item_id", "price", "options")}
    order["status"] = "pending (item modified)"
    return order


def modify_user_address(
    db: Database,
    user_id: UserId,
    *,
    address1: str,
    address2: str,
    city: str,
    state: str,
    country: str,
    zip: str,  # noqa: A002
) -> Row:
    """Change the address of a user. Tell the user the details, and get a yes before."""
    user = db["users"].edit(user_id)
    user["address"] = _address(address1, address2, city, state, country, zip)
    return user


def return_delivered_order_items(
    db: Database, order_id: OrderId, item_ids: ItemIds, payment_method_id: PaymentId
) -> Row:
    """Take items of a delivered order back, paid to the way it was paid or to a gift card.

    Tell the user the details, and get a yes before.
    """
    order = db["orders"][order_id]
    if order["status"] != "delivered":
        raise ActionFailed("Non-delivered order cannot be returned")
    method = _method(db, order["user_id"], payment_method_id)
    paid = order["payment_history"][0]["payment_method_id"]
    if method["source"] != "gift_card" and payment_method_id != paid:
        raise ActionFailed("Payment method should be the original payment method")
    _check_items(order, item_ids)
    order = db["orders"].edit(order_id)
    order |= {
        "status": "return requested",
        "return_items": sorted(item_ids),
        "return_payment_method_id": payment_method_id,
    }
    return order


def exchange_delivered_order_items(
    db: Database,
    order_id: OrderId,
    item_ids: ItemIds,
    new_item_ids: NewItemIds,
    payment_method_id: PaymentId,
) -> Row:
    """Exchange items of a delivered order for others of the same products, once for an order.

    Tell the user the details, and get a yes before.
    """
    order = db["orders"][order_id]
    if order["status"] != "delivered":
        raise ActionFailed("Non-delivered order cannot be exchanged")
    _, difference = _replacements(db, order, item_ids, new_item_ids)
    method = _method(db, order["user_id"], payment_method_id)
    _check_balance(
        method, difference, "Insufficient gift card balance to pay for the price difference"
    )
    order = db["orders"].edit(order_id)
    order |= {
        "status": "exchange requested",
        "exchange_items": sorted(item_ids),
        "exchange_new_items": sorted(new_item_ids),
        "exchange_payment_method_id": payment_method_id,
        "exchange_price_difference": difference,
    }
    return order


READS = (
    find_user_id_by_email,
    find_user_id_by_name_zip,
    get_user_details,
    get_order_details,
    get_product_details,
    get_item_details,
    list_all_product_types,
)
WRITES = (
    cancel_pending_order,
    modify_pending_order_address,
    modify_pending_order_payment,
    modify_pending_order_items,
    modify_user_address,
    return_delivered_order_items,
    exchange_delivered_order_items,
)


def _first_user(db: Database, fits: Any) -> str:
    found = next((key for key, user in db["users"].items() if fits(user)), None)
    if found is None:
        raise ActionFailed("User not found")
    return found


def _name_zip(user: Row) -> tuple[str, str, str]:
    name = user["name"]
    return name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"]


def _method(db: Database, user_id: str, payment_method_id: str) -> Row:
    methods = db["users"][user_id]["payment_methods"]
    if payment_method_id not in methods:
        raise ActionFailed("Payment method not found")
    return methods[payment_method_id]


def _check_balance(method: Row, amount: float, refusal: str) -> None:
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise ActionFailed(refusal)


def _charge(db: Database, user_id: str, payment_method_id: str, amount: float) -> None:
    """Take money from a gift card; the other ways to pay have no balance."""
    if _method(db, user_id, payment_method_id)["source"] == "gift_card":
        card = db["users"].edit(user_id)["payment_methods"][payment_method_id]
        card["balance"] = round(card["balance"] - amount, 2)


def _check_pending(order: Row) -> None:
    if "pending" not in order["status"]:
        raise ActionFailed("Non-pending order cannot be modified")


def _check_items(order: Row, item_ids: list[str]) -> None:
    there = Counter(each["item_id"] for each in order["items"])
    for item_id, count in Counter(item_ids).items():
        if count > there[item_id]:
            raise ActionFailed(f"Item {item_id} not found in the order as often")


def _replacements(
    db: Database, order: Row, item_ids: list[str], new_item_ids: list[str]
) -> tuple[list[Row], float]:
    """The items that come in place of others, and what they cost more."""
    _check_items(order, item_ids)
    if len(item_ids) != len(new_item_ids):
        raise ActionFailed("The number of items to be exchanged should match")
    items = {each["item_id"]: each for each in order["items"]}
    variants: list[Row] = []
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        variant = db["products"][items[item_id]["product_id"]]["variants"].get(new_item_id)
        if variant is None:
            raise ActionFailed("Variant not found")
        if not variant["available"]:
            raise ActionFailed(f"New item {new_item_id} not found or available")
        variants.append(variant)
    before = sum(items[item_id]["price"] for item_id in item_ids)
    return variants, round(sum(each["price"] for each in variants) - before, 2)


def _payment(kind: str, amount: float, payment_method_id: str) -> Row:
    return {
        "transaction_type": kind,
        "amount": amount,
        "payment_method_id": payment_method_id,
    }


def _address(*lines: str) -> Row:
    names = ("address1", "address2", "city", "state", "country", "zip")
    return dict(zip(names, lines, strict=True))
