"""The HUD control channel, and the services that its sessions are given."""
