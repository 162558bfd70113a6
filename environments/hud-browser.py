"""A gym with a browser, in which a task's own calls open pages and look at them."""

from hud_mcp import Browser, Environment

env = Environment("hud-browser", version="0.1.0", world=Browser(start=None, tasks_open_hosts=True))
