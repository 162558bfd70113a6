"""`python -m hud_mcp` is `hud-mcp`."""

from hud_mcp.cli import main

main()
