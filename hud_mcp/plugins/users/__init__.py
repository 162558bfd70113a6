"""Users that a model plays, and measures of how well they play."""
