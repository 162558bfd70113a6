"""One agent through tasks: over a real MCP client, against a server in another process."""
