"""Names and words that tasks are made of."""

# ruff: noqa: SIM905  # many words to a line

import random

from shell_files import draws

__all__ = ["CITIES", "FIRST_NAMES", "LAST_NAMES", "PRODUCTS", "WORDS", "a_word", "some", "words"]

WORDS = (
    "amber basin cedar delta ember fjord grove harbor inlet juniper kettle lantern meadow nectar "
    "orchard pebble quarry ridge saddle timber umber valley willow yarrow zephyr anchor birch "
    "copper dune elder falcon garnet heron iris jasper kestrel larch marble nettle opal plover "
    "quill raven sorrel thistle upland violet walnut"
).split()
FIRST_NAMES = (
    "Ada Bruno Clara Dario Elena Felix Greta Hugo Ines Jonas Karin Luca Mira Nils Olga Pavel "
    "Rosa Stefan Tilda Umberto Vera Wanda Yusuf Zoe"
).split()
LAST_NAMES = (
    "Albers Brandt Castro Dahl Engel Fischer Garcia Holm Ivanov Jansen Keller Lopez Moreau Novak "
    "Olsen Perez Quist Rossi Silva Tanaka Urban Vogel Weber Young Zeller"
).split()
CITIES = "Aarhus Bergen Cork Delft Essen Ghent Lyon Malaga Oslo Porto Turin Utrecht".split()
PRODUCTS = "lamp chair desk shelf rug vase clock stool mirror basket bench easel".split()


def a_word(purpose: str, seed: int) -> str:
    """A word that names something of a task."""
    return draws(f"word/{purpose}", seed).choice(WORDS)


def some(draw: random.Random, pool: list[str], count: int) -> list[str]:
    """So many of them, each once."""
    return draw.sample(pool, count)


def words(draw: random.Random, count: int) -> str:
    """So many words in a row."""
    return " ".join(draw.choice(WORDS) for _ in range(count))
