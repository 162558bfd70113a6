"""The programs that start `hud-mcp` over stdio: where each keeps its servers, and how to add one.

`client` says where, `jsonc` and `toml` edit a text and keep the rest of it, `change` writes one
file, `entry` is what is written, and `trial` starts it as the client would.
"""
