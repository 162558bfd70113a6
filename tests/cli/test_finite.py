"""Numbers of options that no comparison and no record can hold."""

from click.testing import CliRunner
from tables import each_of

from hud_mcp.cli import main


@each_of(
    "command",
    [
        ("channel", "serve", "letter_count", "--idle"),
        ("eval", "quickstart", "--agent", "nop", "--timeout"),
        ("jobs", "--threshold"),
    ],
)
@each_of("number", ["nan", "inf", "-inf", "soon"])
def test_a_number_that_is_none_is_refused_by_its_option(
    command: tuple[str, ...], number: str
) -> None:
    """Before anything is opened: the option is named, with what was given."""
    result = CliRunner().invoke(main, [*command, number])
    assert result.exit_code == 2
    assert f"'{command[-1]}'" in result.stderr
    assert number in result.stderr
