"""Jobs and trajectories as files for other programs, and for people.

One module a format: `jsonl.py` (everything that is recorded), `parquet.py` (tables for
training), `atif.py` (the Agent Trajectory Interchange Format), `html.py` (the viewer's page
as one file), `gif.py` (a moving picture), `otel.py` (spans for OpenTelemetry). `selection.py`
says what is exported, `pictures.py` carries screenshots over, `files.py` writes whole files or
none, `summary.py` counts.
"""

from hud_mcp.plugins.view.export.atif import export_atif
from hud_mcp.plugins.view.export.gif import export_gif
from hud_mcp.plugins.view.export.html import export_html
from hud_mcp.plugins.view.export.jsonl import export_jsonl
from hud_mcp.plugins.view.export.otel import export_otel
from hud_mcp.plugins.view.export.parquet import export_parquet
from hud_mcp.plugins.view.export.summary import ExportSummary

__all__ = [
    "ExportSummary",
    "export_atif",
    "export_gif",
    "export_html",
    "export_jsonl",
    "export_otel",
    "export_parquet",
]
