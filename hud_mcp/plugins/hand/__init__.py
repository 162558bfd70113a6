"""Tasks by hand: each command of a shell is one call, and a server in the background holds them.

`place.py` is where that server is found, `server.py` is the server, `client.py` finds or starts it
and makes a call.
"""
