"""The options of a job are declared once: `hud-mcp eval` and `evaluate` do the same with each."""

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import pytest
from click.testing import CliRunner

from hud_mcp import Store, evaluate
from hud_mcp.cli import main
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.record.job import Job
from hud_mcp.rollout.options import JobKeywords, JobOptions, RunOptions
from hud_mcp.values.option import Declared, declared

ENV = """
from hud_mcp import ContextFeature, ContextSpace, Environment

SIZE = ContextFeature(name="size", default=1, lower=0, upper=9)
env = Environment("sizes", contexts=ContextSpace([SIZE]))


@env.template
async def ask():
    yield "Go on."
    yield 1.0
"""

GIVEN: dict[str, tuple[tuple[str, ...], Any]] = {
    "agent_command": (("--agent-command", "no-such-program 1"), "no-such-program 1"),
    "no_gateway": (("--no-gateway",), True),
    "permit": (("--permit", "none"), "none"),
    "sources": (("--env", "env.py"), "env.py"),
    "contexts": (("--contexts", "sample:2:size=2..3"), "sample:2:size=2..3"),
    "context_selector": (("--context-selector", "every"), "every"),
    "protocol": (("--protocol", "webvoyager"), "webvoyager"),
    "allow": (("--allow", "localhost:8080"), ["localhost:8080"]),
    "seed": (("--seed", "7"), 7),
    "max_concurrent": (("--max-concurrent", "2"), 2),
    "max_steps": (("--max-steps", "5"), 5),
    "timeout_s": (("--timeout", "30"), 30),
    "retries": (("--retries", "1"), 1),
    "workers": (("--workers", "2"), 2),
    "ray": (("--ray=10.0.0.1 6379",), "10.0.0.1 6379"),
    "in_process": (("--in-process",), True),
    "image": (("--image", "jpeg"), "jpeg"),
    "pattern": (("--filter", "second"), "second"),
    "split": (("--split", "hard"), "hard"),
    "group": (("--group", "2"), 2),
    "name": (("--name", "two"), "two"),
}
"""A value of each option: on the command line, and in Python."""

