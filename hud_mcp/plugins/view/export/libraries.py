"""What exports use: Pillow, pyarrow, data frames and OpenTelemetry, each when first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.export.film import save_film

    pandas: Any
    polars: Any
    pyarrow: Any
    parquet: Any
    ALWAYS_ON: Any
    Context: Any
    OTLPSpanExporter: Any
    Resource: Any
    SpanExportResult: Any
    SpanKind: Any
    SpanProcessor: Any
    StatusCode: Any
    TracerProvider: Any
    set_span_in_context: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.view.export.film:save_film",
        "opentelemetry.context:Context",
        "opentelemetry.exporter.otlp.proto.http.trace_exporter:OTLPSpanExporter",
        "opentelemetry.sdk.resources:Resource",
        "opentelemetry.sdk.trace:SpanProcessor",
        "opentelemetry.sdk.trace:TracerProvider",
        "opentelemetry.sdk.trace.export:SpanExportResult",
        "opentelemetry.sdk.trace.sampling:ALWAYS_ON",
        "opentelemetry.trace:SpanKind",
        "opentelemetry.trace:StatusCode",
        "opentelemetry.trace:set_span_in_context",
        "pandas",
        "polars",
        "pyarrow",
        "pyarrow.parquet",
    )

__all__ = [
    "ALWAYS_ON",
    "Context",
    "OTLPSpanExporter",
    "Resource",
    "SpanExportResult",
    "SpanKind",
    "SpanProcessor",
    "StatusCode",
    "TracerProvider",
    "pandas",
    "parquet",
    "polars",
    "pyarrow",
    "save_film",
    "set_span_in_context",
]
