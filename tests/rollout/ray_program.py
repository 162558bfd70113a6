"""A job on a Ray cluster of three nodes, one of which is killed in the middle; a program.

    python ray_program.py ROWS STORE KIND

KIND is `alike`, where any node but the first is killed; or `scarce`, where the node is killed that
alone has room for all sessions of the browser's server. It prints one line of JSON: the rewards,
what was told, and what was killed.
"""

import json
import random
import sys
import threading
from typing import Any

import anyio
from ray.cluster_utils import Cluster
from scaled import works

from hud_mcp import JobProgress, Store, evaluate

NODE: dict[str, Any] = {
    "num_cpus": 1,
    "object_store_memory": 80_000_000,
    "resources": {"browser": 1},
}


def make_cluster(kind: str) -> tuple[Cluster, list[Any], int]:
    """Make it.

    Returns:
        It, the nodes one of which is killed, and how many runs are under way at once: a server has
        a third of them.
    """
    head, others, at_once = {**NODE, "include_dashboard": False}, [NODE, NODE], 12
    if kind == "scarce":
        # Eight sessions of a browser take two processors, and one takes a quarter of one.
        head, others, at_once = {**head, "resources": {}}, [{**NODE, "num_cpus": 3}, NODE], 24
    cluster = Cluster(initialize_head=True, head_node_args=head)
    added = [cluster.add_node(**node) for node in others]
    cluster.wait_for_nodes()
    return cluster, added if kind == "alike" else added[:1], at_once


async def main() -> None:
    """Make the cluster, run the job, and print what became of it."""
    rows, store, kind = sys.argv[1:4]
    cluster, victims, at_once = make_cluster(kind)
    told: list[str] = []
    killing: list[threading.Thread] = []

    def watch(progress: JobProgress) -> None:
        if progress.event in ("server_died", "note"):
            told.append(progress.text)
        if not killing and progress.ended >= at * progress.total:
            victim = random.choice(victims)
            killing.append(
                threading.Thread(target=cluster.remove_node, args=(victim,), kwargs=kill)
            )
            killing[0].start()

    at, kill = random.uniform(0.3, 0.6), {"allow_graceful": False}
    try:
        job = await evaluate(
            rows, works, ray=cluster.address, store=store, max_concurrent=at_once, on_progress=watch
        )
        opened = Store(store)
        graded = [t for t in (await opened.load_job(job.id))[1] if t.reward is not None]
        await opened.close()
    finally:
        for each in killing:
            each.join()
        cluster.shutdown()
    print(
        json.dumps(
            {
                "rewards": {run.task.id: run.reward for run in job.runs},
                "graded": [t.task.id for t in graded],
                "told": told,
                "killed": len(killing),
                "workers": job.metadata["options"]["workers"],
            }
        )
    )


if __name__ == "__main__":
    anyio.run(main)
