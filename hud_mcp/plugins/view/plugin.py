"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "view",
    commands={
        "view": Command(
            "hud_mcp.plugins.view.commands.view:command",
            "Show jobs, trajectories and running sessions in a web page.",
        ),
        "export": Command(
            "hud_mcp.plugins.view.commands.export:command",
            "Write a job or a trajectory as JSON Lines, Parquet, ATIF, HTML or GIF.",
        ),
    },
    agents={"human": "hud_mcp.plugins.view.human:HUMAN"},
    exports={
        "jsonl": "hud_mcp.plugins.view.export.formats:export_jsonl",
        "parquet": "hud_mcp.plugins.view.export.tables:export_parquet",
        "atif": "hud_mcp.plugins.view.export.atif:export_atif",
        "html": "hud_mcp.plugins.view.export.formats:export_html",
        "gif": "hud_mcp.plugins.view.export.formats:export_gif",
        "otel": "hud_mcp.plugins.view.export.otel:export_otel",
    },
    names={"hud_mcp.export": "hud_mcp.plugins.view.export"},
    services={
        "Job.dataframe": "hud_mcp.plugins.view.export.tables:job_dataframe",
        "job in a notebook": "hud_mcp.plugins.view.notebook:job_html",
        "trajectory in a notebook": "hud_mcp.plugins.view.notebook:trajectory_html",
        "opened store": "hud_mcp.plugins.view.outlines:opened_store",
        "live routes": "hud_mcp.plugins.view.web.live:live_routes",
        "job page": "hud_mcp.plugins.view.commands.view:job_page",
        "job report": "hud_mcp.plugins.view.web.report:write_report",
        "job outlines": "hud_mcp.plugins.view.outlines:Outlines",
        "find trajectories": "hud_mcp.plugins.view.export.exporting:find_trajectories",
        "subscriptions": "hud_mcp.plugins.view.subscriptions:serve_subscriptions",
    },
)
