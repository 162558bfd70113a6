"""Tasks by hand: each command of a shell is one call, and a background server holds the tasks.

`place.py` has the server's files, `server.py` is the server, and `client.py` finds or starts it and
makes a call.
"""
