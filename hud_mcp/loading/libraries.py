"""What importing a public set needs, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.sets.files import Cached as Cached
    from hud_mcp.plugins.sets.files import dataset_file as dataset_file
    from hud_mcp.plugins.sets.imported import import_published as import_published
    from hud_mcp.plugins.sets.imported import imported_file as imported_file

    parquet: Any = "pyarrow.parquet"
else:
    __getattr__ = lazy_names(__name__)
