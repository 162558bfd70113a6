"""BipedalWalker with the features that CARL gives it; needs the extra `box2d`.

`TERRAIN_HEIGHT` is left out: nothing depends on where zero is. `TERRAIN_STARTPAD` is a
whole number of steps, which the terrain's generator counts down to zero.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, load_box2d, set_class
from hud_mcp.values.context import ContextFeature

__all__ = ["CARLBipedalWalker"]

bipedal_walker: Any = load_box2d("bipedal_walker")

_WALKER = (
    ("FPS", 50.0, 1, 500, "States a second of simulated time."),
    ("SCALE", 30.0, 1, 100, "Pixels of the drawing for a unit of length: larger is slower."),
    ("GRAVITY_X", 0.0, -20, 20, "Gravity to the right."),
    ("GRAVITY_Y", -10.0, -20, -0.01, "Gravity upwards, so it is negative."),
    ("FRICTION", 2.5, 0, 10, "Of the ground."),
    ("TERRAIN_STEP", 14 / 30, 0.25, 1, "Length of a piece of the ground."),
    ("TERRAIN_LENGTH", 200, 100, 500, "Pieces of the ground."),
    ("TERRAIN_GRASS", 10, 5, 15, "Pieces between changes, at the most."),
    ("TERRAIN_STARTPAD", 20, 10, 30, "Flat pieces at the start."),
    ("MOTORS_TORQUE", 80.0, 0.01, 200, "Of all joints."),
    ("SPEED_HIP", 4.0, 0.01, 15, "Of the hips."),
    ("SPEED_KNEE", 6.0, 0.01, 15, "Of the knees."),
    ("LIDAR_RANGE", 160 / 30, 0.01, 20, "How far it sees."),
    ("LEG_DOWN", -8 / 30, -2, -0.25, "Where the legs hang, below the body's middle."),
    ("LEG_W", 8 / 30, 0.25, 0.5, "Width of a leg."),
    ("LEG_H", 34 / 30, 0.25, 2, "Length of half a leg."),
    ("INITIAL_RANDOM", 5.0, 0, 50, "The push at the start, up to this."),
    ("VIEWPORT_W", 600, 400, 1000, "Width of what is seen; it scales what is observed."),
    ("VIEWPORT_H", 400, 200, 800, "Height of what is seen; it scales what is observed."),
)
_PART: dict[str, Any] = {"categoryBits": 0x0020, "maskBits": 0x001, "restitution": 0.0}
"""Parts of the walker meet the ground alone, and do not bounce."""


class CARLBipedalWalker(CARLEnv):
    """A robot with two legs on rough ground; gravity, ground, legs and motors vary."""

    env_name = "BipedalWalker-v3"
    env_class = bipedal_walker.BipedalWalker

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Nineteen features, in the units of the simulation."""
        return {
            name: ContextFeature(name=name, default=default, lower=low, upper=high, description=why)
            for name, default, low, high, why in _WALKER
        }

    def _isolate(self, unwrapped: Any) -> None:
        kind, self._names = isolated_class(bipedal_walker.BipedalWalker, bipedal_walker, {})
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        env: Any = self.unwrapped
        env.world.gravity = (context.pop("GRAVITY_X"), context.pop("GRAVITY_Y"))
        names = self._names
        names.update(context)
        # What Gymnasium makes of the constants when its module loads, and when it is made.
        scale, width, height = names["SCALE"], names["LEG_W"], names["LEG_H"]
        shape, part = names["polygonShape"], partial(names["fixtureDef"], **_PART)
        hull = [(x / scale, y / scale) for x, y in names["HULL_POLY"]]
        names["HULL_FD"] = part(shape=shape(vertices=hull), density=5.0, friction=0.1)
        for name, narrow in (("LEG_FD", 1.0), ("LOWER_FD", 0.8)):
            box = (narrow * width / 2, height / 2)
            names[name] = part(shape=shape(box=box), density=1.0)
        env.fd_polygon.friction = env.fd_edge.friction = context["FRICTION"]
