"""A server's own addresses, read as a load balancer and as Prometheus do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from peers import HttpServer
from prometheus_client.parser import text_string_to_metric_families
from waiting import PATIENCE_S, wait_until

_ADDRESS = re.compile(r"metrics are at (http://\S+?)/metrics")


@dataclass(frozen=True)
class Scrape:
    """What Prometheus reads of one answer."""

    text: str
    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float | None:
        """One sample; None where there is none."""
        return self.samples.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples that have these labels."""
        wanted = set(labels.items())
        return sum(v for (n, given), v in self.samples.items() if n == name and wanted <= given)


def read_scrape(text: str) -> Scrape:
    """Parse an answer by Prometheus's own rules."""
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return Scrape(text, found)


def own_address(server: HttpServer) -> str:
    """Where a server's own listener for operators is, as it has logged."""
    return wait_until(lambda: _ADDRESS.search(server.logged()), said=server.logged)[1]


def get(url: str, **headers: str) -> httpx.Response:
    """One request, as a program on this machine makes it."""
    return httpx.get(url, headers=headers, timeout=PATIENCE_S, trust_env=False)


def scrape(base: str, **headers: str) -> Scrape:
    """What is told at `/metrics` now."""
    answer = get(f"{base}/metrics", **headers)
    assert answer.status_code == 200, answer.text
    return read_scrape(answer.text)
