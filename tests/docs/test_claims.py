"""What README and docs say of names, options, tools and defaults is what there is."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from page_blocks import PAGES, ROOT, Page, page
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp
import hud_mcp.environment
from hud_mcp.cli import main
from hud_mcp.plugins.install.client import CLIENTS, LINKED, Entry, Machine, install_link
from hud_mcp.plugins.view import subscriptions
from hud_mcp.server import core_tool as reported
from hud_mcp.server.core_tool import MOST_AT_ONCE
from hud_mcp.session.spec import Limits
from hud_mcp.store.files import is_open_to_others
from hud_mcp.task import COMBINATIONS, Task
from hud_mcp.taskset import Taskset
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.model_turn import TURN_BYTES, TURN_BYTES_IN_ALL, TURNS

OTHERS = {"--bg", "--security-opt", "--no-deps", "--browsergym-python"}
"""Options of other people's programs and of this project's benchmarks that prose names."""


def code(each: Page) -> list[str]:
    """The pieces of code in a page's prose."""
    return re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", each.text, flags=re.DOTALL | re.MULTILINE)
    )


def first_column(each: Page, heading: str) -> list[str]:
    """The first cell of each row of the table under a heading, but for its head."""
    section = each.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [row[0].strip("| ") for row in rows[1:]]


def every_command(command: click.Command = main) -> list[click.Command]:
    """A command, and those inside of it."""
    if not isinstance(command, click.Group):
        return [command]
    context = click.Context(command)
    inner = [command.get_command(context, name) for name in command.list_commands(context)]
    return [command, *(each for found in inner if found for each in every_command(found))]


OPTIONS = {option for each in every_command() for param in each.params for option in param.opts} | {
    "--help",
    "--version",
}


def test_readme_counts_the_tasks_of_the_demo() -> None:
    """How many there are, and how many of them are in a browser."""
    tasks = Taskset.from_file(ROOT / "taskset_data" / "quickstart.jsonl")
    in_browser = sum(task.env == "browser" for task in tasks)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"# {len(tasks)} tasks, {in_browser} of them in a real browser;" in readme


@each_of("each", PAGES, ids=lambda each: each.name)
def test_every_option_that_a_page_names_is_one(each: Page) -> None:
    """In prose and tables; blocks are run."""
    named = {option for piece in code(each) for option in re.findall(r"(?<!\S)--[a-z-]+", piece)}
    assert named - OPTIONS - OTHERS == set()


def test_a_command_that_is_not_run_has_options_that_exist() -> None:
    """`docker run … hud-mcp serve` and the like name options of `hud-mcp`."""
    shown = [
        line
        for each in PAGES
        for block in each.blocks
        if block.language == "console"
        for line in block.text.splitlines()
        if block.why_not_run(line.removeprefix("$ ")) is not None and "hud" in line
    ]
    assert any(line.startswith("$ docker") for line in shown)
    for line in shown:
        ours = line.partition("hud-mcp")[2] if "hud-mcp" in line else line
        assert set(re.findall(r" (--[a-z-]+)", ours.partition("#")[0])) <= OPTIONS, line


@each_of("each", PAGES, ids=lambda each: each.name)
def test_every_name_of_the_package_that_a_page_names_can_be_imported(each: Page) -> None:
    """`hud_mcp.a.b` is a module, or a name of one."""
    named = {
        name for piece in code(each) for name in re.findall(r"\bhud_mcp(?:\.[A-Za-z_]\w*)+", piece)
    }
    for name in named:
        module, _, attribute = name.rpartition(".")
        try:
            assert hasattr(importlib.import_module(module), attribute), name
        except AssertionError:
            importlib.import_module(name)


def test_hud_s_types_of_arguments_are_where_its_page_says() -> None:
    """docs/hud.md: the names without their module in the table of imports."""
    table = page("docs/hud.md").text.partition("## Imports")[2].partition("##")[0]
    for name in ("PromptArg", "GradingArg", "DataFileArg", "DataFilesArg", "DataFileRef"):
        assert f"`{name}`" in table or f".{name}`" in table
        assert hasattr(hud_mcp.environment, name)


@each_of(
    ("module", "names"),
    [
        ("contexts", "read_contexts sample_contexts spread"),
        ("generalisation", "generalisation"),
        ("source", "load_environments"),
        ("export", "export_jsonl export_parquet export_atif export_html export_gif"),
        ("credential", "session_token"),
    ],
)
def test_a_path_that_was_documented_before_still_works(module: str, names: str) -> None:
    """Programs that were written by an earlier README go on working."""
    former = importlib.import_module(f"hud_mcp.{module}")
    for name in names.split():
        assert callable(getattr(former, name))
        assert name in former.__all__
        if name in hud_mcp.__all__:
            assert getattr(former, name) is getattr(hud_mcp, name)


