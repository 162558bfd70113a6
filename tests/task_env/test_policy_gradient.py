"""The policy gradients of `examples/` learn CartPole."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from peers import child_environment, http_server
from waiting import PATIENCE_S

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CURVE = re.compile(r"episodes +\d+  return +([\d.]+)  grade ([\d.]+)")
RANDOM_RETURN = 22  # of CartPole, where each push is a coin's toss


def curve(program: str, *arguments: str) -> tuple[list[float], list[float]]:
    """Run a program to its end; return the mean return and grade of each batch that it prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), "--batches", "3", "--seed", "0", *arguments],
        capture_output=True, text=True, check=False, timeout=4 * PATIENCE_S,
        env=child_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    rows = [(float(row), float(grade)) for row, grade in CURVE.findall(done.stdout)]
    assert len(rows) == 3
    return [row for row, _ in rows], [grade for _, grade in rows]


def learnt(returns: list[float], grades: list[float]) -> bool:
    """Whether the first batch is a random policy's, and the last one's returns are far above."""
    begins = returns[0] < 2 * RANDOM_RETURN
    return begins and returns[-1] >= 4 * RANDOM_RETURN and grades[-1] >= 4 * grades[0]


def test_a_policy_gradient_learns_through_the_environment() -> None:
    """The returns of CartPole through `hud_mcp/Task-v0` are four times a random policy's."""
    assert learnt(*curve("policy_gradient_task_env.py"))


def test_a_policy_gradient_learns_through_the_client(tmp_path: Path) -> None:
    """The returns of CartPole over HTTP, with a token, are four times a random policy's."""
    token = "a-token-of-thirty-two-characters"
    with http_server(tmp_path / "server", ["gym:CartPole-v1"], "--token", token) as server:
        printed = curve("policy_gradient_client.py", "--url", server.url, "--token", token)
    assert learnt(*printed)
