"""Run `python -m hud_mcp.channel SOURCE`, which containers of HUD's runtimes do."""

from hud_mcp.plugins.hud.wire.command import serve_command

if __name__ == "__main__":
    serve_command(prog_name="python -m hud_mcp.channel")
