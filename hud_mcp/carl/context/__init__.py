"""Contexts, where CARL has them: `context_space`, `sampler` and `selection`."""
