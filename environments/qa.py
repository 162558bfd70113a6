"""A gym for questions: no world, so that a task is its prompt and what its answer is held to."""

from hud_mcp import Environment

env = Environment("qa", version="0.1.0")
