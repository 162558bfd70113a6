"""Models as agents: their providers, their tools and their prices."""