WRONG: dict[str, tuple[tuple[str, ...], Any]] = {
    "context_selector": (("--contexts", "sample:2", "--set", "context_selector=evry"), "evry"),
    "allow": (("--allow", "http://x"), "http://x"),
    "ray": (("--ray=my cluster",), "my cluster"),
    "workers": (("--workers", "none"), "none"),
    "seed": (("--seed", "-1"), -1),
    "group": (("--group", "0"), 0),
    "timeout_s": (("--timeout", "inf"), float("inf")),
    "max_steps": (("--max-steps", "0"), 0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows, one of them hard, beside the file of their environment."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "env.py").write_text(ENV)
    rows = [
        {"id": name, "env": "sizes", "template": "ask", "metadata": {"difficulty": difficulty}}
        for name, difficulty in (("first", "easy"), ("second", "hard"))
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def by_command(*arguments: str, store: str) -> Job | str:
    """Run the command; return the job that it recorded last, or its error."""
    said = CliRunner().invoke(main, ["eval", "--store", store, *arguments], env={"COLUMNS": "400"})
    if said.exit_code == 2 or "Error: " in said.stderr:
        return said.stderr.partition("Error: ")[2].strip()
    (job, *_), _ = anyio.run(recorded, store), said
    return job


async def recorded(store: str) -> list[Job]:
    """The jobs of a store, the newest first."""
    opened = Store(store)
    try:
        return [(await opened.load_job(job.id))[0] for job in await opened.list_jobs()]
    finally:
        await opened.close()


def by_function(*arguments: Any, **options: Any) -> Job | str:
    """Call the function; return the job or the error."""

    async def call() -> Job:
        return await evaluate(*arguments, **options)

    try:
        return anyio.run(call)
    except HudMcpError as exc:
        return str(exc)


def plain(found: Job | str, option: Declared) -> Any:
    """The facts of a job, or an error without the way in which its option is written."""
    if isinstance(found, Job):
        kept = found.metadata["options"]
        return found.name, found.group, found.taskset, kept, sorted(found.metadata)
    for name in (option.flag, option.keyword):
        found = re.sub(rf"(?<![\w-]){re.escape(name)}\b", "OPTION", found)
    return found


def options_of_jobs() -> list[Declared]:
    """The declared options, each of which has a value here."""
    found = list(declared(JobOptions))
    assert {each.name for each in found} == set(GIVEN), "a new option needs a value in GIVEN"
    return found


@pytest.mark.long
def test_each_option_begins_the_same_job_by_command_and_by_function() -> None:
    """The record, or the refusal, is the same."""
    differ: dict[str, Any] = {}
    refused: set[str] = set()
    for each in options_of_jobs():
        words, value = GIVEN[each.name]
        here = () if each.name in ("in_process", "workers", "ray") else ("--in-process",)
        more: dict[str, Any] = {"in_process": True} if here else {}
        if each.name == "context_selector":
            more["contexts"] = "sample:2:size=2..3"
            words = (*words, "--contexts", more["contexts"])
        named = () if each.name == "agent_command" else ("--agent", "nop")
        agent = () if each.name == "agent_command" else ("nop",)
        found = by_command("rows.jsonl", *named, *here, *words, store="command.sqlite3")
        called = by_function(
            "rows.jsonl", *agent, store="function.sqlite3", **more, **{each.keyword: value}
        )
        if isinstance(found, str):
            refused.add(each.name)
        if plain(found, each) != plain(called, each):
            differ[each.name] = (plain(found, each), plain(called, each))
    assert differ == {}
    assert refused == {"agent_command", "protocol", "ray"}


def test_a_wrong_value_is_refused_by_both_with_the_name_of_its_option() -> None:
    """And with nothing recorded."""
    fields = {each.name: each for each in declared(JobOptions)}
    for name, (words, value) in WRONG.items():
        more = {"contexts": "sample:2"} if name == "context_selector" else {}
        refused = by_command("rows.jsonl", "--agent", "nop", *words, store="no.sqlite3")
        called = by_function(
            "rows.jsonl", "nop", store="no.sqlite3", **more, **{fields[name].keyword: value}
        )
        assert isinstance(refused, str), name
        assert isinstance(called, str), name
        assert fields[name].flag in refused or fields[name].keyword in refused, refused
        assert fields[name].keyword in called, called
    assert not Path("no.sqlite3").exists()


def test_a_resumed_job_takes_the_same_options_from_its_record_either_way() -> None:
    """An option that would make it another job is refused by name; the others are taken."""
    job = by_command("rows.jsonl", "--agent", "nop", "--in-process", store="resumed.sqlite3")
    assert isinstance(job, Job)
    for each in options_of_jobs():
        if each.name in ("workers", "ray"):  # which the job, in this process, has no use for
            continue
        words, value = GIVEN[each.name]
        found = by_command("--resume", job.id, *words, store="resumed.sqlite3")
        called = by_function(store="resumed.sqlite3", resume=job.id, **{each.keyword: value})
        if each.option.may_change:
            assert (type(found), type(called)) == (Job, Job), (each.name, found, called)
            continue
        said = "comes from the record of the job that is resumed"
        assert said in str(found), each.name
        assert plain(found, each) == plain(called, each)


def test_a_taskset_and_a_model_s_options_come_from_the_record_too() -> None:
    """Its budget and its rates may be other ones; from Python they come with its options."""
    job = by_command("rows.jsonl", "--agent", "nop", "--in-process", store="resumed.sqlite3")
    assert isinstance(job, Job)
    for each in declared(ModelOptions):
        words = ("--set", f"{each.flag.lstrip('-')}={MODEL_VALUES[each.name]}")
        said = by_command("--resume", job.id, *words, store="resumed.sqlite3")
        told = "No model runs this job" if each.option.may_change else f"{each.flag} comes from"
        assert told in str(said), each.name
    assert "taskset comes from the record" in str(by_function("rows.jsonl", resume=job.id))


MODEL_VALUES = {
    "base_url": "http://127.0.0.1:1/v1", "look": "text", "tools": "computer", "system": "env.py",
    "keep_images": 2, "max_tokens": 9, "max_cost_usd": 1, "max_cost_per_run_usd": 1,
    "price": "1,5", "rpm": 3, "tpm": 4, "max_turns": 5,
}  # fmt: skip
"""A value of each option of a model."""


def test_a_type_checker_knows_each_option_of_the_function() -> None:
    """And a name that is none is refused with the one that was meant."""
    assert set(get_type_hints(JobKeywords)) == {each.keyword for each in declared(JobOptions)}
    assert inspect.signature(evaluate).parameters["options"].kind is inspect.Parameter.VAR_KEYWORD
    wrong: Callable[..., Any] = evaluate
    with pytest.raises(TypeError, match=r"no option 'max_step'\. Did you mean 'max_steps'"):
        anyio.run(lambda: wrong("rows.jsonl", "nop", max_step=3))


def test_the_record_has_no_option_that_a_job_has_elsewhere() -> None:
    """Its group and its name are its own; what chose its tasks has been used."""
    added = set(JobOptions.model_fields) - set(RunOptions.model_fields)
    assert added == {"pattern", "split", "group", "name"}
