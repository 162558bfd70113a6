"""What exports use that loads Pillow and pyarrow, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.show.export.film import save_film

    pyarrow: Any
    parquet: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.show.export.film:save_film",
        "pyarrow",
        "pyarrow.parquet",
    )

__all__ = [
    "parquet",
    "pyarrow",
    "save_film",
]
