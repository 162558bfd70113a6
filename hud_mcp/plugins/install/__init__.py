"""Set hud-mcp up: in clients, and on a machine."""
