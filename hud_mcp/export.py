"""Records as files, where README had them; `hud_mcp.show.export` is their home."""

from hud_mcp.show.export import (
    ExportSummary,
    export_atif,
    export_gif,
    export_html,
    export_jsonl,
    export_parquet,
)

__all__ = [
    "ExportSummary",
    "export_atif",
    "export_gif",
    "export_html",
    "export_jsonl",
    "export_parquet",
]
