"""The Prometheus client and OpenTelemetry. Each loads when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    CollectorRegistry: Any = "prometheus_client:CollectorRegistry"
    Counter: Any = "prometheus_client:Counter"
    Gauge: Any = "prometheus_client:Gauge"
    GaugeMetricFamily: Any = "prometheus_client.core:GaugeMetricFamily"
    Histogram: Any = "prometheus_client:Histogram"
    PlatformCollector: Any = "prometheus_client:PlatformCollector"
    ProcessCollector: Any = "prometheus_client:ProcessCollector"
    choose_encoder: Any = "prometheus_client.exposition:choose_encoder"
    disable_created_metrics: Any = "prometheus_client:disable_created_metrics"
    BatchSpanProcessor: Any = "opentelemetry.sdk.trace.export:BatchSpanProcessor"
    OTLPSpanExporter: Any = "opentelemetry.exporter.otlp.proto.http.trace_exporter:OTLPSpanExporter"
    Resource: Any = "opentelemetry.sdk.resources:Resource"
    StatusCode: Any = "opentelemetry.trace:StatusCode"
    TracerProvider: Any = "opentelemetry.sdk.trace:TracerProvider"
    attach: Any = "opentelemetry.context:attach"
    detach: Any = "opentelemetry.context:detach"
    get_current: Any = "opentelemetry.context:get_current"
    get_current_span: Any = "opentelemetry.trace:get_current_span"
    set_span_in_context: Any = "opentelemetry.trace:set_span_in_context"
    set_tracer_provider: Any = "opentelemetry.trace:set_tracer_provider"
else:
    __getattr__ = lazy_names(__name__)
