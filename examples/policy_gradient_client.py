"""A policy gradient in NumPy learns CartPole over HTTP, on a server that runs elsewhere."""

import argparse
import re
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from hud_mcp_client.sync import Server, connect

Floats = NDArray[np.floating]
Episode = tuple[Floats, NDArray[np.integer], float]  # what was seen and done, and the grade
SCALE = np.array([1, 1, 10, 1])  # the pole's angle is small
LIMIT = 200  # the task asks for so many steps
NUMBER = re.compile(r"^(?:cart|pole) [a-z ]+: (-?\d[\d.e-]*)$", re.MULTILINE)


def numbers(text: str) -> Floats:
    """The four numbers of CartPole's text."""
    return np.array([float(each) for each in NUMBER.findall(text)]) * SCALE


def push_right(weights: Floats, seen: Floats) -> Floats:
    """How probable it is that the policy pushes to the right."""
    return 1 / (1 + np.exp(-seen @ weights))


def episode(server: Server, weights: Floats, rng: np.random.Generator, seed: int) -> Episode:
    """What the policy saw and did, and the grade."""
    seen: list[Floats] = []
    done: list[int] = []
    over = False
    with server.start("balance", arguments={"steps": LIMIT}, seed=seed) as task:
        step = task.step(look="text")
        while not over:
            seen.append(numbers(step.observation.text or ""))
            done.append(int(rng.random() < push_right(weights, seen[-1])))
            action = {"type": "custom", "action": "step", "args": {"action": done[-1]}}
            step = task.step(action, look="text")
            over = step.terminated or step.truncated or len(done) == LIMIT
        grade = task.answer("done")
        if grade is None:  # it is no grade of 0
            raise SystemExit(f"An episode was not graded: {task.receipt}")
        return np.array(seen), np.array(done), grade


def improved(weights: Floats, episodes: list[Episode], rate: float) -> Floats:
    """The weights after one step of REINFORCE, whose baseline is the batch's mean."""
    seen = np.concatenate([each[0] for each in episodes])
    done = np.concatenate([each[1] for each in episodes])
    to_come = [(1 - 0.99 ** np.arange(len(each[1]), 0, -1)) / 0.01 for each in episodes]
    returns = np.concatenate(to_come)
    advantage = returns - returns.mean()
    gradient = seen.T @ ((done - push_right(weights, seen)) * advantage)
    return weights + rate * gradient / (np.linalg.norm(gradient) + 1e-9)


def main(options: argparse.Namespace) -> None:
    """Train, and print the learning curve."""
    size, seed = options.size, options.seed
    rng, weights = np.random.default_rng(seed), np.zeros(4)
    with connect(options.url, token=options.token) as server:
        for batch in range(options.batches):
            seeds = range(seed + batch * size, seed + (batch + 1) * size)
            episodes = [episode(server, weights, rng, each) for each in seeds]
            returns = [len(done) for _, done, _ in episodes]  # each step is rewarded with 1
            grades = mean(grade for *_, grade in episodes)
            print(
                f"episodes {(batch + 1) * size:4}  return {mean(returns):6.1f}  grade {grades:.2f}"
            )
            weights = improved(weights, episodes, options.rate)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000/mcp")
    parser.add_argument("--token")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
