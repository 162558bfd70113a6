"""`hud-mcp check` asks a task's user for what is private, and reads what it says."""

from pathlib import Path
from typing import Any

import pytest
from proving import ENVIRONMENTS, verdicts

from hud_mcp.environment.conversation import KeptTurn, UserTurn
from hud_mcp.plugins.users.quality import quoted_on_record
from hud_mcp.record.values import USER_TURN, TrajectoryStep, utc_now


@pytest.mark.long
def test_a_user_that_tells_the_key_fails_and_a_script_that_tells_its_goal_is_noted(
    tmp_path: Path,
) -> None:
    """The words of a script are its author's own."""
    found = verdicts(tmp_path, str(ENVIRONMENTS / "chatty.py"), status=1)
    key, goal, sound = (found[name] for name in ("tells_the_key", "tells_the_goal", "sound"))
    assert key["verdict"] == "failed"
    assert any("asking its user for the key" in reason for reason in key["reasons"])
    assert goal["verdict"] == "proven", goal["reasons"]
    assert any("its own goal word for word" in note for note in goal["notes"])
    assert sound["verdict"] == "proven", sound["reasons"]
    assert not any("word for word" in note for note in sound["notes"])
    probes = {each["probe"] for each in sound["probes"]}
    assert {"asks-prompt", "asks-goal", "asks-key"} <= probes


def step(**turn: Any) -> TrajectoryStep:
    """A user's turn on record."""
    persona = "A hasty man of forty two years."
    private = {"goal": "You want the lamp's price back.", "persona": persona}
    patterns = ("order (number|id)",)
    made = UserTurn.model_validate({**private, "patterns": patterns, **turn})
    kept = KeptTurn(after=1, digest="d", number=0, turn=made)
    info = {USER_TURN: kept.model_dump(mode="json", exclude_defaults=True)}
    now = utc_now()
    return TrajectoryStep(index=0, kind="user", info=info, started_at=now, ended_at=now)


def test_what_is_private_is_found_word_for_word_in_any_case_and_spacing() -> None:
    """A model's turns are apart from the others; other words of the same meaning are free."""
    by_model = ({"text": "hi"},)
    said = [
        step(text="My goal: YOU want the\nlamp's price  back", turns=by_model),
        step(text="I wait for order (number|id).", turns=by_model),
        step(text="I am a hasty man of forty two years!"),
        step(text="Give me my money."),
    ]
    assert quoted_on_record(said, True) == ("goal", "script")
    assert quoted_on_record(said, False) == ("persona",)
