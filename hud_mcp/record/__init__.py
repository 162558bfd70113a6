"""What is kept of a session: its steps, its trajectory, its job."""
