"""The first process inside a sandbox: it starts commands and handles files.

The host sends these modules in as one archive, and talks to them over a socket. A frame is four
bytes of length and a JSON object, with descriptors beside them. Every path is looked up inside,
with the rights of the agent's own programs; the host never follows one.

The modules import only the standard library of Python 3.9, because the interpreter inside need not
be the host's. They have no threads, because they fork. As process 1, nothing inside can kill it,
and everything inside ends with it.
"""
