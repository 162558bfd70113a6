"""Gymnasium's environments keep the contract of worlds."""

from collections.abc import Sequence

import pytest

from hud_mcp.plugins.gymnasium.spec import Gymnasium
from hud_mcp.testing import WorldContract
from hud_mcp.values.action import Action, CustomAction, ScreenshotFetch
from hud_mcp.world import WorldSpec

pytestmark = pytest.mark.anyio


def step(**args: object) -> CustomAction:
    """The action that an agent sends."""
    return CustomAction(action="step", args=dict(args))


class TestCartPole(WorldContract):
    """A small one, with a picture."""

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """By its id."""
        return Gymnasium("CartPole-v1")

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """One, several, by name, and looking in between."""
        return [
            step(action=0),
            ScreenshotFetch(),
            step(actions=[1, 0]),
            CustomAction(action="push_right"),
        ]

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """Out of bounds, malformed, or several of which one is wrong."""
        return [step(action=2), step(), step(actions=[0, 1, 7]), step(action=1, repeat=0)]

    @classmethod
    def css_size(cls) -> tuple[int, int]:
        """As Gymnasium draws it."""
        return (600, 400)


class TestContextualLander(WorldContract):
    """A contextual one over Box2D, without a picture."""

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """By its name."""
        return Gymnasium("CARLLunarLander", screen=False)

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """The main engine."""
        return [step(action=2, repeat=3)]

    @classmethod
    def refused_actions(cls) -> Sequence[Action]:
        """There are four engines."""
        return [step(action=4)]


class TestMiniGrid(WorldContract):
    """One with a mission in words."""

    @classmethod
    def make_spec(cls) -> WorldSpec:
        """Registered by its own package."""
        return Gymnasium("MiniGrid-DoorKey-5x5-v0")

    @classmethod
    def changing_actions(cls) -> Sequence[Action]:
        """Turn."""
        return [CustomAction(action="left")]

    @classmethod
    def other_actions(cls) -> Sequence[Action]:
        """The same by its number."""
        return [step(action=0)]
