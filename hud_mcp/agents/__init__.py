"""Agents: who works on a task, from outside, through the same tools as any client."""
