"""What a session needs of a machine: by its world, or as its author says; lists show it."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tables import each_of

from hud_mcp import Browser, Environment, Needs, NoWorld, Shell
from hud_mcp.cli.functions import command as functions
from hud_mcp.cli.tasks import command as tasks
from hud_mcp.errors import InvalidEnvironment


def test_a_world_says_what_its_sessions_need() -> None:
    """An environment needs what its world does, until its author says otherwise."""
    assert Environment("plain", world=NoWorld()).needs == Needs()
    assert not Environment("shells", world=Shell()).needs.browser
    assert Environment("pages", world=Browser()).needs.browser

    own = Needs(cpus=2, memory_mb=4000, extras=["gpu", "licence", "gpu"])
    assert Environment("own", needs=own).needs is own
    assert own.extras == ("gpu", "licence")
    assert str(own) == "2 processors, 4000 MB, gpu and licence"


@each_of(
    ("given", "told"),
    [
        ({"cpus": 0}, r"Needs\(cpus=0\): .*greater than 0"),
        ({"cpus": True}, "give a number"),
        ({"cpus": float("nan")}, r"Needs\(cpus=nan\)"),
        ({"memory_mb": "2GB"}, "give a number, and not '2GB'"),
        ({"memory_mb": 0.5}, r"Needs\(memory_mb=0.5\)"),
        ({"browser": 1}, r"Needs\(browser=1\)"),
        ({"extras": "gpu"}, "give a list of names, and not 'gpu'"),
        ({"extras": ["a GPU"]}, "'a GPU' is not a name"),
        ({"gpus": 1}, "is not a field. Its fields are cpus, memory_mb, browser, extras"),
    ],
)
def test_needs_that_nothing_can_meet_are_refused(given: dict[str, object], told: str) -> None:
    """The error names the field, what was given, and which fields there are."""
    with pytest.raises(InvalidEnvironment, match=told):
        Needs(**given)


def test_an_environment_refuses_what_says_no_needs() -> None:
    """The error names the line and shows how needs are written."""
    with pytest.raises(InvalidEnvironment, match=r"test_needs.py:\d+: needs=2 .*Needs\(cpus=2"):
        Environment("wrong", needs=2)  # pyright: ignore[reportArgumentType]


def test_what_is_enough_for_several_is_the_most_of_each() -> None:
    """A server of several environments has room for a session of any of them."""
    both = Needs.most([Needs(cpus=2), Needs(memory_mb=900, browser=True, extras=["gpu"])])

    assert both == Needs(cpus=2, memory_mb=900, browser=True, extras=["gpu"])
    assert both.offered == {"browser", "gpu"}
    assert both.of_server(4) == (8, 3_600_000_000)
    assert Needs(cpus=0.3).of_server(4) == (2, 128_000_000)
    assert Needs(cpus=0.05).of_server(4) == (0.2, 128_000_000)


def test_lists_show_what_sessions_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tasks` and `functions` say it of each environment that they list."""
    (tmp_path / "env.py").write_text(
        "from hud_mcp import Environment, Needs\n"
        "env = Environment('heavy', needs=Needs(cpus=3, memory_mb=2000, extras=['gpu']))\n"
        "@env.template()\n"
        "async def count():\n"
        "    answer = yield 'How many?'\n"
        "    yield 1.0 if answer == '3' else 0.0\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "env": "heavy", "template": "count"}\n')
    monkeypatch.chdir(tmp_path)

    listed = CliRunner().invoke(tasks, ["rows.jsonl"], catch_exceptions=False)
    named = CliRunner().invoke(functions, ["env.py"], catch_exceptions=False)

    needs = "A session of heavy needs 3 processors, 2000 MB and gpu."
    assert needs in listed.stdout
    assert needs in named.stdout


def test_a_list_is_shown_where_its_environment_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are listed without what their sessions need."""
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "env": "gone", "template": "count"}\n')
    monkeypatch.chdir(tmp_path)

    listed = CliRunner().invoke(tasks, ["rows.jsonl"], catch_exceptions=False)

    assert "1 of 1 tasks" in listed.stdout
    assert "needs" not in listed.stdout
