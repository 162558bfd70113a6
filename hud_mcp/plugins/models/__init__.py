"""Models as agents: a model gets the tools of any client, the prompt, and the screen's size."""
