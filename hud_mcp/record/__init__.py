"""The record of a session: its steps, its trajectory, its job."""
