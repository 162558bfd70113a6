"""The shop's server side: the catalogue, one cart, a checkout, the orders."""

import re
import zlib
from collections.abc import Callable
from typing import Any

from shop_data import CATALOGUE, DELIVERY, VOUCHERS, as_json, delivery_price, order_line
from site_day import TODAY

from hud_mcp import SiteRequest, SiteResponse

__all__ = ["PAGE_SIZE", "cart_totals", "shop_api"]

PAGE_SIZE = 9
MOST_PER_LINE = 10
COUNTRIES = ("Austria", "Belgium", "Denmark", "Germany", "Netherlands")

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "featured": lambda p: (-p["reviews"], p["name"]),
    "price": lambda p: (p["price"], p["name"]),
    "price-desc": lambda p: (-p["price"], p["name"]),
    "rating": lambda p: (-p["rating"], p["name"]),
    "newest": lambda p: p["added"],
    "name": lambda p: p["name"],
}


async def shop_api(path: str, request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer a request for what lies under `/api/shop/`.

    Args:
        path: What follows that prefix.
        request: The request.
        state: The session's state; `state["shop"]` is read and changed.
    """
    shop = state["shop"]
    if request.method == "GET":
        return _read(path, request.query, shop)
    if request.method != "POST":
        return SiteResponse(status=405, json={"error": "Use GET or POST."})
    given = request.json if isinstance(request.json, dict) else {}
    change = {
        "cart/add": _add,
        "cart/set": _set_quantity,
        "voucher": _redeem,
        "orders": _order,
    }.get(path)
    return change(shop, given) if change else None


def _read(path: str, query: dict[str, str], shop: dict[str, Any]) -> Any:
    if path == "products":
        return _list_products(query, shop)
    if path.startswith("products/"):
        product = CATALOGUE.get(path.removeprefix("products/"))
        return product and as_json(product, shop["stock"][product.id])
    if path == "cart":
        return _cart(shop)
    if path == "orders":
        return shop["orders"]
    return None


def _list_products(query: dict[str, str], shop: dict[str, Any]) -> dict[str, Any]:
    rows = [as_json(p, shop["stock"][p.id]) for p in CATALOGUE.values()]
    words = query.get("q", "").lower().split()
    rows = [r for r in rows if all(w in f"{r['name']} {r['blurb']}".lower() for w in words)]
    counts: dict[str, int] = {p.category: 0 for p in CATALOGUE.values()}
    for row in rows:
        counts[row["category"]] += 1
    if category := query.get("category"):
        rows = [r for r in rows if r["category"] == category]
    if query.get("stock"):
        rows = [r for r in rows if r["in_stock"]]
    if most := query.get("max", ""):
        rows = [r for r in rows if most.isdigit() and r["price"] <= int(most) * 100]
    sort = query.get("sort", "featured")
    rows.sort(key=_SORTS.get(sort, _SORTS["featured"]), reverse=sort == "newest")
    page = int(query.get("page", "1")) if query.get("page", "1").isdigit() else 1
    pages = max(1, -(-len(rows) // PAGE_SIZE))
    page = min(max(page, 1), pages)
    shown = rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return {"rows": shown, "total": len(rows), "page": page, "pages": pages, "counts": counts}


def _find_line(shop: dict[str, Any], given: dict[str, Any]) -> dict[str, Any] | None:
    key = (given.get("product"), given.get("variant"))
    return next((x for x in shop["cart"] if (x["product"], x["variant"]) == key), None)


def _add(shop: dict[str, Any], given: dict[str, Any]) -> Any:
    product = CATALOGUE.get(str(given.get("product")))
    variant = product and product.find(str(given.get("variant")))
    quantity = given.get("quantity")
    if product is None or variant is None or not _is_count(quantity):
        return _refuse("Choose a product, one of its variants, and how many.")
    line = _find_line(shop, given)
    wanted = quantity + (line["quantity"] if line else 0)
    left = shop["stock"][product.id][variant.name]
    if wanted > min(left, MOST_PER_LINE):
        return _refuse(f"Only {min(left, MOST_PER_LINE)} of these can be in the cart.")
    if line:
        line["quantity"] = wanted
    else:
        entry = {"product": product.id, "variant": variant.name, "quantity": quantity}
        shop["cart"].append(entry)
    return _cart(shop)


def _set_quantity(shop: dict[str, Any], given: dict[str, Any]) -> Any:
    line = _find_line(shop, given)
    quantity = given.get("quantity")
    if line is None or not (quantity == 0 or _is_count(quantity)):
        return _refuse("This line is not in the cart.")
    left = min(shop["stock"][line["product"]][line["variant"]], MOST_PER_LINE)
    if quantity > left:
        return _refuse(f"Only {left} of these can be in the cart.")
    if quantity == 0:
        shop["cart"].remove(line)
    else:
        line["quantity"] = quantity
    return _cart(shop)


def _redeem(shop: dict[str, Any], given: dict[str, Any]) -> Any:
    code = str(given.get("code") or "").strip().upper()
    if not code:
        shop["voucher"] = None
        return _cart(shop)
    rule = VOUCHERS.get(code)
    goods = cart_totals(shop)["goods"]
    if rule is None:
        return _refuse(f"There is no voucher {code}.")
    if rule["until"] < TODAY:
        return _refuse(f"{code} ended on {rule['until']}.")
    if goods < rule["from"]:
        return _refuse(f"{code} needs goods of at least €{rule['from'] / 100:.2f}.")
    if cart_totals({**shop, "voucher": code})["discount"] == 0:
        return _refuse(f"{code} is for {rule['category']}, and none of that is in the cart.")
    shop["voucher"] = code
    return _cart(shop)


def cart_totals(shop: dict[str, Any], delivery: str | None = None) -> dict[str, int]:
    """Goods, discount, shipping and total of the cart, in cents."""
    lines = [order_line(x["product"], x["variant"], x["quantity"]) for x in shop["cart"]]
    goods = sum(line["total"] for line in lines)
    discount = 0
    rule = VOUCHERS.get(shop["voucher"] or "")
    if rule and goods >= rule["from"]:
        base = sum(x["total"] for x in lines if rule["category"] in (None, x["category"]))
        discount = (base * rule["percent"] + 50) // 100
    shipping = delivery_price(delivery, goods) if delivery else 0
    total = goods - discount + shipping
    return {"goods": goods, "discount": discount, "shipping": shipping, "total": total}


def _cart(shop: dict[str, Any]) -> dict[str, Any]:
    lines = [order_line(x["product"], x["variant"], x["quantity"]) for x in shop["cart"]]
    for line in lines:
        product = CATALOGUE[line["product"]]
        left = shop["stock"][product.id][line["variant"]]
        line.update(shape=product.shape, tint=product.tint, most=min(left, MOST_PER_LINE))
    totals = cart_totals(shop)
    methods = [
        {"id": name, "label": rule["label"], "price": delivery_price(name, totals["goods"])}
        for name, rule in DELIVERY.items()
    ]
    count = sum(line["quantity"] for line in lines)
    return {
        "lines": lines,
        "count": count,
        "voucher": shop["voucher"],
        **totals,
        "delivery": methods,
        "countries": COUNTRIES,
    }


def _order(shop: dict[str, Any], given: dict[str, Any]) -> Any:
    form = {k: v.strip() if isinstance(v, str) else v for k, v in given.items()}
    if not shop["cart"]:
        return _refuse("The cart is empty.")
    if errors := _form_errors(form):
        return SiteResponse(status=422, json={"error": "Please check the form.", "fields": errors})
    lines = [order_line(x["product"], x["variant"], x["quantity"]) for x in shop["cart"]]
    order = {
        "number": _number(shop, form),
        "date": TODAY,
        "status": "In preparation",
        "lines": lines,
        "voucher": shop["voucher"],
        "delivery": form["delivery"],
        **cart_totals(shop, form["delivery"]),
        "payment": form["payment"],
        "gift": bool(form.get("gift")),
        "note": form.get("note") or "",
        "contact": {k: form[k] for k in ("name", "email")},
        "address": {k: form[k] for k in ("street", "postcode", "city", "country")},
    }
    for line in lines:
        shop["stock"][line["product"]][line["variant"]] -= line["quantity"]
    shop["orders"].insert(0, order)
    shop["cart"], shop["voucher"] = [], None
    return {"number": order["number"]}


def _form_errors(form: dict[str, Any]) -> dict[str, str]:
    labels = {"name": "your full name", "street": "street and number", "city": "a city"}
    errors = {k: f"Enter {label}." for k, label in labels.items() if not form.get(k)}
    if not _EMAIL.fullmatch(str(form.get("email") or "")):
        errors["email"] = "Enter an e-mail address such as name@example.org."
    if not re.fullmatch(r"\d{4,5}", str(form.get("postcode") or "")):
        errors["postcode"] = "Enter a postcode of 4 or 5 digits."
    if form.get("country") not in COUNTRIES:
        errors["country"] = "Choose a country that we deliver to."
    if form.get("delivery") not in DELIVERY:
        errors["delivery"] = "Choose how the goods should reach you."
    if form.get("payment") != "invoice":
        errors["payment"] = "Choose how you want to pay."
    if form.get("terms") is not True:
        errors["terms"] = "Accept the terms of sale to order."
    return errors


def _number(shop: dict[str, Any], form: dict[str, Any]) -> str:
    """An order number that follows from the order, so that nobody can guess the next one."""
    seed = repr((shop["cart"], shop["voucher"], form, len(shop["orders"])))
    return f"AG-{60000 + zlib.crc32(seed.encode()) % 40000}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_PER_LINE


def _refuse(message: str) -> SiteResponse:
    return SiteResponse(status=422, json={"error": message})
