"""A policy gradient in NumPy learns CartPole through `hud_mcp/Task-v0`."""

import argparse
from statistics import mean

import gymnasium
import numpy as np
from numpy.typing import NDArray

import hud_mcp.task_env  # noqa: F401  # registers hud_mcp/Task-v0

Floats = NDArray[np.floating]
Episode = tuple[Floats, NDArray[np.integer], float]  # what was seen and done, and the grade
SCALE = np.array([1, 1, 10, 1])  # the pole's angle is small


def push_right(weights: Floats, seen: Floats) -> Floats:
    """How probable it is that the policy pushes to the right."""
    return 1 / (1 + np.exp(-seen @ weights))


def episode(
    env: gymnasium.Env[Floats, int], weights: Floats, rng: np.random.Generator, seed: int
) -> Episode:
    """What the policy saw and did, and the grade."""
    observation, info = env.reset(seed=seed)
    seen: list[Floats] = []
    done: list[int] = []
    over = False
    while not over:
        seen.append(observation * SCALE)
        done.append(int(rng.random() < push_right(weights, seen[-1])))
        observation, _, terminated, truncated, info = env.step(done[-1])
        over = terminated or truncated
    return np.array(seen), np.array(done), info["grade"]


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
    env = gymnasium.make("hud_mcp/Task-v0", source=options.source)
    for batch in range(options.batches):
        seeds = range(seed + batch * size, seed + (batch + 1) * size)
        episodes = [episode(env, weights, rng, each) for each in seeds]
        returns = [len(done) for _, done, _ in episodes]  # each step is rewarded with 1
        grades = mean(grade for *_, grade in episodes)
        print(f"episodes {(batch + 1) * size:4}  return {mean(returns):6.1f}  grade {grades:.2f}")
        weights = improved(weights, episodes, options.rate)
    env.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="gym:CartPole-v1")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
