"""The life of a held task: the only state that changes."""