@pytest.mark.long
def test_the_configuration_of_claude_desktop_starts_a_server(tmp_path: Path) -> None:
    """The same block of JSON wherever it stands; its command serves until its input ends."""
    (block,) = {
        each
        for name in ("README.md", "docs/index.md", "docs/serve.md")
        for each in page(name).programs("json")
        if "mcpServers" in each
    }
    server = json.loads(block)["mcpServers"]["hud-mcp"]
    command = server["command"].replace("/path/to/.venv/bin", str(Path(sys.executable).parent))
    done = subprocess.run(
        [command, *server["args"], "--store", str(tmp_path / "store.sqlite3")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_the_links_of_readme_and_clients_add_what_install_writes() -> None:
    """But for the path of the program, which only the machine knows."""
    entry = Entry("hud-mcp", ["serve", "browser"])
    readme, clients = page("README.md").text, page("docs/clients.md").text
    for name in LINKED:
        link = f"]({install_link(CLIENTS[name], 'hud-mcp', entry, web=True)})"
        assert link in readme
        assert link in page("docs/index.md").text
        assert f"`{install_link(CLIENTS[name], 'hud-mcp', entry)}`" in clients


def test_the_table_of_clients_has_the_configuration_of_each() -> None:
    """docs/clients.md: on each system, as `install` finds it."""
    rows = re.findall(
        r"^\| `([\w-]+)` \| (`[~%].*) \|$", page("docs/clients.md").text, re.MULTILINE
    )
    machines = [
        Machine(platform, Path("~"), {"APPDATA": "%APPDATA%", "LOCALAPPDATA": "/nowhere"})
        for platform in ("linux", "darwin", "win32")
    ]
    assert dict(rows) == {
        client.name: " | ".join(f"`{client.file(each).as_posix()}`" for each in machines)
        for client in CLIENTS.values()
    }


def test_the_configuration_for_http_has_what_the_program_beside_it_sends() -> None:
    """docs/http.md: the same address, and the same header."""
    each = page("docs/http.md")
    (block,) = (text for text in each.programs("json") if "mcpServers" in text)
    (program,) = each.programs()
    server = json.loads(block)["mcpServers"]["hud-mcp"]
    assert server["type"] == "http"
    assert f'"{server["url"]}"' in program
    ((header, value),) = server["headers"].items()
    assert f'"{header}": f"{value.replace("TOKEN", "")}' in program


def test_the_table_of_tools_has_every_core_tool() -> None:
    """docs/tools.md: what every server has, no more and no less."""
    section = page("docs/tools.md").text.partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == CORE_TOOLS


def test_the_table_of_limits_has_every_limit_with_its_default() -> None:
    """docs/limits.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", page("docs/limits.md").text, re.MULTILINE)
    assert {name: float(default) for name, default in rows} == Limits().model_dump()


def test_the_table_of_fields_has_fields_of_a_task() -> None:
    """docs/tasks.md: and so are the ways to combine rewards."""
    whole = page("docs/tasks.md").text
    text = whole.partition("## Sets and files")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))))
    assert {"id", "gym", "setup", "evaluate", "config", "target", "metadata"} <= named
    assert named - {"LocalRuntime", "SubprocessRuntime", "Runtime"} <= set(Task.model_fields)
    assert all(f"`{name}`" in whole for name in COMBINATIONS)


def test_the_variables_of_an_agents_command_are_those_of_the_table() -> None:
    """docs/eval.md: what a program finds in its environment."""
    named = first_column(page("docs/eval.md"), "A program as the agent")
    source = (ROOT / "hud_mcp" / "agents" / "command.py").read_text(encoding="utf-8")
    assert set(re.findall(r"HUD_MCP_\w+", " ".join(named))) == set(
        re.findall(r'"(HUD_MCP_\w+)": ', source)
    )


def test_every_target_of_make_that_is_named_is_there() -> None:
    """README and docs/develop.md."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {
        target
        for each in PAGES
        for piece in [*code(each), *each.programs("console")]
        for target in re.findall(r"\bmake ([a-z]+)\b", piece)
    }
    assert {"demo", "test", "prove"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_the_bounds_of_models_turns_and_of_subscriptions_are_those_in_the_code() -> None:
    """Each number that the page of limits names without an option of its own."""
    told = page("docs/limits.md").text.partition("## Turns of models")[2]
    numbers = {int(each) for each in re.findall(r"\b\d{2,}\b", told.replace("^", " "))}
    assert numbers >= {
        MOST_AT_ONCE,
        TURN_BYTES,
        TURNS,
        TURN_BYTES_IN_ALL,
        subscriptions._MOST,
        subscriptions._MOST_STREAMS,
        round(reported._MOST_S / 3600),
    }


@pytest.mark.skipif(os.name == "nt", reason="its files have no such modes")
def test_every_command_that_makes_a_secret_makes_it_private(tmp_path: Path) -> None:
    """The server warns of a file that others may read, so no page may make one."""
    made: list[str] = []
    for number, each in enumerate(PAGES):
        folder = tmp_path / str(number)
        folder.mkdir()
        for block in each.blocks:
            lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
            for line in (line for line in lines if "rand" in line and ">" in line):
                made.append(f"{each.name}: {line}")
                subprocess.run(["bash", "-c", f"umask 022; {line}"], cwd=folder, check=True)
        for file in folder.iterdir():
            assert file.read_text().strip()
            assert not is_open_to_others(file), (each.name, file.name)
    assert len(made) >= 8


def test_the_tables_of_options_are_those_of_the_code() -> None:
    """Each is written from the declarations of its options."""
    done = subprocess.run(
        [sys.executable, "scripts/option_tables.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
