"""The commands of this plugin."""
