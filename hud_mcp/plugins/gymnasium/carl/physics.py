"""The constants that MuJoCo computes from a model, such as stiffness by masses, made anew."""

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
    """The constants of one `MjModel`; the statistics that its file sets stay."""

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
        """Compute the constants from the model's present values."""
        # MuJoCo's documentation asks for it: masses decide, for instance, how stiff a contact is.
        mujoco.mj_setConst(self._model, self._data)
        for name, value in self._given.items():
            setattr(self._model.stat, name, value)


def constants_of(env: Any) -> Constants | None:
    """Return the constants of an environment's model; None without a model of MuJoCo's."""
    model = getattr(env, "model", None)
    return Constants(model) if isinstance(model, mujoco.MjModel) else None
