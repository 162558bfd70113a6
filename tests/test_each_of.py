"""A table in one test hides no wrong case."""

import pytest
from tables import each_of


def test_every_wrong_case_is_named_and_the_others_have_run() -> None:
    """Also after a case that raised nothing where it should."""
    ran = []

    @each_of("number, square", [(1, 1), (2, 5), (3, 9), (0, 0)])
    def squares(number: int, square: int) -> None:
        ran.append(number)
        assert number**2 == square
        if number == 0:
            with pytest.raises(ValueError, match="never"):
                pass

    with pytest.raises(BaseExceptionGroup) as failed:
        squares()
    assert ran == [1, 2, 3, 0]
    assert "2 of 4 cases are wrong" in str(failed.value)
    assert [exc.__notes__ for exc in failed.value.exceptions] == [
        ["in the case (2, 5)"],
        ["in the case (0, 0)"],
    ]


def test_two_tables_are_every_pair() -> None:
    """As with two of pytest's own parameters."""
    ran = []

    @each_of("first", "ab")
    @each_of("second", [1, 2])
    def pairs(first: str, second: int) -> None:
        ran.append((first, second))

    pairs()
    assert ran == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


@pytest.mark.anyio
@each_of("case", [1, 2])
async def test_a_table_of_coroutines_has_fixtures(case: int, anyio_backend: str) -> None:
    """What a case does not give comes from pytest, once for all cases."""
    assert case in {1, 2}
    assert anyio_backend == "asyncio"


def test_a_skip_in_a_case_skips_the_test_and_an_empty_table_fails() -> None:
    """A case that was not tried is no case that passed."""

    @each_of("case", [1, 2])
    def skips(case: int) -> None:
        pytest.skip(f"not {case}")

    with pytest.raises(pytest.skip.Exception, match="not 1"):
        skips()

    @each_of("case", [])
    def empty(case: int) -> None:
        raise AssertionError(case)

    with pytest.raises(AssertionError, match="proves nothing"):
        empty()
