"""Templates with a process of their own, which sees its session's folder where its file names it.

`process` is the server's side of one, a generator like any other; `launcher` starts them by
asking a process that has loaded this library once, `forks`, for forks of it. `namespaces` is
where such a fork begins, and `runner` is what it does.
"""

from hud_mcp.plugins.hud.place.process import TemplateProcess

__all__ = ["TemplateProcess"]
