"""Parts that every room uses: text, time, hosts, sockets, the log and the names that load late."""

__version__ = "0.1.0"
