"""The shell keeps the contract of worlds, in a sandbox and without one."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from hud_mcp.testing import WorldContract
from hud_mcp.values.action import Action, CustomAction
from hud_mcp.world import WorldSpec
from hud_mcp.worlds.shell import Shell

pytestmark = pytest.mark.anyio


@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
class TestShell(WorldContract):
    """A shell in a sandbox."""

    isolation: ClassVar[Any] = "bwrap"

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """An empty folder."""
        return Shell(isolation=cls.isolation)

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Write, edit and run."""
        return [
            CustomAction(action="write", args={"path": "a/b.txt", "content": "one two\n"}),
            CustomAction(action="edit", args={"path": "a/b.txt", "old": "two", "new": "three"}),
            CustomAction(action="run", args={"command": "cp a/b.txt c.txt; cat c.txt"}),
            CustomAction(action="read", args={"path": "c.txt"}),
            CustomAction(action="list"),
        ]

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """What is not there, what leads out, and what is not understood."""
        custom = CustomAction
        return [
            custom(action="read", args={"path": "none.txt"}),
            custom(action="read", args={"path": "/etc/passwd"}),
            custom(action="write", args={"path": "../x", "content": ""}),
            custom(action="edit", args={"path": "none.txt", "old": "a", "new": "b"}),
            custom(action="list", args={"path": "none"}),
            custom(action="run", args={}),
            custom(action="run", args={"command": 7}),
            custom(action="run", args={"comand": "ls"}),
            custom(action="rum", args={"command": "ls"}),
        ]


@pytest.mark.long
class TestBareShell(TestShell):
    """A shell on the machine itself: its folder's name differs, and all else is the same."""

    isolation: ClassVar[Any] = "none"
