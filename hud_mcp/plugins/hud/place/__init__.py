"""Templates in their own process, which sees its session's folder at the path in the author's file.

`launcher` has one process that loads this library once, and forks for each template.
"""

from hud_mcp.plugins.hud.place.process import TemplateProcess

__all__ = ["TemplateProcess"]
