"""How pages are solved, through the actions of any agent, by their names."""

import miniwob_click_oracles  # noqa: F401  # declares solutions
import miniwob_drag_oracles  # noqa: F401  # the same
import miniwob_form_oracles  # noqa: F401  # the same
from miniwob_steps import SOLUTIONS as ORACLES

__all__ = ["ORACLES"]
