"""A HUD environment with a browser: a Chromium whose debugging port is published."""

# ruff: noqa: ANN001, ANN003, ANN201, ASYNC110, D103, RUF100  # as authors of HUD environments write

import asyncio
import os
import socket
import tempfile
from pathlib import Path

import httpx
import uvicorn
from hud import Environment
from hud.capabilities import Capability
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

env = Environment("pages")
SAVED: list[str] = []
PAGE = """<title>Notes</title><body style="margin:0"><h1>Notes</h1>
<input id=note placeholder="A note"><button onclick="save()">Save</button>
<p id=said>nothing yet</p>
<button style="position:absolute;left:40px;top:300px;width:200px;height:60px"
 onclick="said.textContent='clicked'">By place</button><a href="/other">Other</a>
<script>async function save() { await fetch('/save/' + note.value); said.textContent = note.value }
</script>"""


async def page(request):
    return HTMLResponse(PAGE if request.url.path == "/" else "<title>Other</title><p>Elsewhere")


async def save(request):
    SAVED.append(request.path_params["text"])
    (Path(os.environ["NOTES"]) / "saved").write_text(SAVED[-1])
    return PlainTextResponse("saved")


@env.initialize
async def begin():
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    routes = [Route("/", page), Route("/other", page), Route("/save/{text}", save)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
    env.serving = asyncio.create_task(server.serve([sock]))
    env.site = f"http://127.0.0.1:{sock.getsockname()[1]}"
    folder = Path(tempfile.mkdtemp())
    env.chromium = await asyncio.create_subprocess_exec(
        os.environ["CHROMIUM"], "--headless", "--no-sandbox", "--remote-debugging-port=0",
        "--window-size=900,600", f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    told = folder / "DevToolsActivePort"
    while not (told.exists() and told.read_text().count("\n")):
        await asyncio.sleep(0.05)
    env.port = told.read_text().splitlines()[0]
    env.add_capability(Capability.cdp(url=f"ws://127.0.0.1:{env.port}"))
    env.add_capability(Capability.cdp(name="second", url=f"ws://127.0.0.1:{env.port}"))


@env.shutdown
async def end():
    env.chromium.kill()
    await env.chromium.wait()


@env.template()
async def remember(what: str = "tea"):
    """Save a note on a page."""
    SAVED.clear()
    async with httpx.AsyncClient() as http:
        await http.put(f"http://127.0.0.1:{env.port}/json/new?{env.site}/")
        for old in (await http.get(f"http://127.0.0.1:{env.port}/json")).json():
            if old["type"] == "page" and not old["url"].startswith(env.site):
                await http.get(f"http://127.0.0.1:{env.port}/json/close/{old['id']}")
    yield f"Save the note {what!r}."
    yield 1.0 if what in SAVED else 0.0


@env.template()
async def kill():
    env.chromium.kill()
    await env.chromium.wait()
    yield "The browser has ended."
    yield 1.0
