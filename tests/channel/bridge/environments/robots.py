"""A HUD environment with a robot: a cart on a plane, seen by two cameras."""

# ruff: noqa: ANN001, ANN201, ANN202, D102, D103, RUF100  # as authors of HUD environments write them

import json
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from hud import Environment

CONTRACT = {
    "robot_type": "cart",
    "control_rate": 5,
    "features": {
        "position": {"role": "observation", "names": ["east", "north"]},
        "front": {"role": "observation", "type": "rgb"},
        "top": {"role": "observation", "type": "rgb"},
        "drive": {
            "role": "action",
            "names": ["east", "north"],
            "limits": {"min": [-1, -1], "max": [1, 1]},
        },
    },
}


class Cart(gymnasium.Env):
    """It ends at ten to the east; to the far south, it breaks."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    observation_space = gymnasium.spaces.Dict()

    def _seen(self):
        front = np.full((48, 64, 3), (200, 0, 0), np.uint8)
        top = np.full((32, 32, 3), (0, 0, 200), np.uint8)
        return {"position": np.array(self.at, np.float32), "front": front, "top": top}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = [0.0, float((options or {}).get("north", 0))]
        return self._seen(), {}

    def step(self, action):
        self.at = [a + float(d) for a, d in zip(self.at, action, strict=True)]
        if self.at[1] < -2:
            raise ValueError("a wheel came off")
        return self._seen(), 0.5, self.at[0] >= 10, False, {"success": self.at[0] >= 10}


def make():
    return Cart()


file = Path(tempfile.mkdtemp()) / "contract.json"
file.write_text(json.dumps(CONTRACT))
env = Environment("robots")
sim = env.gym(make, contract=str(file))


@env.template()
async def drive(north: int = 0):
    """Drive ten to the east."""
    episode = await sim.reset(north=north)
    yield {"prompt": "Go ten to the east.", "bindings": {"robot": {"token": episode["token"]}}}
    yield await sim.result()


@env.template()
async def still():
    """Begin nothing."""
    yield "There is no episode."
    yield 1.0
