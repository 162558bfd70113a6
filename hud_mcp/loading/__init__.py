"""Where tasks come from: rows in files, and tasksets by name."""
