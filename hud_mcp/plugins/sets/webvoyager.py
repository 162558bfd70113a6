"""WebVoyager: what to find out on live web sites, judged by a model that sees the last picture."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.choice import Choice, row, row_id
from hud_mcp.loading.wording import WEBVOYAGER_WINDOW
from hud_mcp.plugins.sets.files import Files

__all__ = ["mapped", "read"]

GYM = "webvoyager"
_TASKS = "data/WebVoyager_data.jsonl"
_ANSWERS = "data/reference_answer.json"
_SHA256 = {
    _TASKS: "69b19fd86c23f1a500244a3724e039aa7ca6a1223d03e11eb10e308d4f11c488",
    _ANSWERS: "5473818408d8a19960c4f820c1e5721d218b87b547499d7281c2a0fc4267b0c4",
}


def read(files: Files, choice: Choice) -> list[Task]:
    """The rows, joined with their reference answers.

    Raises:
        SourceNotFound: A file cannot be had.
        InvalidTask: One is not what WebVoyager publishes.
    """
    answers = _read_answers(files)
    tasks: list[Task] = []
    for number, line in enumerate(files.read(_TASKS, sha256=_SHA256[_TASKS]).splitlines(), 1):
        if not line.strip():
            continue
        try:
            raw = cast("dict[str, str]", orjson.loads(line))
            tasks.append(_task(raw, answers.get(raw["id"]), choice))
        except (orjson.JSONDecodeError, KeyError, TypeError) as exc:
            raise InvalidTask(
                f"{_TASKS}:{number}: this is not a row of WebVoyager: {exc!r}."
            ) from exc
    return tasks


def mapped(address: str, hosts: Mapping[str, str]) -> str:
    """An address, where what stands for its host is put in the host's place.

    Args:
        address: As the row has it.
        hosts: What stands for a host, with or without `www.`: another host, or the beginning of
            an address such as `http://127.0.0.1:8001`.
    """
    parts = urlsplit(address)
    plain = {name.removeprefix("www."): place for name, place in hosts.items()}
    place = plain.get((parts.hostname or "").removeprefix("www."))
    if place is None:
        return address
    begins = place if "://" in place else f"http://{place}"
    rest = parts._replace(scheme="", netloc="").geturl()
    return begins.rstrip("/") + (rest if rest.startswith("/") else f"/{rest}")


def _task(raw: Mapping[str, str], answer: Mapping[str, Any] | None, choice: Choice) -> Task:
    site, question, address = raw["web_name"], raw["ques"], mapped(raw["web"], choice.hosts)
    prompt = f"{question}\n\nBegin at {address}, which is open. Answer with what you found."
    is_local = address != raw["web"]
    return row(
        row_id(raw["id"]),
        GYM,
        prompt,
        parts=[site],
        split="test",
        source=f"{_TASKS} of github.com/MinorJerry/WebVoyager (Apache-2.0), {raw['id']}",
        is_local=is_local,
        setup=[["goto", address]],
        evaluate=[["webvoyager_judge", question]],
        metadata={
            "site": site,
            "needs": ["judge"] if is_local else ["network", "judge"],
            **({"is_local": True} if is_local else {}),
            **({"reference": dict(answer)} if answer else {}),
        },
        context=dict(WEBVOYAGER_WINDOW),
        config={"allow": [urlsplit(address).netloc if is_local else "*"]},
    )


def _read_answers(files: Files) -> dict[str, dict[str, Any]]:
    """The reference answers by the ids of their tasks: for people, as the judge sees none."""
    whole: Any = orjson.loads(files.read(_ANSWERS, sha256=_SHA256[_ANSWERS]))
    return {
        f"{site}--{each['id']}": {"kind": each["type"], "answer": each["ans"]}
        for site, given in cast("dict[str, Any]", whole).items()
        for each in given["answers"]
    }
