"""A process of reasoning-gym: it draws questions or scores an answer, and ends.

It is run as a script, with `PYTHONHASHSEED` set: some generators follow the order of sets, and draw
other questions in another process without it. It reads JSON from standard input and writes JSON.
"""

import importlib
import json
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Answer one request."""
    request: dict[str, Any] = json.loads(sys.stdin.read())
    out, sys.stdout = sys.stdout, sys.stderr  # generators may print
    package = importlib.import_module("reasoning_gym")
    if request["want"] == "names":
        factory = importlib.import_module("reasoning_gym.factory")
        reply: Any = sorted(factory.DATASETS)
    else:
        drawn = package.create_dataset(
            request["dataset"], seed=request["seed"], size=request["size"]
        )
        reply = _score(drawn, request) if request["want"] == "score" else _questions(drawn)
    out.write(json.dumps(reply))


def _questions(drawn: Any) -> list[dict[str, Any]]:
    return [{"question": each["question"], "answer": each["answer"]} for each in drawn]


def _score(drawn: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The score of an answer, beside that of the reference where the answer cannot be read."""
    entry = drawn[request["index"]]
    reply: dict[str, Any] = {"question": entry["question"]}
    try:
        return reply | {"score": float(drawn.score_answer(request["answer"], entry))}
    except Exception as exc:  # noqa: BLE001  # whatever a verifier raises is told
        reply["why"] = f"{type(exc).__name__}: {exc}"
    gold = entry["answer"]
    reply["sound"] = gold is not None and float(drawn.score_answer(gold, entry)) == 1.0
    return reply


if __name__ == "__main__":
    main()
