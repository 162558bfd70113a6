"""Templates in their own process, which sees its session's folder at the path in the author's file.

`process` is the server's side, a generator like any other. `launcher` has one process that loads
this library once, and forks for each template. A fork begins in `namespaces`, and `runner` is its
program.
"""

from hud_mcp.plugins.hud.place.process import TemplateProcess

__all__ = ["TemplateProcess"]
