"""Verifiers plays a server's tasks with a model, by OpenEnv's client, and prints each reward.

A loop of verifiers' own asks the model in a process of this machine, which uv prepares.
"""

import argparse
import asyncio
import os
import sys
from importlib.metadata import version
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.clients import EvalClientConfig
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.harnesses.null import NullHarnessConfig
from verifiers.v1.runtimes import SubprocessConfig
from verifiers.v1.tasksets.openenv import OpenEnvConfig, OpenEnvEnvConfig

WANTED = {"verifiers": "0.4.0", "openenv": "0.4.1", "mcp": "2.0.0"}


def evaluate(
    *, url: str, model: str, base_url: str, tasks: int, rollouts: int, output: str
) -> list[vf.Episode]:
    """Some rollouts of each of the first tasks, all at once."""
    for name, wanted in WANTED.items():
        if version(name) != wanted:
            raise SystemExit(f"This needs {name} {wanted}; there is {version(name)}.")
    # An end without a grade is an error: verifiers would count it as 0.
    resets = [{"index": index, "ungraded": "error"} for index in range(tasks)]
    player = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=SubprocessConfig())
    config = EvalConfig(
        env=OpenEnvEnvConfig(
            taskset=OpenEnvConfig(id="openenv", base_url=url, resets=resets), player=player
        ),
        model=model,
        client=EvalClientConfig(base_url=base_url, api_key_var="OPENAI_API_KEY"),
        num_rollouts=rollouts,
        output_dir=Path(output),
        rich=None,
        push=False,
    )
    # The loop needs uv, which is beside this interpreter.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return asyncio.run(run_eval(config))


def grade(episode: vf.Episode) -> float | str:
    """The grade of a rollout, or why there is none."""
    errors = [*episode.errors, *(each for trace in episode.traces for each in trace.errors)]
    if errors or not episode.ok:
        reason = errors[-1].message if errors else "no reason was given"
        return "not graded: " + " ".join(reason.split())
    (trace,) = episode.traces
    if trace.stop_condition == "empty_action":  # verifiers ends it itself, with 0
        return "not graded: the model said nothing"
    return trace.reward


def main(**asked: object) -> None:
    """Evaluate, and print what each rollout had."""
    for episode in evaluate(**asked):
        print(episode.task.data.reset["index"], grade(episode))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--base-url", default="https://api.openai.com/v1")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--rollouts", type=int, default=4)
    parser.add_argument("--output", default="outputs")
    main(**vars(parser.parse_args()))
