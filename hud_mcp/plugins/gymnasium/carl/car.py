"""CarRacing with physical features, where CARL draws one of thirty vehicles (`VEHICLE_ID`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hud_mcp.plugins.gymnasium.carl.environment import DeclaredEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, load_box2d, set_class
from hud_mcp.values.context import ContextFeature

car_dynamics: Any = load_box2d("car_dynamics")
car_racing: Any = load_box2d("car_racing")

_CAR = (
    ("ENGINE_POWER", 40_000.0, 4_000, 200_000, "Of the engine."),
    ("FRICTION_LIMIT", 400.0, 40, 2_000, "Grip of a wheel on the road; 0.6 of it on grass."),
    ("WHEEL_MOMENT_OF_INERTIA", 1.6, 0.4, 16, "How slowly wheels take up speed."),
    ("WHEEL_R", 27, 10, 60, "Radius of a wheel."),
    ("WHEEL_W", 14, 5, 30, "Width of a wheel."),
)
_TRACK = (
    ("FPS", 50.0, 10, 500, "States a second of simulated time."),
    ("TRACK_RAD", 150.0, 100, 200, "Radius of the track."),
    ("TRACK_WIDTH", 40 / 6, 3, 15, "Half the road's width."),
    ("TRACK_TURN_RATE", 0.31, 0.2, 0.6, "How sharply the road turns."),
    ("TRACK_DETAIL_STEP", 3.5, 2.5, 6, "Length of a piece of the road."),
)
_DRIVE = {"rear": (2, 3), "front": (0, 1), "all": (0, 1, 2, 3)}


class CARLCarRacing(DeclaredEnv):
    """A car on a track, seen from above; the car and the track vary."""

    env_name = "CarRacing-v3"
    env_class = car_racing.CarRacing

    rows = (*_CAR, *_TRACK)

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
        self._car_names.update({name: context.pop(name) for name, *_ in _CAR})
        self._names.update(context)


def _gas(car: Any, gas: float) -> None:
    """Drive the wheels that are driven: power comes slowly and goes at once."""
    wanted = np.clip(gas, 0, 1)
    for place in car.driven:
        wheel = car.wheels[place]
        wheel.gas += min(wanted - wheel.gas, 0.1)
