"""A gym with an empty folder in a sandbox, which a task's own calls fill and look at."""

from hud_mcp import Environment, Shell

env = Environment("hud-shell", version="0.1.0", world=Shell())
