"""What shows a record, which lies above it: the player of a notebook and the table of a job."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.notebook import trajectory_html as trajectory_html
    from hud_mcp.plugins.view.notebook_job import job_html as job_html
else:
    __getattr__ = lazy_names(__name__)
