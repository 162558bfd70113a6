"""Agents that speak the Agent Client Protocol: `--agent acp:NAME`, `--agent acp:COMMAND`."""
