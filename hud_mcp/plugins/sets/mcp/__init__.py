"""Public sets of tasks over MCP servers."""
