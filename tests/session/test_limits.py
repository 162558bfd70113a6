"""Limits are explicit and refuse what cannot bound anything."""

import pytest
from pydantic import ValidationError
from tables import each_of

from hud_mcp.session.spec import Limits


@each_of("name", sorted(set(Limits.model_fields) - {"log_lines"}))
@each_of("value", [0, -1, "many", None])
def test_a_limit_that_bounds_nothing_is_refused(name: str, value: object) -> None:
    """Zero and less would stop everything, and a word is not a number."""
    with pytest.raises(ValidationError, match=name):
        Limits.model_validate({name: value})


@each_of("name", sorted(Limits.model_fields))
def test_a_limit_can_be_read_from_text(name: str) -> None:
    """A command line gives text."""
    assert getattr(Limits.model_validate({name: "300"}), name) == 300


def test_an_unknown_limit_is_refused() -> None:
    """A typo does not leave the default in force unseen."""
    with pytest.raises(ValidationError, match="session_per_caller"):
        Limits.model_validate({"session_per_caller": 1})


def test_a_reply_waits_less_than_the_hosts_do() -> None:
    """Most hosts give up on a call after a minute; a reply that comes later is lost."""
    assert Limits().reply_s < 60
    assert Limits().reply_s < Limits().grade_s
