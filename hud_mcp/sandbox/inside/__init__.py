"""What runs inside a sandbox as its first process: it starts commands and handles files.

The host sends these modules in as one archive, and talks to them over a socket: frames of
four bytes of length and a JSON object, with descriptors beside them. So every path is looked
up where the agent's own programs look it up, with the rights that they have; the host never
follows a path that an agent could have bent. They import the standard library alone, as
Python 3.9 has it, because the interpreter inside need not be the host's. They have no
threads: they fork.

As process 1 it cannot be killed from inside, and everything inside ends when it does; when
the host goes away, it ends.
"""
