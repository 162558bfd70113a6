"""Frozen values without input or output: actions, observations, grades, contexts, capabilities."""
