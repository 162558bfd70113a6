"""The sources of tasks: rows in files, and tasksets by name."""
