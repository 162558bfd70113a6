"""A gateway between an agent that brings its own model and the provider of that model."""
