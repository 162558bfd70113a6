"""A model as the agent: it gets the tools of any client, the prompt, and the size of the screen."""
