"""Surfaces that speak MCP."""
