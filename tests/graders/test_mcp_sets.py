"""MCP-Universe's and MCP-Atlas's rows say what they need; those that run here are graded."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from judge_server import Asked, judge_server, says
from peers import stdio_peer
from pyarrow import parquet
from tables import each_of

from hud_mcp import load_taskset
from hud_mcp.environment.function import Situation
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.public import Choice, import_set
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.sets.files import published

pytestmark = pytest.mark.anyio

FILES_SERVER = Path(__file__).parents[1] / "servers" / "files_server.py"

QUESTION: dict[str, Any] = {
    "category": "general",
    "question": "Which city is named in city.txt?",
    "output_format": {"city": "[CITY]"},
    "use_specified_server": True,
    "mcp_servers": [{"name": "filesystem"}],
    "evaluators": [{"func": "json -> get(city)", "op": "=", "value": "Bern"}],
}
JUDGED = {
    "func": "raw", "op": "google_search.llm_as_a_judge",
    "op_args": {"question": "Which?", "correct_answer": "Bern"},
}  # fmt: skip
REQUEST: dict[str, str] = {
    "TASK": "68b0", "ENABLED_TOOLS": '["filesystem_read_file", "filesystem_list_directory"]',
    "PROMPT": "Which city is named in city.txt, and where is it?", "TRAJECTORY": "x" * 200_000,
    "GTFA_CLAIMS": """['It is Bern.', "It's in Switzerland.", 'It has bears.', 'It is old.']""",
}  # fmt: skip


@pytest.fixture(autouse=True)
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of both sets, one of files, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "city.txt").write_text("Bern")
    (tmp_path / "sets" / "mcp_atlas").mkdir(parents=True)
    (tmp_path / "sets" / "mcp_universe" / "mcpuniverse" / "benchmark").mkdir(parents=True)
    return tmp_path / "sets"


def add_question(sets: Path, name: str = "general/one.json", **more: Any) -> Path:
    """Write a task as MCP-Universe has it."""
    path = sets / "mcp_universe" / "mcpuniverse" / "benchmark" / "task_configs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(QUESTION | more))
    return path


def add_requests(sets: Path, *rows: Mapping[str, Any]) -> Path:
    """Write a table as MCP-Atlas has it."""
    path = sets / "mcp_atlas" / "sample_tasks.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(REQUEST))
        table.writeheader()
        table.writerows({**REQUEST, **row} for row in rows)
    return path


def only(name: str, **hosts: str) -> str | None:
    """The reason why the one row of a set does not run here."""
    (task,) = import_set(name, Choice(hosts=hosts)).tasks
    return why_not_runnable(task)


NEEDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a key": ({"mcp_servers": [{"name": "google-maps"}]}, ("google-maps (GOOGLE_MAPS_API_KEY)",)),
    "two servers": (
        {"mcp_servers": [{"name": "yfinance"}, {"name": "calculator"}]}, ("yfinance", "calculator"),
    ),
    "no server": ({"mcp_servers": []}, ("server",)),
    "a preparation": ({"prepares": [{"prepare_func": "make_database"}]}, ("make_database",)),
    "an evaluator": (
        {"evaluators": [{"func": "json", "op": "yfinance.check_portfolio"}]}, ("check_portfolio",),
    ),
    "a function": ({"evaluators": [{"func": "json -> first"}]}, ("json -> first",)),
    "nothing to compare with": ({"evaluators": [{"func": "json", "op": "in"}]}, ("evaluator in",)),
    "a variable": ({"question": "Look at {{ ROOT_PAGE }}."}, ("--host ROOT_PAGE",)),
    "a variable to compare with": (
        {"evaluators": [{"func": "raw", "op": "=", "value": "{{NAME}}"}]}, ("--host NAME",),
    ),
}  # fmt: skip
"""Fields of a task that does not run here, and words of the reason."""


@each_of("need", NEEDS)
async def test_a_question_says_what_it_needs(need: str, sets: Path, tmp_path: Path) -> None:
    """Its servers with their keys, and each part that is not here."""
    fields, words = NEEDS[need]
    add_question(sets, **fields)
    told = only("MCP-Universe", FILESYSTEM_DIRECTORY=str(tmp_path / "files")) or ""
    assert [word for word in words if word not in told] == []


async def test_a_question_over_files_runs_where_the_files_are(sets: Path, tmp_path: Path) -> None:
    """A variable of the benchmark gives their folder, and other ones a value."""
    add_question(sets, question="In {{ CITY }}?")
    assert "FILESYSTEM_DIRECTORY" in (only("MCP-Universe", CITY="Bern") or "")
    folder = str(tmp_path / "files")
    assert only("MCP-Universe", CITY='"', FILESYSTEM_DIRECTORY=folder) is None
    (task,) = import_set("MCP-Universe", Choice(hosts={"CITY": '"a\\', "X": "y"})).tasks
    assert (task.prompt or "").startswith('In "a\\?')


async def test_lists_and_other_files_of_the_benchmark_are_read(sets: Path) -> None:
    """Rows for training are lists with an instruction; a list of servers is no task."""
    top = sets / "mcp_universe" / "mcpuniverse" / "benchmark"
    (top / "server_list.json").write_text('{"echo": {"stdio": {"command": "python3"}}}')
    row = {"instance_id": "yf_1", **QUESTION, "instruction": "Do it.", "question": None}
    (top / "train.json").write_text(json.dumps([row, {**row, "instance_id": "yf_2"}]))
    rows = await load_taskset("MCP-Universe")
    assert rows.ids == ("mcp-universe-train-yf_1", "mcp-universe-train-yf_2")
    assert (await load_taskset("MCP-Universe-filesystem")).ids == rows.ids


VALUES: list[tuple[list[dict[str, Any]], str, float]] = [
    (QUESTION["evaluators"], '{"city": "Bern"}', 1.0),
    (QUESTION["evaluators"], '```json\n{"city": "Bern"}\n```', 1.0),
    (QUESTION["evaluators"], '{"city": "Rome"}', 0.0),
    (QUESTION["evaluators"], "Bern", 0.0),
    (QUESTION["evaluators"], '["Bern"]', 0.0),
    (QUESTION["evaluators"], "", 0.0),
    (QUESTION["evaluators"], "[" * 100_000, 0.0),
    ([{"func": "json"}], "{}", 1.0),
    ([{"func": "json"}], "no", 0.0),
    ([{"func": "json -> get(n)", "op": "=", "value": 1}], '{"n": true}', 0.0),
    ([{"func": "json -> get(n)", "op": "!=", "value": ""}], "{}", 0.0),
    ([{"func": "json -> get(n) -> len", "op": ">", "value": 1}], '{"n": [1, 2]}', 1.0),
    ([{"func": "json -> get(n)", "op": ">", "value": 1}], '{"n": Infinity}', 0.0),
    ([{"func": "json -> get(n)", "op": ">", "value": 1}], '{"n": "2"}', 0.0),
    ([{"func": "json -> get(n)", "op": "in", "value": "Bern"}], '{"n": ""}', 0.0),
    ([{"func": "json -> get(n)", "op": "in", "value": ["Bern"]}], '{"n": "Bern"}', 1.0),
    ([{"func": "raw", "op": "contain", "value": "Bern"}], "It is Bern.", 1.0),
    ([{"func": "json", "op": "contain", "value": "Bern"}], '{"Bern": 1}', 0.0),
    ([{"func": "json -> foreach -> get(n)", "op": "=", "value": 1}], '[{"n": 1}, {"n": 1}]', 1.0),
    ([{"func": "json -> foreach -> get(n)", "op": "=", "value": 1}], '[{"n": 1}, {"n": 2}]', 0.0),
    ([{"func": "json -> foreach -> get(n)", "op": "=", "value": 1}], '[{"n": 1}, 1]', 0.0),
    ([{"func": "json -> foreach -> get(n)", "op": "=", "value": 1}], "[]", 0.0),
    ([{"func": "json"}, *QUESTION["evaluators"]], '{"city": "Rome"}', 0.0),
]
"""Evaluators, an answer, and its reward."""


async def test_evaluators_are_those_of_the_benchmark_and_nothing_passes_none(sets: Path) -> None:
    """An empty list, an empty text and a missing value are no answer, although they were there."""
    del sets
    (env,) = load_environments(["mcp-filesystem"])
    wrong: list[tuple[Any, str]] = []
    for evaluators, answer, reward in VALUES:
        situation = Situation(world=None, answer=answer)
        grade = await env.functions["mcp_universe"].call([evaluators, "Which?"], situation)
        if grade.reward != reward:
            wrong.append((evaluators, answer))
    assert wrong == []
    with pytest.raises(TypeError):  # of the row: no answer is compared with it
        await env.functions["mcp_universe"].call(
            [[{"func": "raw", "op": "in", "value": 5}], ""], Situation(world=None, answer="5")
        )


ATLAS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a key": ({"ENABLED_TOOLS": '["brave-search_search"]'}, ("brave-search (BRAVE_API_KEY)",)),
    "servers": (
        {"ENABLED_TOOLS": '[{"name": "filesystem_read_file"}, "osm-mcp-server_find"]'},
        ("filesystem, osm-mcp-server",),
    ),
    "claims": ({"GTFA_CLAIMS": ""}, ("claims",)),
}  # fmt: skip
"""Cells of a request that does not run here, and words of the reason."""


@each_of("need", ATLAS)
async def test_a_request_says_what_it_needs(need: str, sets: Path, tmp_path: Path) -> None:
    """Its servers with their keys, and its claims."""
    cells, words = ATLAS[need]
    add_requests(sets, cells)
    told = only("MCP-Atlas", data=str(tmp_path / "files")) or ""
    assert [word for word in words if word not in told] == []


async def test_a_request_over_files_runs_and_needs_a_judge(sets: Path, tmp_path: Path) -> None:
    """In a table of CSV or of Parquet; a cell may be as long as a person's whole way."""
    path = add_requests(sets, {})
    assert "--host data=DIR" in (only("MCP-Atlas") or "")
    before = csv.field_size_limit()
    chosen = Choice(hosts={"data": str(tmp_path / "files")})
    found = import_set("MCP-Atlas", chosen)
    assert (dict(found.counted.needs), found.counted.runnable) == ({"judge": 1}, 1)
    assert csv.field_size_limit() == before
    path.unlink()
    parquet.write_table(pa.Table.from_pylist([REQUEST]), path.with_suffix(".parquet"))
    assert import_set("MCP-Atlas", chosen).tasks == found.tasks
    assert found.tasks[0].evaluate[0].args[0][1] == "It's in Switzerland."


