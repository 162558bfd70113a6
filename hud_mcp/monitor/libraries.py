"""What operators' tools use: the Prometheus client and OpenTelemetry, each when first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.lazy import lazy_names

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
else:
    __getattr__ = lazy_names(
        __name__,
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
    "CollectorRegistry",
    "Counter",
    "Gauge",
    "GaugeMetricFamily",
    "Histogram",
    "PlatformCollector",
    "ProcessCollector",
    "choose_encoder",
    "disable_created_metrics",
]
