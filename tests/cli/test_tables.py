"""Tables of commands: a line for each row on a terminal of any width, and no number is cut."""

import io

from rich.console import Console

from hud_mcp.cli.output import cell, make_table, print_table

ROWS = (
    ("traj-1234567890abcdef", "a-task-with-a-rather-long-name", "graded", "1.000", "", "12"),
    ("traj-fedcba0987654321", "short", "environment_failed", "", "", "3"),
)


def printed(columns: int) -> list[str]:
    """The lines of a table on a terminal of so many columns."""
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    table = make_table(
        "run", "task", "outcome", "reward", "expected", "steps", right=("reward", "steps")
    )
    for row in ROWS:
        table.add_row(*map(cell, row))
    print_table(console, table, whole="run", least=("steps",))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_wide_terminal_gets_every_column_that_has_a_value() -> None:
    """One without is left out."""
    head, *rows = printed(200)
    assert head.split() == ["run", "task", "outcome", "reward", "steps"]
    assert rows[0].split() == [text for text in ROWS[0] if text]


def test_a_narrower_one_loses_what_is_missed_least_and_then_the_ends_of_texts() -> None:
    """Each row stays one line, with its whole id and its whole numbers."""
    head, first, second = printed(84)
    assert "steps" not in head
    assert "a-task-with-a-rather-long-name" in first
    head, first, second = printed(64)
    assert head.split() == ["run", "task", "outcome", "reward"]
    assert "…" in first
    assert first.endswith("1.000")
    assert second.startswith("traj-fedcba0987654321")


def test_no_line_is_wider_than_the_terminal_while_it_is_a_table() -> None:
    """Where an id alone leaves no room, a row is its id and a line that the terminal folds."""
    kinds: set[bool] = set()
    for columns in range(20, 120, 3):
        lines = printed(columns)
        kinds.add(lines[0].startswith("run"))
        if lines[0].startswith("run"):
            assert len(lines) == 1 + len(ROWS), columns
            assert max(map(len, lines)) <= columns
        else:
            assert lines[0] == ROWS[0][0], columns
            assert lines[1].split()[:2] == ["task", ROWS[0][1]]
    assert kinds == {True, False}