def way(*tools: str) -> str:
    """The way that a request's author took, by its calls."""
    calls = [{"function": {"name": tool, "arguments": "{}"}, "id": tool} for tool in tools]
    return json.dumps([{"role": "assistant", "content": "", "tool_calls": calls}])


LOCAL: dict[str, tuple[dict[str, str], str | None]] = {
    "all are here": ({"ENABLED_TOOLS": '["filesystem_read_file", "git_git_log"]'}, None),
    "no files are needed": ({"ENABLED_TOOLS": '["calculator_calculate"]'}, None),
    "others distract": (
        {
            "ENABLED_TOOLS": '["filesystem_read_file", "calculator_calculate", "exa_search"]',
            "TRAJECTORY": way("filesystem_read_file"),
        },
        None,
    ),
    "another one was used": (
        {
            "ENABLED_TOOLS": '["filesystem_read_file", "calculator_calculate", "exa_search"]',
            "TRAJECTORY": way("filesystem_read_file", "exa_search"),
        },
        "exa (EXA_API_KEY)",
    ),
    "a way that is none": (
        {"ENABLED_TOOLS": '["calculator_calculate", "exa_search"]', "TRAJECTORY": "[5]"},
        "exa (EXA_API_KEY)",
    ),
}
"""Cells of a request over several servers, and a part of the reason why it does not run."""


