"""For whoever operates a server: its state, its metrics and its traces."""
