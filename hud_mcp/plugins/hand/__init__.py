"""Tasks by hand: each command of a shell is one call, and a background server holds the tasks."""
