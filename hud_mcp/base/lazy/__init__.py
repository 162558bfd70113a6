"""Names that load when they are first used, so that a start does not wait for what it may not need.

`names.py` makes a module such a seam; `libraries.py` is the seam of other people's packages that
several rooms use. A room with heavy parts of its own has its own: `store/sql/`, `cli/surfaces.py`,
and each `libraries.py` in a room.
"""

from hud_mcp.base.lazy.names import lazy_names

__all__ = ["lazy_names"]
