"""What an agent that is a command is called."""

from pathlib import Path

import pytest
from tables import each_of

from hud_mcp.agents.command import command_name, missing_program


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python agent.py --key sk-secret", "python agent.py"),
        ("KEY=sk-secret /opt/bin/python3.11 -u ./agent.py sk-secret", "python3.11 agent.py"),
        ("env KEY=sk-secret python -m my.agent --key sk-secret", "python -m my.agent"),
        ("./solve sk-secret", "solve"),
        ("KEY=sk-secret", "a command"),
        ("solve 'sk-secret", "a command"),
    ],
)
def test_a_command_is_called_by_its_program_and_script(
    tmp_path: Path, command: str, name: str
) -> None:
    """Its other words may be secrets, and its name is in lists, exports and pages."""
    (tmp_path / "agent.py").touch()
    assert command_name(command, tmp_path) == name


@each_of(
    ("command", "missing"),
    [
        ("pyhton agent.py", "pyhton"),
        ("./not-there.sh", "./not-there.sh"),
        ("sh -c 'exit 0'", None),
        ("cd agents && python agent.py", None),
        ("if true; then pyhton; fi", None),
        ("PATH=/elsewhere pyhton agent.py", None),
        ('"$AGENT" --fast', None),
        ("(pyhton)", None),
        ("", None),
    ],
)
def test_a_program_that_is_not_there_is_found_out_before_it_is_run(
    command: str, missing: str | None
) -> None:
    """Only where there is no doubt: what the shell itself makes of a line is its own."""
    assert missing_program(command) == missing
