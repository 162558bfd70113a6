"""Graders: how an answer or a state becomes a number."""
