"""Agents, which work on a task from outside, through the same tools as any client."""
