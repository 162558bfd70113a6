"""What the shop's tasks expect of its state at their end."""

from typing import Any

from shop_backend import cart_totals
from shop_data import CATALOGUE, DELIVERY, VOUCHERS, Product, Variant, order_line
from site_day import TODAY
from site_grading import Before

from hud_mcp import Grade, contains, grade_checks

__all__ = [
    "CART",
    "MONTHS",
    "NORA",
    "best_discount",
    "best_products",
    "delivery_label",
    "find_variant",
    "grade_cart",
    "grade_order",
    "price_of",
    "spent_in",
    "stock_cart",
    "total_of",
]

Line = tuple[str, str]
"""A product's id and a variant's name."""

CART = (
    ("moth-table-lamp", "Rust", 1),
    ("linen-towels", "Blue stripe", 2),
    ("brine-jar", "500 ml", 3),
)
"""What lies in the cart that is to be corrected."""

NORA = {
    "name": "Nora Lindqvist",
    "email": "nora@lindqvist.example",
    "street": "Mill Lane 7",
    "postcode": "1020",
    "city": "Vienna",
    "country": "Austria",
}
"""Where orders go."""

MONTHS = ("January", "February", "March", "April")


def find_variant(name: str, variant: str) -> tuple[Product, Variant]:
    """A product and its variant, by their names.

    Raises:
        ValueError: There is none, or none is left; the text says which there are.
    """
    product = next(p for p in CATALOGUE.values() if p.name == name)
    found = product.find(variant)
    if found is None or not found.stock:
        names = ", ".join(v.name for v in product.variants if v.stock) or "nothing"
        raise ValueError(f"{name} is not sold as {variant!r}; in stock: {names}")
    return product, found


def best_products(category: str, rating: float) -> list[str]:
    """The cheapest products of a category that are in stock and rated at least so.

    Raises:
        ValueError: There is none.
    """
    able = [
        p
        for p in CATALOGUE.values()
        if p.category == category and p.in_stock and p.rating >= rating
    ]
    if not able:
        raise ValueError(f"nothing in {category} is in stock and rated at least {rating}")
    lowest = min(p.price for p in able)
    return [p.name for p in able if p.price == lowest]


def spent_in(orders: list[dict[str, Any]], month: str) -> float:
    """What the orders of a month of 2026 cost in all, in euros."""
    prefix = f"2026-{MONTHS.index(month) + 1:02}"
    return sum(o["total"] for o in orders if o["date"].startswith(prefix)) / 100


def stock_cart(
    shop: dict[str, Any], changes: dict[str, int]
) -> tuple[dict[Line, int], dict[Line, int]]:
    """Fill the cart, and return the lines that a task changes, and those that it does not.

    Args:
        shop: The shop's state.
        changes: How many of a product, by its name, are to be in the cart afterwards.

    Raises:
        ValueError: Not two products are to change, or one has that quantity already.
    """
    shop["cart"] = [{"product": p, "variant": v, "quantity": n} for p, v, n in CART]
    changed = {(p, v): changes[name] for p, v, _ in CART if (name := CATALOGUE[p].name) in changes}
    rest = {(p, v): n for p, v, n in CART if (p, v) not in changed}
    if len(changed) != 2 or any(changed.get((p, v)) == n for p, v, n in CART):  # noqa: PLR2004
        raise ValueError(f"name two products of the cart, and other quantities: {changes}")
    return changed, rest


def total_of(lines: dict[Line, int], voucher: str) -> float:
    """What a cart comes to with a voucher, in euros, without delivery.

    Raises:
        ValueError: The voucher does not apply to it.
    """
    cart = [{"product": p, "variant": v, "quantity": n} for (p, v), n in lines.items() if n]
    totals = cart_totals({"cart": cart, "voucher": voucher})
    if not totals["discount"]:
        raise ValueError(f"{voucher} does not apply to goods of {totals['goods']} cents")
    return totals["total"] / 100


def grade_cart(
    shop: dict[str, Any],
    before: Before,
    wanted: dict[Line, int],
    kept: dict[Line, int] | None = None,
    **more: bool,
) -> Grade:
    """Grade the cart's lines.

    Args:
        shop: The shop's state.
        before: The state when the task began.
        wanted: How many each line that the task changes is to have.
        kept: How many the others have.
        **more: Other parts of the task, and whether they hold; they count once the lines do.
    """
    cart = {(x["product"], x["variant"]): x["quantity"] for x in shop["cart"]}
    checks = {
        f"{CATALOGUE[product].name}: {quantity}": cart.get((product, variant), 0) == quantity
        for (product, variant), quantity in wanted.items()
    }
    others = {line: n for line, n in cart.items() if line not in wanted}
    effects = before.changes(beside=["shop.cart", *(["shop.voucher"] if kept else [])])
    if others != (kept or {}):
        effects.append("shop.cart: other lines")
    lines_hold = all(checks.values())
    return grade_checks({**checks, **{k: v and lines_hold for k, v in more.items()}}, effects)


def grade_order(
    shop: dict[str, Any],
    before: Before,
    *,
    answer: str,
    line: tuple[str, str, int],
    form: dict[str, Any],
    discount: int,
) -> Grade:
    """Grade that one order was placed, and that the answer is its number.

    Args:
        shop: The shop's state.
        before: The state when the task began.
        answer: What was submitted.
        line: The only line: the product's id, the variant, the quantity.
        form: The contact, address, delivery and gift that the order is to have.
        discount: What the voucher is to save, in cents.
    """
    product, variant, quantity = line
    orders = [o for o in shop["orders"] if o["date"] == TODAY]
    orders.sort(key=lambda o: (contains(answer, o["number"]), _holds(o, product, variant)))
    order = orders[-1] if orders else {}
    lines = order.get("lines", [])
    address = {k: v for k, v in form.items() if k in ("street", "postcode", "city", "country")}
    checks = {
        "product": bool(lines) and _holds(order, product, variant),
        "quantity": sum(x["quantity"] for x in lines) == quantity,
        "contact": order.get("contact") == {k: form[k] for k in ("name", "email")},
        "address": order.get("address") == address,
        "delivery": (order.get("delivery"), order.get("gift")) == (form["delivery"], form["gift"]),
        "answer": bool(order) and contains(answer, order["number"]) == 1,
    }
    if discount:
        checks["voucher"] = order.get("discount") == discount
    own = [f"shop.orders.{order['number']}"] if order else []
    effects = before.changes(beside=[*own, f"shop.stock.{product}.{variant}"])
    return grade_checks(
        checks, [*effects, *(f"order: {x['name']}" for x in lines if x["product"] != product)]
    )


def best_discount(product: Product, variant: Variant, quantity: int) -> int:
    """The most that any voucher of today saves on one line, in cents."""
    line = {"product": product.id, "variant": variant.name, "quantity": quantity}
    saved = [
        cart_totals({"cart": [line], "voucher": code})["discount"]
        for code, rule in VOUCHERS.items()
        if rule["until"] >= TODAY
    ]
    return max(saved)


def delivery_label(delivery: str) -> str:
    """How the shop calls a delivery method."""
    return str(DELIVERY[delivery]["label"])


def price_of(product: Product, variant: Variant) -> float:
    """The price of one, in euros."""
    return order_line(product.id, variant.name, 1)["price"] / 100


def _holds(order: dict[str, Any], product: str, variant: str) -> bool:
    return any((x["product"], x["variant"]) == (product, variant) for x in order["lines"])
