"""Who picks the next context."""

from typing import Any

import pytest
from tables import each_of

from hud_mcp.carl import (
    AbstractSelector,
    ContextSelector,
    CustomSelector,
    RandomSelector,
    RoundRobinSelector,
    StaticSelector,
)
from hud_mcp.errors import InvalidContext
from hud_mcp.values.context import Context

CONTEXTS: dict[str, Context] = {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}


def picked(selector: ContextSelector, times: int) -> list[Any]:
    """The keys of the next contexts."""
    keys: list[Any] = []
    for _ in range(times):
        context = selector.select()
        keys.append(selector.context_key)
        assert context == selector.context == CONTEXTS[str(selector.context_key)]
    return keys


def test_round_robin_goes_through_all_and_begins_again() -> None:
    """In the order of the contexts."""
    assert picked(RoundRobinSelector(CONTEXTS), 7) == list("abcabca")


def test_round_robin_goes_on_from_an_id_that_was_set() -> None:
    """The next one is the one after it."""
    selector = RoundRobinSelector(CONTEXTS)
    selector.context_id = 1
    assert picked(selector, 2) == ["c", "a"]


def test_static_stays_with_the_first_or_with_the_one_that_was_set() -> None:
    """Until another id is set."""
    selector = StaticSelector(CONTEXTS)
    assert picked(selector, 3) == ["a", "a", "a"]
    selector.context_id = 2
    assert picked(selector, 2) == ["c", "c"]


def test_random_draws_every_context_and_repeats_by_its_seed() -> None:
    """Equally often, as far as a thousand draws can tell."""
    selector = RandomSelector(CONTEXTS, seed=1)
    first = picked(selector, 1000)
    assert all(280 < first.count(key) < 390 for key in CONTEXTS)
    selector.seed(1)
    assert picked(selector, 1000) == first
    assert picked(RandomSelector(CONTEXTS, seed=1), 1000) == first
    assert picked(RandomSelector(CONTEXTS, seed=2), 1000) != first
    assert picked(RandomSelector(CONTEXTS), 1000) != picked(RandomSelector(CONTEXTS), 1000)


def test_custom_asks_a_function_that_knows_the_selector() -> None:
    """The number of calls and the id are those before the call."""
    told: list[Any] = []

    def pick(selector: ContextSelector) -> tuple[Context, int]:
        told.append((selector.n_calls, selector.context_id))
        chosen = 1 if selector.n_calls == 0 else 0
        return selector.contexts[selector.contexts_keys[chosen]], chosen

    assert picked(CustomSelector(CONTEXTS, pick), 3) == ["b", "a", "a"]
    assert told == [(0, None), (1, 1), (2, 0)]


def test_ids_are_plain_integers_from_zero() -> None:
    """None before the first selection; NumPy's integers become plain ones."""
    np = pytest.importorskip("numpy")
    selector = CustomSelector(CONTEXTS, lambda s: (s.contexts["b"], np.int64(1)))
    assert (selector.context_id, selector.context_key, selector.context) == (None, None, None)
    assert selector.context_ids == [0, 1, 2]
    assert selector.contexts_keys == ["a", "b", "c"]
    selector.select()
    assert type(selector.context_id) is int
    assert selector.context_key == "b"


def test_the_first_context_s_key_is_known_too() -> None:
    """Its id is 0, which is not nothing."""
    selector = StaticSelector(CONTEXTS)
    selector.select()
    assert (selector.context_id, selector.context_key) == (0, "a")


@each_of("wrong", [3, -1, "a", None, True, 0.5])
def test_an_id_that_is_not_there_is_refused(wrong: Any) -> None:
    """And nothing was selected."""
    selector = CustomSelector(CONTEXTS, lambda s: (s.contexts["a"], wrong))
    with pytest.raises(InvalidContext, match=r"There is no context .*; the ids are 0 to 2"):
        selector.select()
    assert (selector.n_calls, selector.context_id) == (0, None)


@each_of("wrong", [None, "ab", (None, 0), 0, ({}, 0, 1)])
def test_what_is_no_context_with_its_id_is_refused(wrong: Any) -> None:
    """A function of the author's may forget one; nothing was selected."""
    selector = CustomSelector(CONTEXTS, lambda s: wrong)
    with pytest.raises(InvalidContext, match="A selector gives a context and its id, and this one"):
        selector.select()
    assert (selector.n_calls, selector.context_id) == (0, None)


def test_there_is_something_to_select_from() -> None:
    """An empty set is refused at once; in a smaller one, an id that is gone is forgotten."""
    with pytest.raises(InvalidContext, match="The selector has no contexts"):
        RoundRobinSelector({})
    selector = RoundRobinSelector(CONTEXTS)
    picked(selector, 3)
    selector.contexts = {"a": {"x": 1}}
    assert (selector.context_id, selector.context_key) == (None, None)
    assert selector.select() == {"x": 1}


def test_a_selector_of_an_author_s_own() -> None:
    """Under CARL's name for what it inherits from."""

    class Last(AbstractSelector):
        def _select(self) -> tuple[Context, int]:
            last = self.context_ids[-1]
            return self.contexts[self.contexts_keys[last]], last

    assert picked(Last(CONTEXTS), 2) == ["c", "c"]
