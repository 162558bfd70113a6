"""The options of every command, rare ones by name or file, and wires of other distributions."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner, Result
from interaction.peers import http_server
from kept_runs import AT, record_job

from hud_mcp.cli import main
from hud_mcp.record.job import Job

MOST = 150
MOST_OF = {"serve": 16, "eval": 24}


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(each) for each in arguments])


def shown(command: click.Command = main, path: str = "") -> Iterator[tuple[str, int]]:
    """Each command with the number of options that its help shows."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            if found.hidden:
                continue
            yield from shown(found, f"{path} {name}".strip())
    options = [each for each in command.params if isinstance(each, click.Option)]
    yield path, sum(not each.hidden and "--help" not in each.opts for each in options)


def test_the_help_of_all_commands_shows_few_options() -> None:
    """The rare ones have a name, and a row of the pages."""
    counted = dict(shown())
    assert sum(counted.values()) <= MOST
    assert {name: counted[name] <= most for name, most in MOST_OF.items()} == {
        "serve": True,
        "eval": True,
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one job."""
    record_job(tmp_path / "runs.sqlite3", Job(id="job-1", name="mine", created_at=AT), [], {})
    return tmp_path / "runs.sqlite3"


def test_the_record_and_json_are_named_before_a_command_or_after_it(store: Path) -> None:
    """And in a file; the last one wins."""
    (store.parent / "hud.toml").write_text(f'[jobs]\nstore = "{store}"\n')
    wanted = run("jobs", "--store", store, "--json").output
    assert json.loads(wanted.splitlines()[0])["id"] == "job-1"
    for arguments in (
        ("--store", store, "--json", "jobs"),
        ("--json", "jobs", "--store", store),
        ("--store", store.parent / "other.sqlite3", "jobs", "--json", "--store", store),
        ("--config", store.parent / "hud.toml", "jobs", "--json"),
        ("jobs", "--set", f"store={store}", "--set", "json=true"),
    ):
        assert run(*arguments).output == wanted, arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("jobs", "--set", "limt=3"), "has no option 'limt'. Did you mean 'limit'?"),
        (("jobs", "--set", "limit"), "--set limit: write NAME=VALUE."),
        (("jobs", "--set", "limit=few"), "'few' is not a valid whole number"),
        (("eval", "x", "--set", "loock=text"), "look: Give the model text, pictures or both."),
        (("eval", "x", "--json"), "prints no JSON; leave --json out."),
        (("--config", "wrong.toml", "jobs"), "there is no command [jbos]. Did you mean 'jobs'?"),
        (("--config", "broken.toml", "jobs"), "--config broken.toml cannot be read"),
        (("serve", "--wire", "opnenv"), "There is no wire 'opnenv'. Did you mean 'openenv'?"),
        (("serve", "--wire", "openenv"), "--wire openenv is a wire over HTTP"),
    ],
)
def test_a_shared_option_that_is_wrong_names_what_is_right(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything begins."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text("[jbos]\nlimit = 1\n")
    (tmp_path / "broken.toml").write_text("[jobs\n")
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.split())


WIRE = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hud_mcp.cli.wires import Wire
from hud_mcp.registry import Plugin


def routes(served):
    async def hello(request):
        return PlainTextResponse(f"{served.argument} {sorted(served.sessions.environments)}")

    return [Route("/hello", hello)]


WIRE = Wire(routes=routes)
PLUGIN = Plugin("greeting", wires={"hello": "greeting_wire:WIRE"})
"""


@pytest.mark.long
def test_another_distribution_adds_a_wire(tmp_path: Path) -> None:
    """`serve --wire NAME=ARG` finds it by its entry point, as it finds OpenEnv's."""
    site = tmp_path / "site"
    info = site / "greeting_wire-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "greeting_wire.py").write_text(WIRE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting-wire\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hud_mcp]\ngreeting = greeting_wire:PLUGIN\n")
    with http_server(
        tmp_path / "server",
        ["letter_count"],
        *("--wire", "hello=you"),
        env={"PYTHONPATH": str(site)},
    ) as server:
        reply = httpx2.get(server.url.replace("/mcp", "/hello"))
    assert reply.text == "you ['letter_count']"
