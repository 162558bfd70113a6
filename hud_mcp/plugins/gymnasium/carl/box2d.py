"""Gymnasium's environments over Box2D with CARL's features; they need the extra `box2d`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from hud_mcp.plugins.gymnasium.carl.environment import DeclaredEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, load_box2d, set_class
from hud_mcp.values.context import ContextFeature

lunar_lander: Any = load_box2d("lunar_lander")
bipedal_walker: Any = load_box2d("bipedal_walker")
car_dynamics: Any = load_box2d("car_dynamics")
car_racing: Any = load_box2d("car_racing")


class _Gravity:
    """Box2D's module to an environment: its worlds have the gravity of the context."""

    def __init__(self, box2d: Any) -> None:
        self._box2d = box2d
        self.x = 0.0
        self.y = -10.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box2d, name)

    def b2World(self, **options: Any) -> Any:  # noqa: N802  # Box2D's name
        """Return a new world with this gravity."""
        return self._box2d.b2World(**{**options, "gravity": (self.x, self.y)})


class CARLLunarLander(DeclaredEnv):
    """A lander over the moon; gravity, its engines, its legs and its size vary."""

    env_name = "LunarLander-v3"
    env_class = lunar_lander.LunarLander
    rows = (  # Lengths are pixels of the drawing, `SCALE` of them a unit.
        ("FPS", 50.0, 1, 500, "States a second of simulated time."),
        ("SCALE", 30.0, 1, 100, "Pixels of the drawing for a unit of length: larger is slower."),
        ("MAIN_ENGINE_POWER", 13.0, 0, 50, "Of the main engine."),
        ("SIDE_ENGINE_POWER", 0.6, 0, 50, "Of the side engines."),
        ("INITIAL_RANDOM", 1000.0, 0, 2000, "The push at the start, up to this."),
        ("GRAVITY_X", 0.0, -20, 20, "Gravity to the right."),
        ("GRAVITY_Y", -10.0, -20, -0.01, "Gravity upwards, so it is negative."),
        ("LEG_AWAY", 20.0, 0, 50, "How far from the body the legs are."),
        ("LEG_DOWN", 18.0, 0, 50, "How far below the body the legs are."),
        ("LEG_W", 2.0, 1, 10, "Width of a leg."),
        ("LEG_H", 8.0, 1, 20, "Length of a leg."),
        ("LEG_SPRING_TORQUE", 40.0, 0, 100, "What spreads the legs."),
        ("SIDE_ENGINE_HEIGHT", 14.0, 1, 20, "Where the side engines push."),
        ("SIDE_ENGINE_AWAY", 12.0, 1, 20, "Where the side engines push."),
        ("VIEWPORT_W", 600, 400, 1000, "Width of what is seen; what leaves it is lost."),
        ("VIEWPORT_H", 400, 200, 800, "Height of what is seen; the lander starts at its top."),
    )

    def _isolate(self, unwrapped: Any) -> None:
        self._gravity = _Gravity(vars(lunar_lander)["Box2D"])
        kind, self._names = isolated_class(
            lunar_lander.LunarLander, lunar_lander, {"Box2D": self._gravity}
        )
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        self._gravity.x, self._gravity.y = context.pop("GRAVITY_X"), context.pop("GRAVITY_Y")
        env: Any = self.unwrapped
        env.gravity = self._gravity.y
        env.world.gravity = (self._gravity.x, self._gravity.y)
        self._names.update(context)


_PART: dict[str, Any] = {"categoryBits": 0x0020, "maskBits": 0x001, "restitution": 0.0}
"""Parts of the walker meet the ground alone, and do not bounce."""


class CARLBipedalWalker(DeclaredEnv):
    """A robot with two legs on rough ground; gravity, ground, legs and motors vary."""

    env_name = "BipedalWalker-v3"
    env_class = bipedal_walker.BipedalWalker
    rows = (  # In the units of the simulation.
        ("FPS", 50.0, 1, 500, "States a second of simulated time."),
        ("SCALE", 30.0, 1, 100, "Pixels of the drawing for a unit of length: larger is slower."),
        ("GRAVITY_X", 0.0, -20, 20, "Gravity to the right."),
        ("GRAVITY_Y", -10.0, -20, -0.01, "Gravity upwards, so it is negative."),
        ("FRICTION", 2.5, 0, 10, "Of the ground."),
        # Nothing depends on where zero is, so that CARL's TERRAIN_HEIGHT is left out.
        ("TERRAIN_STEP", 14 / 30, 0.25, 1, "Length of a piece of the ground."),
        ("TERRAIN_LENGTH", 200, 100, 500, "Pieces of the ground."),
        ("TERRAIN_GRASS", 10, 5, 15, "Pieces between changes, at the most."),
        # A whole number, which the terrain's generator counts down to zero.
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


_OF_CAR = ("ENGINE_POWER", "FRICTION_LIMIT", "WHEEL_MOMENT_OF_INERTIA", "WHEEL_R", "WHEEL_W")
"""The features that are constants of the car; the others are the track's."""

_DRIVE = {"rear": (2, 3), "front": (0, 1), "all": (0, 1, 2, 3)}


class CARLCarRacing(DeclaredEnv):
    """A car on a track, seen from above; the car and the track vary.

    CARL draws one of thirty vehicles (`VEHICLE_ID`); these features say what differs.
    """

    env_name = "CarRacing-v3"
    env_class = car_racing.CarRacing
    rows = (  # In the units of the simulation.
        ("ENGINE_POWER", 40_000.0, 4_000, 200_000, "Of the engine."),
        ("FRICTION_LIMIT", 400.0, 40, 2_000, "Grip of a wheel on the road; 0.6 of it on grass."),
        ("WHEEL_MOMENT_OF_INERTIA", 1.6, 0.4, 16, "How slowly wheels take up speed."),
        ("WHEEL_R", 27, 10, 60, "Radius of a wheel."),
        ("WHEEL_W", 14, 5, 30, "Width of a wheel."),
        ("FPS", 50.0, 10, 500, "States a second of simulated time."),
        ("TRACK_RAD", 150.0, 100, 200, "Radius of the track."),
        ("TRACK_WIDTH", 40 / 6, 3, 15, "Half the road's width."),
        ("TRACK_TURN_RATE", 0.31, 0.2, 0.6, "How sharply the road turns."),
        ("TRACK_DETAIL_STEP", 3.5, 2.5, 6, "Length of a piece of the road."),
    )

    @classmethod
    def get_context_features(cls) -> Mapping[str, ContextFeature]:
        """Return eleven features, in the units of the simulation."""
        drive = ContextFeature(
            name="DRIVE", default="rear", choices=tuple(_DRIVE), description="What is driven."
        )
        return {**super().get_context_features(), "DRIVE": drive}

    def _isolate(self, unwrapped: Any) -> None:
        car, self._car_names = isolated_class(car_dynamics.Car, car_dynamics, {})
        self._car = car
        car.gas = _gas  # type: ignore[attr-defined]
        kind, self._names = isolated_class(car_racing.CarRacing, car_racing, {"Car": car})
        set_class(unwrapped, kind)

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        self._car.driven = _DRIVE[context.pop("DRIVE")]
        self._car_names.update({name: context.pop(name) for name in _OF_CAR})
        self._names.update(context)


def _gas(car: Any, gas: float) -> None:
    """Drive the wheels that are driven: power comes slowly and goes at once."""
    wanted = np.clip(gas, 0, 1)
    for place in car.driven:
        wheel = car.wheels[place]
        wheel.gas += min(wanted - wheel.gas, 0.1)
