"""Tests of the MCP surface; a package, so that names may repeat those of other tests."""
