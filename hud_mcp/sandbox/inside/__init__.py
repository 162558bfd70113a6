"""The first process inside a sandbox: it starts commands and handles files.

The host sends these modules in as one archive, and talks to them over a socket. A frame is
four bytes of length and a JSON object, with descriptors beside them. Every path is looked up
inside, as for the agent's own programs and with their rights. The host never follows a path that
an agent could have bent.

The modules import only the standard library of Python 3.9, because the interpreter inside need
not be the host's. They have no threads, because they fork.

Nothing inside can kill it, because it is process 1. Everything inside ends with it, and it ends
when the host goes away.
"""
