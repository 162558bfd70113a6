"""One CartPole step a call: our server over stdio, which records each, beside OpenEnv's.

Each client is a bare loop over JSON. OpenEnv's server is reached over its WebSocket and keeps no
record. The floor is a loop over JSON lines that commits a row a step:
what the disk alone leaves. The rounds take turns, so that what drifts on the machine drifts
for all; a figure is the median of its rounds, and the ratios hold where the figures do not.

    python benchmarks/one_step.py --openenv-python PATH [--rounds 5] [--steps 500]

PATH is an interpreter that has `openenv` and `gymnasium`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bare_client import BareServer
from stepping import pole_actions

PEER = Path(__file__).with_name("one_step_peer.py")
FLOOR = Path(__file__).with_name("one_step_floor.py")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--openenv-python", required=True, help="it has openenv and gymnasium")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    actions = pole_actions(options.steps)
    given = json.dumps(actions)
    others = {
        "OpenEnv": [options.openenv_python, str(PEER), given],
        "floor, one commit a step": [sys.executable, str(FLOOR), given],
    }
    theirs: dict[str, list[float]] = {name: [] for name in others}
    ours: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        server = BareServer(Path(folder), "CartPole-v1", len(actions) + 1)
        server.take(actions[:50])  # what loads with the first ones is not measured
        for _ in range(options.rounds):
            for name, command in others.items():
                done = subprocess.run(command, check=True, capture_output=True)
                theirs[name].append(float(done.stdout))
            ours.append(server.take(actions))
        server.close()
    print("| server | steps/s | of OpenEnv's | CPU ms a step |\n|---|--:|--:|--:|")
    peer = theirs["OpenEnv"]
    for name, rounds in theirs.items():
        share = median(their / took for their, took in zip(peer, rounds, strict=True))
        print(f"| {name} | {options.steps / median(rounds):,.0f} | {share:.2f} | |")
    rate = options.steps / median(took for took, _ in ours)
    share = median(their / took for their, (took, _) in zip(peer, ours, strict=True))
    used_ms = 1e3 * median(used for _, used in ours) / options.steps
    print(f"| ours | {rate:,.0f} | {share:.2f} | {used_ms:.2f} |")


if __name__ == "__main__":
    main()
