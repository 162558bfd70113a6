"""Parts that every room uses: text, time, hosts, the log, late names, and the package's version."""

__version__ = "0.1.0"
