"""A call of a task that no agent could satisfy is refused when the task meets its environment."""

import pytest

from hud_mcp import GymMakeException, Task
from hud_mcp.plugins.hud import gym

pytestmark = pytest.mark.anyio

REFUSED = [
    # A gym, a call of `evaluate`, and what the refusal says of it.
    ("hud-shell", ("file_exists", "/path/to/output.txt"), "/workspace"),
    ("hud-shell", ("file_exists", "a.txt", "/etc/passwd"), "/workspace"),
    ("hud-shell", ("file_exists", "../a.txt"), "/workspace"),
    ("hud-shell", ("file_contains", "/workspace/../a", "x"), "/workspace"),
    ("hud-browser", ("text_matches", "#a", "("), "regular expression"),
    ("qa", ("response_match", "(?P<a>"), "regular expression"),
]


async def test_what_nobody_could_satisfy_is_said_before_anybody_works() -> None:
    """Nothing is opened; the text names the function, what was given, and what to give."""
    wrong: list[object] = []
    for name, call, said in REFUSED:
        try:
            live = await gym.make(Task(prompt="Work.", gym=name, evaluate=call))
        except GymMakeException as exc:
            told = str(exc)
            if said not in told or call[0] not in told:
                wrong.append((name, call, told))
        else:
            await live.close()
            wrong.append((name, call, "was taken"))
    assert wrong == []
