"""A model as the agent: it gets the tools of any client, the prompt, and the size of the screen.

`agent.py` holds the conversation, `requests.py` makes the requests; `providers.py` knows whose
models there are, and is the only one that makes them. Their libraries load in `libraries.py`.
"""
