"""Endpoints: the addresses of a session's own capabilities (ssh/2, cdp/1.3, openpi/0, …)."""
