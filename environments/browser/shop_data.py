"""What the shop sells, and what was bought there before: prices in cents, dates in 2026."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["CATALOGUE", "DELIVERY", "VOUCHERS", "Product", "Variant", "new_shop"]


@dataclass(frozen=True)
class Variant:
    """One choice of a product: what it adds to the price, and how many are left."""

    name: str
    extra: int
    stock: int


@dataclass(frozen=True)
class Product:
    """One product; `kind` names the variants' common noun, `shape` and `tint` its picture."""

    id: str
    name: str
    category: str
    price: int
    rating: float
    reviews: int
    kind: str
    variants: tuple[Variant, ...]
    blurb: str
    shape: str
    tint: str
    added: str

    @property
    def in_stock(self) -> bool:
        """Whether any variant is left."""
        return any(v.stock for v in self.variants)

    def find(self, name: str) -> Variant | None:
        """The variant of a name, or None."""
        return next((v for v in self.variants if v.name == name), None)


_ROWS = """
heron-desk-lamp|Heron desk lamp|Lighting|5490|4.6|128|Colour|Sage:0:7,Graphite:0:4,Brass:600:3|A jointed arm that stays where you put it, and a shade that keeps the light off your screen.|lamp|#7c9a83|2026-01-12
moth-table-lamp|Moth table lamp|Lighting|3990|4.2|64|Colour|Chalk:0:9,Rust:0:2|Soft light through folded paper; small enough for a bedside shelf.|tablelamp|#c8866b|2025-09-03
tide-floor-lamp|Tide floor lamp|Lighting|11900|4.8|41|Colour|Oak:0:2,Black:0:5|A slender stand with a dimmer that you turn with your foot.|floorlamp|#b08d57|2026-03-20
ember-lantern|Ember lantern|Lighting|2450|4.4|87|Size|Small:0:12,Large:700:6|Rechargeable, weatherproof, and bright for eleven hours.|lantern|#d9a441|2025-11-28
reed-pendant|Reed pendant shade|Lighting|6800|3.9|22|Size|Wide:0:0|Woven by hand from river reed; comes with one and a half metres of cable.|pendant|#c9ae7c|2025-06-17
pebble-mug|Pebble mug|Kitchen|1400|4.7|211|Colour|Oat:0:24,Slate:0:18,Moss:0:0|Round as a pebble, holds 300 ml, and keeps its glaze in the dishwasher.|mug|#8d9aa5|2025-04-22
harvest-bowl|Harvest bowl|Kitchen|2200|4.5|73|Size|Small:0:11,Large:850:7|Stoneware for salads, fruit, or keys by the door.|bowl|#b5754f|2025-10-05
tern-kettle|Tern kettle|Kitchen|6400|4.5|95|Colour|Steel:0:6,Cream:300:5|Boils a litre in three minutes and whistles two quiet notes.|kettle|#9aa7ad|2026-02-09
larch-board|Larch cutting board|Kitchen|2950|4.8|156|Size|Small:0:14,Large:900:8|One piece of oiled larch with a groove for the juice.|board|#c49a6c|2025-08-14
cove-plates|Cove plate set|Kitchen|4800|4.1|38|Colour|White:0:10,Sea:0:4|Four plates with a raised rim, stackable and hard to chip.|plates|#7fa8b3|2025-12-01
brine-jar|Brine storage jar|Kitchen|1250|4.0|52|Size|500 ml:0:20,1 litre:350:16|Thick glass and a cork lid for beans, salt, or sourdough.|jar|#a9b9a0|2025-07-30
drift-blanket|Drift blanket|Textiles|7200|4.9|118|Colour|Fog:0:5,Heather:0:6,Pine:0:3|Lambswool from a small mill, 140 by 200 cm, soft from the first day.|blanket|#8f86a8|2026-01-30
meadow-cushion|Meadow cushion|Textiles|2600|4.3|67|Colour|Clover:0:9,Straw:0:13|A linen cover with wooden buttons, filling included.|cushion|#93a86b|2025-05-19
linen-towels|Linen tea towels|Textiles|1800|4.6|142|Colour|Blue stripe:0:22,Red stripe:0:19|Set of three; they dry glasses without a trace.|towel|#6f8fb5|2025-03-11
fjord-rug|Fjord rug|Textiles|13900|4.4|29|Size|80 x 150 cm:0:4,120 x 180 cm:6000:2|Flat-woven wool in two tones, the same on both sides.|rug|#5f7f8f|2026-02-24
dune-apron|Dune apron|Textiles|3400|4.0|33|Colour|Sand:0:8,Ink:0:7|Heavy cotton, crossed straps, and a pocket that fits a phone.|apron|#c2a878|2025-10-21
rush-basket|Rush basket|Storage|2700|4.5|81|Size|Small:0:15,Medium:600:10,Large:1300:5|Plaited rush with leather handles, for wood, wool, or newspapers.|basket|#bf9a5e|2025-09-26
peg-rail|Peg rail|Storage|3100|4.7|59|Length|Four pegs:0:9,Six pegs:900:6|Solid ash; the pegs can be moved to where you need them.|rail|#a97c50|2026-03-02
stacking-crate|Stacking crate|Storage|1950|4.2|104|Colour|Natural:0:17,White:250:12|Holds records, tools, or onions, and stacks without slipping.|crate|#caa472|2025-06-30
nook-shelf|Nook shelf|Storage|5200|3.8|26|Wood|Ash:0:3,Walnut:1500:2|A corner shelf in three tiers, hung with two screws.|shelf|#8a6a4f|2025-11-08
field-notebook|Field notebook|Stationery|950|4.8|264|Paper|Plain:0:40,Ruled:0:35,Dotted:0:31|Stitched, pocket-sized, with paper that takes ink and pencil.|notebook|#5f7c6b|2025-02-18
quill-pen|Quill fountain pen|Stationery|3800|4.6|77|Nib|Fine:0:8,Medium:0:9,Broad:0:0|A steel nib that starts at once, and a converter in the box.|pen|#46566b|2026-03-27
month-planner|Month planner|Stationery|1650|4.1|45|Cover|Terracotta:0:14,Teal:0:11|Twelve undated months, one to a spread, lying flat.|planner|#b8654a|2025-12-15
postcard-box|Postcard box|Stationery|1200|4.3|58|Motif|Birds:0:16,Boats:0:12|Forty cards printed on recycled board, in a box to keep the replies.|postcards|#7d9bb0|2025-08-29
"""  # noqa: E501  # one product a line


