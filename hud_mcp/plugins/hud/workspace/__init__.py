"""HUD's workspace: a shell with a folder."""
