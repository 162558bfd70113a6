"""The programs that start `hud-mcp` over stdio, and the entries in their configurations."""
