"""A model as the agent: it gets the tools of any client, the prompt, and the size of the screen.

`agent.py` holds the conversation, and `requests.py` makes the requests. `providers.py` knows the
providers, and no other module makes models. Their libraries load in `libraries.py`.
"""
