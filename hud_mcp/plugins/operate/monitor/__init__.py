"""The state, the metrics and the traces of a server."""
