"""Pillow, pyarrow, data frames and OpenTelemetry; each loads when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.export.film import save_film as save_film

    pandas: Any = "pandas"
    polars: Any = "polars"
    pyarrow: Any = "pyarrow"
    parquet: Any = "pyarrow.parquet"
    ALWAYS_ON: Any = "opentelemetry.sdk.trace.sampling:ALWAYS_ON"
    Context: Any = "opentelemetry.context:Context"
    OTLPSpanExporter: Any = "opentelemetry.exporter.otlp.proto.http.trace_exporter:OTLPSpanExporter"
    Resource: Any = "opentelemetry.sdk.resources:Resource"
    SpanExportResult: Any = "opentelemetry.sdk.trace.export:SpanExportResult"
    SpanKind: Any = "opentelemetry.trace:SpanKind"
    SpanProcessor: Any = "opentelemetry.sdk.trace:SpanProcessor"
    StatusCode: Any = "opentelemetry.trace:StatusCode"
    TracerProvider: Any = "opentelemetry.sdk.trace:TracerProvider"
    set_span_in_context: Any = "opentelemetry.trace:set_span_in_context"
else:
    __getattr__ = lazy_names(__name__)
