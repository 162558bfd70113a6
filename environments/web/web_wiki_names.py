"""What things of the region may be called."""

from random import Random

__all__ = [
    "BRIDGES",
    "EDITORS",
    "REALMS",
    "REGIONS",
    "SEAS",
    "TRADES",
    "VANDALS",
    "draw_hills",
    "draw_people",
    "draw_rivers",
    "draw_towns",
]

REGIONS = ("Vale", "Marches", "March", "Lowlands", "Hundred")
REALMS = ("Ormsden", "Tirren", "Askerdale", "Velmoor", "Harrowmere", "Caldmark", "Esterlow")
SEAS = ("the Grey Sound", "the Merrow Sea", "the Bay of Larks", "the Tern Water")
BRIDGES = tuple(
    f"{word} Bridge"
    for word in (
        "Abbey", "Castle", "Chain", "Crane", "Drover", "Ferry", "Guild", "Harbour", "Kiln",
        "Lantern", "Long", "Market", "Miller", "Orchard", "Salt", "Swan", "Toll", "Weaver",
    )
)  # fmt: skip
TRADES = (
    "paper", "glass", "rope", "salt", "wool", "cider", "slate", "tile", "leather", "clock",
    "barrel", "linen", "pottery", "copper", "boat", "candle",
)  # fmt: skip
EDITORS = (
    "Alder Quill", "Bramble", "Candlewick", "Dovetail", "Elderflower", "Fieldnotes", "Gazetteer",
    "Hedgerow", "Inkwell", "Juniper Row", "Kittiwake", "Lowland Reader", "Marginalia", "Nightjar",
    "Old Surveyor", "Parchment", "Quarto", "Rushlight", "Saltmarsh", "Thistledown",
)  # fmt: skip
VANDALS = ("Xx Boggart xX", "Mudlark99", "Prankster Pip", "Soggy Sock", "Turnip King")

_STEMS = (
    "Alder", "Bram", "Cald", "Dun", "Ester", "Fenn", "Garth", "Hallow", "Ingle", "Kelder", "Lang",
    "Mar", "Nether", "Orm", "Pell", "Quarn", "Raven", "Skel", "Thorn", "Ulver", "Wend", "Yar",
    "Birk", "Corn", "Dray", "Farn", "Grims", "Hazel", "Thirl", "Wether",
)  # fmt: skip
_TOWN_ENDS = ("by", "ford", "ham", "stead", "wick", "ton", "bury", "thorpe", "combe", "ley")
_RIVER_STEMS = ("Tarr", "Wenl", "Bis", "Cor", "Lunn", "Mesk", "Ov", "Perr", "Sarn", "Teg", "Vell")
_RIVER_ENDS = ("ow", "en", "el", "ax", "ick", "are")
_HILL_ENDS = ("Fell", "Tor", "Pike", "Edge", "Crag")
_FIRST = (
    "Ada", "Bertil", "Clara", "Dorian", "Edith", "Fergus", "Greta", "Hugo", "Ida", "Jonas",
    "Karin", "Lambert", "Maud", "Nils", "Olive", "Piers", "Rosa", "Silas", "Thea", "Wilfred",
)  # fmt: skip
_LAST = (
    "Ashdown", "Brandt", "Carrow", "Dunmore", "Ekholm", "Fairlie", "Garrick", "Holm", "Ivers",
    "Kettle", "Lindgren", "Marsh", "Norberg", "Oakes", "Pryce", "Quist", "Rowan", "Sandel",
    "Thorne", "Vance",
)  # fmt: skip


def draw_towns(draw: Random, count: int) -> list[str]:
    """Names of towns, no two of one stem."""
    return [f"{stem}{draw.choice(_TOWN_ENDS)}" for stem in draw.sample(_STEMS, count)]


def draw_rivers(draw: Random, count: int) -> list[str]:
    """Names of rivers, no two of one stem."""
    return [f"River {stem}{draw.choice(_RIVER_ENDS)}" for stem in draw.sample(_RIVER_STEMS, count)]


def draw_hills(draw: Random, count: int) -> list[str]:
    """Names of hills, no two of one stem."""
    return [f"{stem} {draw.choice(_HILL_ENDS)}" for stem in draw.sample(_STEMS, count)]


def draw_people(draw: Random, count: int) -> list[str]:
    """Names of people, no two of one family."""
    firsts = draw.sample(_FIRST, count)
    return [f"{a} {b}" for a, b in zip(firsts, draw.sample(_LAST, count), strict=True)]
