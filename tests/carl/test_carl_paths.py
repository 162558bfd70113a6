"""Paths to what a feature sets: attributes, places and keys, and what is said of a wrong one."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from tables import each_of

from hud_mcp.carl import CARLAttributesEnv, ContextFeature
from hud_mcp.errors import InvalidContext
from hud_mcp.plugins.gymnasium.carl.attributes import AttributePath


class Copied:
    """Gives a copy of what it has."""

    @property
    def places(self) -> list[float]:
        """A new list each time."""
        return [1.0, 2.0]

    @property
    def fixed(self) -> float:
        """What cannot be set."""
        return 3.0


def example() -> Any:
    """An object with something of each kind."""
    return SimpleNamespace(
        mass=1.5,
        model=SimpleNamespace(
            gravity=np.array([0.0, 0.0, -9.81]),
            friction=np.array([[1.0, 0.5], [1.0, 0.1]]),
            sizes=[1, 2, 3],
        ),
        settings={"speed": {"top": 4.0}},
        pair=(1.0, 2.0),
        copied=Copied(),
    )


def use(path: str) -> None:
    """Do with a path what a declaration does."""
    parsed = AttributePath(path, "x")
    parsed.check(example())
    parsed.read(example())


@each_of(
    ("path", "was", "value"),
    [
        ("mass", 1.5, 2.5),
        ("model.gravity[2]", -9.81, -1.62),
        ("model.gravity[-1]", -9.81, 1e-8),
        ("model.friction[1, 0]", 1.0, 0.25),
        ("model.friction[1][1]", 0.1, 0.25),
        ("model.friction[:, 0]", 1.0, 0.25),
        ("model.sizes[0]", 1, 7),
        ("settings['speed']['top']", 4.0, 5.0),
        ('settings["speed"]["top"]', 4.0, 5.0),
    ],
)
def test_a_path_is_read_and_set(path: str, was: Any, value: Any) -> None:
    """A slice is read where all its places hold the same."""
    there = example()
    parsed = AttributePath(path, "x")
    assert parsed.read(there) == was
    parsed.check(there)
    parsed.write(there, value)
    assert parsed.read(there) == value


@each_of(
    ("path", "said"),
    [
        ("modle.gravity[2]", r"has no attribute 'modle'. Did you mean 'model'\? It has model, "),
        ("model.gravty[2]", "has no attribute 'gravty'. Did you mean 'gravity'"),
        ("model.gravity[3]", r"'model.gravity' is a ndarray of shape \(3,\): index 3 is out of"),
        ("model.sizes[9]", "'model.sizes' is a list of 3: list index out of range"),
        ("mass[0]", "'mass' is a float: 'float' object is not subscriptable"),
        ("settings['sped']", "'settings' has no key 'sped'. It has speed"),
        ("model.friction[:, 1]", r"holds several values: 0.1, 0.5. Name one by its place"),
        ("pair[0]", "cannot be set in a tuple: TypeError"),
        ("copied.fixed", "cannot be set in a Copied: AttributeError"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, said: str) -> None:
    """And what is there."""
    with pytest.raises(InvalidContext, match=f"feature 'x' sets .*{said}"):
        use(path)


@each_of("path", ["", ".mass", "mass.", "[0]", "a b", "a[0", "a.[0]", "a..b", "a[0]b"])
def test_what_is_no_path_is_refused_with_the_place(path: str) -> None:
    """Before an environment is looked at."""
    with pytest.raises(InvalidContext, match=r"is not a path from its character \d+ on"):
        AttributePath(path, "x")


@each_of("index", ["", "x", "1:2", "1.5", "f()"])
def test_an_index_is_a_place_or_a_key(index: str) -> None:
    """Nothing in it is run."""
    with pytest.raises(InvalidContext, match="has the index"):
        AttributePath(f"a[{index}]", "x")


def test_what_is_set_is_seen_to_be_there() -> None:
    """A copy that was changed, or a place for whole numbers, is no context."""
    with pytest.raises(
        InvalidContext, match=r"was set to 5.0 and still is 1.0.*'copied.places' is a"
    ):
        AttributePath("copied.places[0]", "x").write(example(), 5.0)
    there = SimpleNamespace(counts=np.array([1, 2]))
    with pytest.raises(InvalidContext, match=r"was set to 1.5 and still is 1"):
        AttributePath("counts[0]", "x").write(there, 1.5)


def test_no_attribute_comes_to_be_by_a_mistake() -> None:
    """A path of a declared feature is looked at too."""
    with pytest.raises(InvalidContext, match="a CartPoleEnv has no attribute 'gravitation'"):
        CARLAttributesEnv(
            gymnasium.make("CartPole-v1"),
            attributes={"g": "gravitation"},
            features=[ContextFeature(name="g", default=9.8)],
        )
