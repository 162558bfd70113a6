"""A process of reasoning-gym: it draws questions or scores an answer, and ends.

It is run as a script, with `PYTHONHASHSEED` set: some generators follow the order of sets, and draw
other questions in another process without it. It reads JSON from standard input and writes JSON.
"""

import importlib
import json
import sys
from typing import Any

if sys.platform != "win32":
    import resource

_MOST_BYTES = 4 * 1024**3


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
        reply = _WANTED[request["want"]](drawn, request)
    out.write(json.dumps(reply))


def _questions(drawn: Any, _: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"question": each["question"], "answer": each["answer"]} for each in drawn]


def _score(drawn: Any, request: dict[str, Any]) -> dict[str, Any]:
    _bound_memory()
    entry = drawn[request["index"]]
    reply: dict[str, Any] = {"question": entry["question"]}
    try:
        return reply | {"score": float(drawn.score_answer(request["answer"], entry))}
    except Exception as exc:  # noqa: BLE001  # whatever a verifier raises is told
        reply["why"] = f"{type(exc).__name__}: {exc}"
    return reply | _sound(drawn, request)


def _sound(drawn: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Whether the verifier takes its own reference for right."""
    entry = drawn[request["index"]]
    gold = entry["answer"]
    sound = gold is not None and float(drawn.score_answer(gold, entry)) == 1.0
    return {"question": entry["question"], "sound": sound}


def _bound_memory() -> None:
    """Bound this process's memory: an answer such as `9**9**9` ends it, and not the machine."""
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


_WANTED = {"questions": _questions, "score": _score, "sound": _sound}


if __name__ == "__main__":
    main()
