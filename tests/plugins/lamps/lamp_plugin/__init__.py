"""A plugin of another distribution. Its table loads nothing that it names."""

from hud_mcp.registry import Command, Plugin

print("a plugin that prints as it loads")

PLUGIN = Plugin(
    "lamps",
    agents={"lamplighter": "lamp_plugin.room:LAMPLIGHTER"},
    commands={"lamps": Command("lamp_plugin.command:command", "Say how many lamps a room has.")},
    exports={"lamp-log": "lamp_plugin.export:LOG"},
    functions={"lamp_names": "lamp_plugin.grading:lamp_names"},
    sets={"Lamps": "lamp_plugin.rows:SET"},
    sources={"lamp": "lamp_plugin.room:SCHEME"},
)
