"""The plugins that come with hud-mcp: each imports the core, and no other plugin."""
