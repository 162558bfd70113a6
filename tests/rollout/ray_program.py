"""A job on a Ray cluster of three nodes, one of which is killed in the middle; a program.

    python ray_program.py ROWS STORE LETTERS PAGES

It prints one line of JSON: the rewards, what was told, and what was killed.
"""

import json
import random
import sys
import threading

import anyio
from ray.cluster_utils import Cluster
from scaled import works

from hud_mcp import JobProgress, Store, evaluate

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "resources": {"browser": 1}}


async def main() -> None:
    """Make the cluster, run the job, and print what became of it."""
    rows, store = sys.argv[1:3]
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    others = [cluster.add_node(**NODE) for _ in range(2)]
    cluster.wait_for_nodes()
    told: list[str] = []
    killing: list[threading.Thread] = []

    def watch(progress: JobProgress) -> None:
        if progress.event in ("server_died", "note"):
            told.append(progress.text)
        if not killing and progress.ended >= at * progress.total:
            victim = random.choice(others)
            killing.append(
                threading.Thread(target=cluster.remove_node, args=(victim,), kwargs=kill)
            )
            killing[0].start()

    at, kill = random.uniform(0.3, 0.6), {"allow_graceful": False}
    try:
        job = await evaluate(
            rows, works, ray=cluster.address, store=store, max_concurrent=12, on_progress=watch
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
