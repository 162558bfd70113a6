"""How the server shows itself to people: its description and its icon.

They are told once, when a connection begins: 2026-07-28 repeats what names the server with every
result, and a picture in each would weigh more than most of them.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp_types import SERVER_INFO_META_KEY

__all__ = ["DESCRIPTION", "ICON", "introduced"]

DESCRIPTION = (
    "Holds tasks in environments (web pages, shells, games, questions) for agents, and grades them."
)
"""In lists for people, at most 100 characters."""

ICON = {
    "src": "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwBAMAAAClLOS0AAAAJFBMVEX////+///9/v7x9PeDsK8lVIAZS3kZSngY"
    "SnkYSngXSngSRnVsocTiAAACEklEQVR42mWUsWsUQRTGfzM7sUjgcokKEmUzySUgF9GDw0IDQYQ0BwlaWB1EG2Nr"
    "lb9CsLEJBsUiYIwkVSw0RAio1UkQG9HcbS5HiqDe5mJ7Oxa3dzu7+6rZ9/F933tv5i2AGCcW4xpQwGjVKVh581UC"
    "AiS3h2KM5m/fQ4CeXIpLsbyR8RWy8Xw9ATz6W/MFeupiMQFU5ucDR54+/XkhAYx86kcyRoFUnK0LPeWmgbY7r0JV"
    "K1sEBKo+DezPZqP+3haBq0oA7etvLMbDzYJziAJoZKoW8OTBKbIDnKzYHurxaThEpr/E5ruaKXSA9mBgS3GDLgOn"
    "mGpFAc5B/KYGr9GViilxZi/0IPvHs4HLkcewDHPBxI6OPCAIOhQpb96q1ayquuHme0fZO2iQjXLpY9OWAtw6uPmt"
    "I12LM2RjZkw2yqVdQ5yhc/cX3PzWka4mPfrezTTKpd2ABMOrvzL9FqEHBO7qwEBpwU2X23p/p29Fe2mgeenlceRg"
    "9WFa2wgvAfgSaI4b44Uj6F7U50wVTLegg2eHXYaZaFX9MC10LpK6cv4kF6kvbhQAZQDnw6I1+/Ui7UGU62eguJ54"
    "1NlvKvqwwyDF8Vx6b75vog4O03nEvusY1/s3klzOuddNSevHvcpebM8qsy/wBWJ0csl4JpIZyq5t4ylMa4dzdy3G"
    "8dqveoAAtBevtiLD8cvEb2lYA/8BPR+jYV0Ve3MAAAAASUVORK5CYII=",
    "mimeType": "image/png",
    "sizes": ["48x48"],
}
"""A window with a tick."""

_FIRST_VERSION = "2025-11-25"
"""Of the protocol, that knows descriptions and icons."""


def introduced(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a connection begins with, with the server's description and icon.

    Args:
        told: The result of `initialize` or `server/discover`, as it goes over the wire.
    """
    if "serverInfo" in told and str(told.get("protocolVersion")) >= _FIRST_VERSION:
        return {**told, "serverInfo": _shown(told["serverInfo"])}
    meta: Any = told.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
        named = cast("dict[str, Any]", meta)
        shown = {**named, SERVER_INFO_META_KEY: _shown(named[SERVER_INFO_META_KEY])}
        return {**told, "_meta": shown}
    return dict(told)


def _shown(info: Mapping[str, Any]) -> dict[str, Any]:
    return {**info, "description": DESCRIPTION, "icons": [ICON]}
