"""How many sessions one database, its cores and its network take: A SIMULATION, not a measurement.

Each session thinks, then makes a step: a turn on one of the cores of the workers, then its picture
on the network, then its commits on the database. Whatever is taken waits in a line. The constants
are those that benchmarks/scale.py has measured; `--help` says them. The knee is where another
session makes replies slower and no more steps a second.

    python benchmarks/scale_simulated.py [--world none|browser] [--cores 32] [--think-s 5]
"""

import argparse
import heapq
import random
from dataclasses import dataclass, field
from itertools import count
from statistics import mean, quantiles

SESSIONS = (100, 300, 1_000, 3_000, 10_000, 30_000)
CPU_MS = {"none": 4.5, "browser": 57.0}
PICTURE_KB = {"none": 0.0, "browser": 81.0}
MEMORY_MB = {"none": 0.1, "browser": 23.0}
STEPS = 12
"""Steps of each session that are simulated; the first ones are left out of the figures."""
LEFT_OUT = 4


@dataclass
class Line:
    """What serves so many at once, and lets others wait in their order.

    Attributes:
        free_at_s: When each of its places is free.
        busy_s: How long its places were taken, in all.
    """

    free_at_s: list[float]
    busy_s: float = field(default=0.0)

    @classmethod
    def of(cls, places: int) -> "Line":
        """One with so many places."""
        return cls([0.0] * places)

    def take(self, now_s: float, service_s: float) -> float:
        """Take a place as soon as one is free; when that ends."""
        if service_s == 0:
            return now_s
        began_s = max(now_s, heapq.heappop(self.free_at_s))
        heapq.heappush(self.free_at_s, began_s + service_s)
        self.busy_s += service_s
        return began_s + service_s


@dataclass(frozen=True)
class Figures:
    """What a simulation gives."""

    steps_a_second: float
    mean_ms: float
    p95_ms: float
    busy: dict[str, float]


def simulate(given: argparse.Namespace, sessions: int) -> Figures:
    """Have so many sessions make their steps."""
    drawn = random.Random(sessions)
    cores, network, database = Line.of(given.cores), Line.of(1), Line.of(1)
    services = {
        "cores": (cores, given.cpu_ms / 1000, given.cores),
        "network": (network, given.picture_kb / 1000 / given.network_mb_s, 1),
        "database": (database, given.commits_a_step / given.commits_a_second, 1),
    }
    stages, order = list(services), count()
    events = [
        (drawn.expovariate(1 / given.think_s), next(order), 0, 0, 0.0) for _ in range(sessions)
    ]
    heapq.heapify(events)
    waits_ms: list[float] = []
    counted: list[float] = []
    end_s = 0.0
    while events:
        now_s, _, step, stage, began_s = heapq.heappop(events)
        if stage == 0:
            began_s = now_s
        if stage < len(stages):  # in the order of time, so that each line is in its order
            line, service_s, _ = services[stages[stage]]
            drawn_s = drawn.expovariate(1 / service_s) if service_s else 0.0
            done_s = line.take(now_s, drawn_s)
            heapq.heappush(events, (done_s, next(order), step, stage + 1, began_s))
            continue
        end_s = max(end_s, now_s)
        if step >= LEFT_OUT:
            waits_ms.append(1000 * (now_s - began_s))
            counted.append(now_s)
        if step + 1 < STEPS:
            thought_s = now_s + drawn.expovariate(1 / given.think_s)
            heapq.heappush(events, (thought_s, next(order), step + 1, 0, 0.0))
    counted.sort()
    low, high = counted[len(counted) // 10], counted[len(counted) * 9 // 10]
    return Figures(
        steps_a_second=0.8 * len(counted) / max(high - low, 1e-9),
        mean_ms=mean(waits_ms),
        p95_ms=quantiles(waits_ms, n=20)[-1],
        busy={name: line.busy_s / end_s / places for name, (line, _, places) in services.items()},
    )


def main() -> None:
    """Simulate, and print a table and the knee."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=sorted(CPU_MS), default="browser")
    parser.add_argument("--cores", type=int, default=32, help="of all workers")
    parser.add_argument("--think-s", type=float, default=5.0, help="of a model before each step")
    parser.add_argument("--cpu-ms", type=float, help="of a step, with its share of start and grade")
    parser.add_argument("--picture-kb", type=float, help="of each step")
    parser.add_argument("--commits-a-step", type=float, default=1.0)
    parser.add_argument("--commits-a-second", type=float, default=12000.0, help="of the database")
    parser.add_argument("--network-mb-s", type=float, default=110.0, help="to the pictures' place")
    given = parser.parse_args()
    given.cpu_ms = CPU_MS[given.world] if given.cpu_ms is None else given.cpu_ms
    given.picture_kb = PICTURE_KB[given.world] if given.picture_kb is None else given.picture_kb
    print("A SIMULATION with measured constants:")
    print(f"{given.cpu_ms:g} ms CPU and {given.picture_kb:g} kB a step on {given.cores} cores,")
    print(
        f"{given.commits_a_second:g} commits/s, {given.think_s:g} s of thought before each step\n"
    )
    print("sessions  steps/s  mean ms   p95 ms  cores  network  database  memory")
    for sessions in SESSIONS:
        made = simulate(given, sessions)
        shares = "  ".join(f"{100 * share:5.0f} %" for share in made.busy.values())
        memory = sessions * MEMORY_MB[given.world] / 1000
        print(
            f"{sessions:8}  {made.steps_a_second:7.0f}  {made.mean_ms:7.0f}  {made.p95_ms:7.0f}"
            f"  {shares}  {memory:6.1f} GB"
        )
    each = {
        "cores": given.cpu_ms / 1000 / given.cores,
        "network": given.picture_kb / 1000 / given.network_mb_s,
        "database": given.commits_a_step / given.commits_a_second,
    }
    first = max(each, key=lambda name: each[name])
    at = (given.think_s + sum(each.values())) / each[first]
    print(f"\nThe knee is at {at:.0f} sessions, by the {first}.")


if __name__ == "__main__":
    main()
