"""The official conformance suites: what they ask of any server, in both eras.

Most of their scenarios call tools and read resources of one example server by name. What can be
declared is in `environments/suite.py`; what no environment of ours has is listed here.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from filelock import FileLock
from other_python import ROOT
from peers import BOARD, ENVIRONMENTS, HttpServer, http_server

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

SUITE = str(ENVIRONMENTS / "suite.py")
TASKS = str(ENVIRONMENTS / "board_tasks.jsonl")
NODE = "22.23.3"
"""The suites need a newer one than many systems have."""
BOUND_S = 240


@dataclass(frozen=True)
class Suite:
    """A release of the suite, for an era.

    Attributes:
        version: Its own.
        spec: The protocol's, which it is asked for; None where it knows one alone.
        scenarios: Those that apply to any server.
    """

    version: str
    spec: str | None
    scenarios: tuple[str, ...]


SUITES = {
    "2025-11-25": Suite(
        "0.1.16",
        None,
        (
            "server-initialize", "ping", "completion-complete", "tools-list", "resources-list",
            "prompts-list", "resources-subscribe", "resources-unsubscribe", "server-sse-polling",
            "server-sse-multiple-streams", "dns-rebinding-protection", "prompts-get-simple",
            "prompts-get-with-args",
        ),
    ),
    "2026-07-28": Suite(
        "0.2.0-alpha.12",
        "2026-07-28",
        (
            "server-stateless", "caching", "http-header-validation",
            "sep-2164-resource-not-found", "completion-complete", "tools-list", "resources-list",
            "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection",
            "input-required-result-unsupported-methods", "prompts-get-simple",
            "prompts-get-with-args",
        ),
    ),
}  # fmt: skip

NOT_OURS = "Not testable"
"""How the suite begins what it says of a diagnostic tool that a server does not have."""


def folder_of(suite: Suite) -> Path:
    """Where a release is installed, once."""
    folder = ROOT / f".venv-conformance-{suite.version}"
    if shutil.which("npm") is None:
        pytest.skip("not on this machine: npm, which installs the conformance suite")
    with FileLock(f"{folder}.lock"):
        if not (folder / "node_modules" / "node" / "bin" / "node").exists():
            folder.mkdir(exist_ok=True)
            wanted = [f"@modelcontextprotocol/conformance@{suite.version}", f"node@{NODE}"]
            install = ["npm", "install", "--silent", "--no-audit", "--no-fund", *wanted]
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"NOT TESTED with the conformance suite: npm says {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """What the scenarios are played against."""
    folder = tmp_path_factory.mktemp("conformance")
    with http_server(folder, (BOARD, SUITE, "letter_count"), "--taskset", TASKS) as running:
        yield running


@pytest.mark.parametrize("era", SUITES)
async def test_no_scenario_that_applies_to_any_server_fails(
    era: str, server: HttpServer, tmp_path: Path
) -> None:
    """Every check is passed, or is of a tool that only the suite's own example has."""
    await play_scenarios(SUITES[era], server.url, tmp_path)


async def play_scenarios(suite: Suite, url: str, tmp_path: Path) -> None:
    """Play the scenarios of a suite against a server; fail if one of them does."""
    folder = await anyio.to_thread.run_sync(folder_of, suite)
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance"
    known = json.loads((program / "package.json").read_text())
    assert known["version"] == suite.version
    node = folder / "node_modules" / "node" / "bin" / "node"
    environment = {k: v for k, v in os.environ.items() if k != "NODE_OPTIONS"}
    failed: dict[str, list[str]] = {}
    passed: dict[str, int] = {}
    with anyio.fail_after(BOUND_S):
        for scenario in suite.scenarios:
            out = tmp_path / scenario
            spec = [] if suite.spec is None else ["--spec-version", suite.spec]
            command = [str(node), str(program / "dist" / "index.js"), "server", "--url", url]
            command += ["--scenario", scenario, *spec, "-o", str(out)]
            done = await anyio.run_process(command, check=False, env=environment)
            checks = checks_in(out)
            assert checks, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
            passed[scenario] = sum(each["status"] == "SUCCESS" for each in checks)
            failed[scenario] = [
                f"{each['id']}: {each.get('errorMessage')}"
                for each in checks
                if each["status"] == "FAILURE"
                and not str(each.get("errorMessage")).startswith(NOT_OURS)
            ]
    assert {name: found for name, found in failed.items() if found} == {}
    assert sum(passed.values()) >= len(suite.scenarios), passed


def checks_in(out: Path) -> list[dict[str, Any]]:
    """What a run of a scenario has found."""
    files = list(out.rglob("checks.json"))
    return [each for file in files for each in json.loads(file.read_text())]
