"""The surfaces that speak MCP."""