def _read(row: str) -> Product:
    key, name, category, price, rating, reviews, kind, variants, *rest = row.split("|")
    options = [option.split(":") for option in variants.split(",")]
    return Product(
        key,
        name,
        category,
        int(price),
        float(rating),
        int(reviews),
        kind,
        tuple(Variant(label, int(extra), int(stock)) for label, extra, stock in options),
        *rest,
    )


CATALOGUE: dict[str, Product] = {p.id: p for p in map(_read, _ROWS.strip().splitlines())}
"""Every product by its id."""

DELIVERY: dict[str, dict[str, Any]] = {
    "standard": {"label": "Standard, 3 to 5 days", "price": 490, "free_from": 8000},
    "express": {"label": "Express, next working day", "price": 990, "free_from": None},
    "pickup": {"label": "Pick up at the harbour store", "price": 0, "free_from": None},
}
"""Delivery methods: the price in cents, and the value of goods from which it is free."""

VOUCHERS: dict[str, dict[str, Any]] = {
    "SPRING10": {"percent": 10, "from": 5000, "category": None, "until": "2026-05-31"},
    "BRIGHT20": {"percent": 20, "from": 0, "category": "Lighting", "until": "2026-06-30"},
    "PAPER15": {"percent": 15, "from": 0, "category": "Stationery", "until": "2026-05-15"},
    "WINTER25": {"percent": 25, "from": 0, "category": None, "until": "2026-02-28"},
}
"""Voucher codes: the percentage, the least value of goods, the category, the last day."""

_HISTORY: tuple[tuple[str, str, str, tuple[tuple[str, str, int], ...]], ...] = (
    ("AG-58213", "2026-04-18", "standard", (("field-notebook", "Dotted", 3),)),
    ("AG-57760", "2026-04-02", "express", (("ember-lantern", "Large", 1),)),
    (
        "AG-55102",
        "2026-03-24",
        "standard",
        (("tern-kettle", "Cream", 1), ("brine-jar", "1 litre", 2)),
    ),
    ("AG-54431", "2026-03-09", "pickup", (("peg-rail", "Six pegs", 1),)),
    ("AG-53987", "2026-03-01", "standard", (("linen-towels", "Blue stripe", 2),)),
    (
        "AG-51206",
        "2026-02-14",
        "express",
        (("drift-blanket", "Heather", 1), ("postcard-box", "Birds", 1)),
    ),
    ("AG-49318", "2026-01-22", "standard", (("larch-board", "Large", 1), ("pebble-mug", "Oat", 4))),
)


def delivery_price(method: str, goods: int) -> int:
    """What a delivery costs, in cents, for goods of a value in cents."""
    rule = DELIVERY[method]
    free = rule["free_from"] is not None and goods >= rule["free_from"]
    return 0 if free else rule["price"]


def new_shop() -> dict[str, Any]:
    """The shop as a session finds it: an empty cart, and the orders of the last months."""
    orders = [_past_order(*row) for row in _HISTORY]
    stock = {p.id: {v.name: v.stock for v in p.variants} for p in CATALOGUE.values()}
    return {"cart": [], "voucher": None, "orders": orders, "stock": stock}


def _past_order(
    number: str, date: str, delivery: str, items: tuple[tuple[str, str, int], ...]
) -> dict[str, Any]:
    lines = [order_line(*item) for item in items]
    goods = sum(line["total"] for line in lines)
    shipping = delivery_price(delivery, goods)
    return {
        "number": number,
        "date": date,
        "status": "Delivered",
        "lines": lines,
        "goods": goods,
        "discount": 0,
        "voucher": None,
        "delivery": delivery,
        "shipping": shipping,
        "total": goods + shipping,
    }


def order_line(product_id: str, variant: str, quantity: int) -> dict[str, Any]:
    """One line of a cart or an order, priced."""
    product = CATALOGUE[product_id]
    chosen = product.find(variant)
    if chosen is None:
        raise KeyError(f"{product.name} has no variant {variant!r}")
    price = product.price + chosen.extra
    return {
        "product": product_id,
        "name": product.name,
        "category": product.category,
        "variant": variant,
        "kind": product.kind,
        "quantity": quantity,
        "price": price,
        "total": price * quantity,
    }


def as_json(product: Product, stock: dict[str, int]) -> dict[str, Any]:
    """A product as the pages read it, with what is left now."""
    row = asdict(product)
    row["variants"] = [{**v, "stock": stock[v["name"]]} for v in row["variants"]]
    row["in_stock"] = any(stock.values())
    return row
