"""What MuJoCo computes from a model when it loads, computed anew after a context changed it.

Masses, for instance, decide how stiff a contact is. MuJoCo's documentation asks for
`mj_setConst` after such a change. Needs the extra `mujoco`.
"""

# MuJoCo's bindings declare no types for their structs:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false, reportMissingTypeStubs=false

import copy
from typing import Any

import mujoco
import numpy as np

__all__ = ["Constants", "constants_of"]

_STATISTICS = ("center", "extent", "meaninertia", "meanmass", "meansize")


class Constants:
    """The constants of one model.

    Args:
        model: An `MjModel`; what its file says of its statistics stays.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._data: Any = mujoco.MjData(model)
        computed: Any = copy.deepcopy(model)
        mujoco.mj_setConst(computed, mujoco.MjData(computed))
        self._given = {
            name: copy.copy(value)
            for name in _STATISTICS
            if not np.array_equal(value := getattr(model.stat, name), getattr(computed.stat, name))
        }

    def update(self) -> None:
        """Compute the constants from what the model holds now."""
        mujoco.mj_setConst(self._model, self._data)
        for name, value in self._given.items():
            setattr(self._model.stat, name, value)


def constants_of(env: Any) -> Constants | None:
    """The constants of an environment's model; None where it has none of MuJoCo's."""
    model = getattr(env, "model", None)
    return Constants(model) if isinstance(model, mujoco.MjModel) else None
