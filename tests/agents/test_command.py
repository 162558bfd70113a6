"""What an agent that is a command is called."""

from pathlib import Path

import pytest

from hud_mcp.agents.command import command_name


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