@each_of("over", LOCAL)
async def test_a_request_over_several_servers_runs_where_all_that_it_needs_are(
    over: str, sets: Path, tmp_path: Path
) -> None:
    """In an environment of ours; a row without one of them names all, and those are in its data."""
    cells, told = LOCAL[over]
    add_requests(sets, cells)
    (task,) = import_set("MCP-Atlas", Choice(hosts={"data": str(tmp_path / "files")})).tasks
    assert task.env == "mcp-local"
    begun = ["dataset_folder"] * ("filesystem" in cells["ENABLED_TOOLS"])
    begins = [each.function for each in task.setup]
    assert begins == (begun if told is None else ["not_runnable"])
    assert (told or "None") in str(why_not_runnable(task))
    assert task.metadata["mcp/not here"] == ["exa"] * ("exa" in cells["ENABLED_TOOLS"])


async def test_the_environment_of_several_servers_has_the_names_of_the_sets(sets: Path) -> None:
    """Each server that rows may have is one of its members, and it has their graders."""
    del sets
    (env,) = load_environments(["mcp-local"])
    listed = {name for title in ("MCP-Universe", "MCP-Atlas") for name in published(title).here}
    members: Any = env.world
    assert set(members.members) == {"filesystem", *listed}
    assert {"dataset_folder", "mcp_universe", "mcp_atlas"} <= env.functions.keys()


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_a_row_over_several_servers_is_played_with_those_of_a_file(
    sets: Path, tmp_path: Path
) -> None:
    """Tools have the names of the row, over its files; the servers stand in place of ours."""
    add_question(sets, mcp_servers=[{"name": "filesystem"}, {"name": "calculator"}])
    hosts = {"FILESYSTEM_DIRECTORY": str(tmp_path / "files")}
    (task,) = import_set("MCP-Universe", Choice(hosts=hosts)).tasks
    (tmp_path / "rows.jsonl").write_text(json.dumps(task.row))
    python, plain = "/usr/bin/python3", str(FILES_SERVER.with_name("plain_server.py"))
    servers = {
        "filesystem": {"command": python, "args": [str(FILES_SERVER)]},
        "calculator": {"command": python, "args": [plain]},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    words = ("mcp:in=mcp-local mcp.json", "--taskset", str(tmp_path / "rows.jsonl"))
    async with stdio_peer(tmp_path, words, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as peer:
        begun = await peer.ok("start_task", task=task.id)
        session = begun.structured["session"]
        city = await peer.ok("filesystem_read", session=session, path="city.txt")
        seen = await peer.ok("calculator_look", session=session, path="city.txt")
        assert seen.text == city.text == "Bern"
        answer = json.dumps({"city": city.text})
        graded = await peer.ok("response", session=session, answer=answer)
        assert graded.structured["reward"] == 1.0


@pytest.mark.long
@pytest.mark.sandbox
@pytest.mark.usefixtures("machine")
async def test_rows_over_files_are_played_and_graded(sets: Path, tmp_path: Path) -> None:
    """By an evaluator, and by a judge who reads each claim; three quarters of them are enough."""
    add_question(sets)
    add_question(sets, "general/two.json", evaluators=[JUDGED])
    add_requests(sets, {})
    hosts = {"FILESYSTEM_DIRECTORY": str(tmp_path / "files"), "data": str(tmp_path / "files")}
    tasks = [
        task
        for name in ("MCP-Universe", "MCP-Atlas")
        for task in import_set(name, Choice(hosts=hosts)).tasks
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(task.row) for task in tasks))

    def reply(asked: Asked) -> str:
        claimed = "bears" not in asked.text and "It is wrong" not in asked.text
        return says("MET" if claimed else "UNMET")

    source = f"mcp:in=mcp-filesystem /usr/bin/python3 {FILES_SERVER}"
    words = (source, "--taskset", str(tmp_path / "rows.jsonl"))
    rewards: list[float] = []
    async with judge_server(reply) as judge:
        env = {"HUD_MCP_JUDGE_URL": judge.url, "HUD_MCP_JUDGE_MODEL": "m"}
        env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
        async with stdio_peer(tmp_path, words, env=env) as peer:
            for task in tasks:
                for is_right in (True, False):
                    begun = await peer.ok("start_task", task=task.id)
                    session = begun.structured["session"]
                    city = (await peer.ok("read", session=session, path="city.txt")).text
                    answer = json.dumps({"city": city if is_right else "It is wrong"})
                    graded = await peer.ok("response", session=session, answer=answer)
                    assert "bears" not in json.dumps(graded.structured)
                    rewards.append(graded.structured["reward"])
    assert rewards == [1.0, 0.0] * 3


async def test_an_environment_of_the_user_s_has_every_server(sets: Path) -> None:
    """With `--gym`, rows need no server of ours; with `mcp:in=`, one server has all their tools."""
    add_question(sets, mcp_servers=[{"name": "google-maps"}, {"name": "weather"}])
    (task,) = import_set("MCP-Universe", Choice(gym="mcp-filesystem")).tasks
    assert why_not_runnable(task) is None
    assert (task.env, task.setup) == ("mcp-filesystem", ())


BROKEN: dict[str, tuple[str, str, str]] = {
    "no JSON": ("MCP-Universe", '{"evaluators":\n]}', r"one\.json.*line 2"),
    "no question": ("MCP-Universe", '{"evaluators": []}', r"one\.json, row 0.*question"),
    "a server without a name": (
        "MCP-Universe", '[{"question": "?", "mcp_servers": [{}], "evaluators": []}]',
        r"one\.json, row 0.*name",
    ),
    "an evaluator without a function": (
        "MCP-Universe", '{"question": "?", "evaluators": [{"op": "="}]}', r"one\.json.*func",
    ),
    "an evaluator that is none": (
        "MCP-Universe", '{"question": "?", "evaluators": [5]}', r"one\.json.*func",
    ),
    "no table": ("MCP-Atlas", 'TASK,PROMPT\n1,"a\n', r"tasks\.csv"),
    "a list that is none": (
        "MCP-Atlas", "TASK,PROMPT,ENABLED_TOOLS,GTFA_CLAIMS\n1,a,[],[]\n2,b,[,[]\n",
        r"tasks\.csv:3.*ENABLED_TOOLS",
    ),
    "a row that is short": ("MCP-Atlas", "TASK,PROMPT\n1,a\n2\n", r"tasks\.csv:3.*PROMPT"),
}  # fmt: skip
"""A set, the content of a file of its, and the place that the error names."""


@each_of("broken", BROKEN)
async def test_a_broken_row_is_named_with_its_place(broken: str, sets: Path) -> None:
    """The file, the row or the line in it, and the field."""
    name, content, place = BROKEN[broken]
    path = add_question(sets) if name == "MCP-Universe" else add_requests(sets)
    path.write_text(content)
    with pytest.raises(InvalidTask, match=place):
        import_set(name)


@each_of("name", ("MCP-Universe", "MCP-Atlas"))
async def test_a_folder_without_rows_is_refused(
    name: str, sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what was expected there; without a folder, it says how to name one."""
    monkeypatch.setenv("HUD_MCP_DATASETS", str(sets))
    with pytest.raises(SourceNotFound, match="expected"):
        import_set(name)
    monkeypatch.delenv("HUD_MCP_DATASETS")
    with pytest.raises(SourceNotFound, match="--from"):
        import_set(name)
