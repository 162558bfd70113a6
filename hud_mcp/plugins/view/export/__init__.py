"""Jobs and trajectories as files for other programs, and for people."""

from hud_mcp.plugins.view.export.atif import export_atif
from hud_mcp.plugins.view.export.exporting import Export, ExportSummary, Option, export_record
from hud_mcp.plugins.view.export.formats import export_gif, export_html, export_jsonl
from hud_mcp.plugins.view.export.otel import export_otel
from hud_mcp.plugins.view.export.tables import export_parquet

__all__ = [
    "Export",
    "ExportSummary",
    "Option",
    "export_atif",
    "export_gif",
    "export_html",
    "export_jsonl",
    "export_otel",
    "export_parquet",
    "export_record",
]
