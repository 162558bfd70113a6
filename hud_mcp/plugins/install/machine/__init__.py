"""The machine: its missing parts, their installation, and the advice for people."""
