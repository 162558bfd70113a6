"""What importing a public set needs, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.sets.files import Cached, dataset_file
    from hud_mcp.plugins.sets.imported import import_published, imported_file

    parquet: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.sets.files:Cached",
        "hud_mcp.plugins.sets.files:dataset_file",
        "hud_mcp.plugins.sets.imported:import_published",
        "hud_mcp.plugins.sets.imported:imported_file",
        "pyarrow.parquet",
    )

__all__ = [
    "Cached",
    "dataset_file",
    "import_published",
    "imported_file",
    "parquet",
]
