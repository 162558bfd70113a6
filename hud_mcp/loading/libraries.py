"""What importing a public set needs, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.loading.importers.files import Cached, dataset_file
    from hud_mcp.loading.importers.imported import import_published, imported_file

    parquet: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.loading.importers.files:Cached",
        "hud_mcp.loading.importers.files:dataset_file",
        "hud_mcp.loading.importers.imported:import_published",
        "hud_mcp.loading.importers.imported:imported_file",
        "pyarrow.parquet",
    )

__all__ = [
    "Cached",
    "dataset_file",
    "import_published",
    "imported_file",
    "parquet",
]
