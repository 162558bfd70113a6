"""Which tests are of a lane without saying so themselves.

`make test` holds one representative of each thing; what it leaves out, a lane runs.
"""

from zlib import crc32

import pytest

__all__ = ["pytest_collection_modifyitems"]

LANES = ("long", "peers", "prove", "scale", "stress")

ELSEWHERE = {"hud_python", "fastmcp_python", "peers_python"}
"""The fixtures that make an environment of its own, which pip fills from the network."""


ROTATED = {"url", "way"}
"""Fixtures with a parameter for each database, or for each kind of client and transport.

A test that has one runs over one of them in `make test`, another test over another, and `make long`
runs the others. Which one it is follows from the test's name, so that a test that failed is there
when it runs again alone.
"""

SLOW = (
    "environments/test_own_sets.py",
    "docs/test_blocks.py",
    "rollout/test_moving_runs.py",
    "interaction/test_replicas_forwarding.py",
    "environments/test_quickstart.py",
    "agents/test_model_eval.py",
    "agents/test_model_computer.py",
    "checking/test_checked_sets.py",
    "environments/test_reasoning_gym.py",
    "rollout/test_evaluate.py",
    "rollout/test_agent_process.py",
    "interaction/test_what_agents_may.py",
    "interaction/test_restarts.py",
    "environments/test_gym.py",
    "task_env/test_task_env.py",
    "graders/test_odd_outputs.py",
    "gymnasium/test_gymnasium_opengl.py",
)
"""Files of few tests that take long; whoever begins one last holds up the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give to lanes what needs another Python, what stands for one, and what is left out."""
    sampled: dict[str, list[pytest.Item]] = {}
    rotated: dict[str, list[pytest.Item]] = {}
    for item in items:
        if ELSEWHERE & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.peers)
        if item.get_closest_marker("sample") is not None:
            item.add_marker(pytest.mark.long)
        of_a_lane = any(item.get_closest_marker(lane) for lane in LANES)
        if item.get_closest_marker("sampled") is not None and not of_a_lane:
            sampled.setdefault(item.nodeid.partition("[")[0], []).append(item)
        elif ROTATED & set(_indices(item)) and not of_a_lane:
            rotated.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in sampled.values():
        _sample(cases)
    for name, cases in rotated.items():
        _rotate(name, cases)
    items.sort(key=lambda item: not item.path.as_posix().endswith(SLOW))  # others stay in order


def _indices(item: pytest.Item) -> dict[str, int]:
    """The number of each parameter's value in a test."""
    return getattr(getattr(item, "callspec", None), "indices", {})


def _rotate(name: str, cases: list[pytest.Item]) -> None:
    """Leave each row of a test's own table to `make test` once, over one of them."""
    variants: dict[tuple[int, ...], list[pytest.Item]] = {}
    for item in cases:
        indices = _indices(item)
        over = tuple(indices[each] for each in sorted(ROTATED & set(indices)))
        variants.setdefault(over, []).append(item)
    for number, row in enumerate(zip(*variants.values(), strict=False)):
        _keep(list(row), {crc32(f"{name} {number}".encode()) % len(row)})


def _sample(cases: list[pytest.Item]) -> None:
    """Leave so many cases to `make test`, spread over all of them, and others to `make long`."""
    marker = cases[0].get_closest_marker("sampled")
    count = marker.args[0] if marker else len(cases)
    _keep(cases, {len(cases) * each // count for each in range(count)})


def _keep(cases: list[pytest.Item], kept: set[int]) -> None:
    """Leave these cases to `make test`, and others to `make long`."""
    for index, item in enumerate(cases):
        if index not in kept:
            item.add_marker(pytest.mark.long)
