"""MCP servers as worlds: each session has its own running copy, in a sandbox, and is graded."""
