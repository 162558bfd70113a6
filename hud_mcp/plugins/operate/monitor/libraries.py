"""What operators' tools use: the Prometheus client and OpenTelemetry, each when first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    CollectorRegistry: Any
    Counter: Any
    Gauge: Any
    GaugeMetricFamily: Any
    Histogram: Any
    PlatformCollector: Any
    ProcessCollector: Any
    choose_encoder: Any
    disable_created_metrics: Any
    BatchSpanProcessor: Any
    OTLPSpanExporter: Any
    Resource: Any
    StatusCode: Any
    TracerProvider: Any
    attach: Any
    detach: Any
    get_current: Any
    get_current_span: Any
    set_span_in_context: Any
    set_tracer_provider: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "opentelemetry.sdk.trace.export:BatchSpanProcessor",
        "opentelemetry.exporter.otlp.proto.http.trace_exporter:OTLPSpanExporter",
        "opentelemetry.sdk.resources:Resource",
        "opentelemetry.trace:StatusCode",
        "opentelemetry.sdk.trace:TracerProvider",
        "opentelemetry.context:attach",
        "opentelemetry.context:detach",
        "opentelemetry.context:get_current",
        "opentelemetry.trace:get_current_span",
        "opentelemetry.trace:set_span_in_context",
        "opentelemetry.trace:set_tracer_provider",
        "prometheus_client:CollectorRegistry",
        "prometheus_client:Counter",
        "prometheus_client:Gauge",
        "prometheus_client:Histogram",
        "prometheus_client:PlatformCollector",
        "prometheus_client:ProcessCollector",
        "prometheus_client:disable_created_metrics",
        "prometheus_client.core:GaugeMetricFamily",
        "prometheus_client.exposition:choose_encoder",
    )

__all__ = [
    "BatchSpanProcessor",
    "CollectorRegistry",
    "Counter",
    "Gauge",
    "GaugeMetricFamily",
    "Histogram",
    "OTLPSpanExporter",
    "PlatformCollector",
    "ProcessCollector",
    "Resource",
    "StatusCode",
    "TracerProvider",
    "attach",
    "choose_encoder",
    "detach",
    "disable_created_metrics",
    "get_current",
    "get_current_span",
    "set_span_in_context",
    "set_tracer_provider",
]
