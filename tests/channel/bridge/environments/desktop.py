"""A HUD environment with a desktop: an Xvnc whose one program is a page that tells what happens."""

# ruff: noqa: ANN001, ANN003, ANN201, ASYNC110, ASYNC240, D103, S304, S305, RUF100  # as HUD's authors write

import asyncio
import os
import socket
import tempfile
from pathlib import Path

import uvicorn
from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from hud import Environment
from hud.capabilities import Capability
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

env = Environment("desktop")
EVENTS: list[str] = []
PAGE = """<title>Desk</title><body style="margin:0;background:#204060" oncontextmenu="return false">
<textarea id=t style="position:absolute;left:100px;top:100px;width:300px;height:80px"></textarea>
<div style="position:absolute;left:500px;top:100px;width:100px;height:100px;background:#f00"
 onmousedown="this.style.background='#0f0'"></div>
<script>
const tell = (...words) => fetch('/tell/' + encodeURIComponent(words.join(' ')));
onmousedown = e => tell('down', e.button, e.clientX, e.clientY, e.shiftKey ? 'shift' : '');
onmouseup = e => tell('up', e.button, e.clientX, e.clientY);
ondblclick = () => tell('double');
onwheel = e => tell('wheel', Math.sign(e.deltaX), Math.sign(e.deltaY));
onkeydown = e => { if (e.ctrlKey) { e.preventDefault(); tell('key', e.key); } };
t.oninput = () => tell('text', t.value);
tell('ready');
</script>"""


async def page(request):
    return HTMLResponse(PAGE)


async def tell(request):
    EVENTS.append(request.path_params["text"].strip())
    (Path(os.environ["NOTES"]) / "events").write_text("\n".join(EVENTS))
    return PlainTextResponse("")


def passwords(folder: Path) -> Path:
    """A file with the password `tea`, as VNC servers keep them."""
    cipher = Cipher(TripleDES(bytes.fromhex("e84ad660c4721ae0") * 3), modes.ECB()).encryptor()
    file = folder / "passwd"
    file.write_bytes(cipher.update(b"tea".ljust(8, b"\0")))
    return file


async def begin_site() -> str:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    routes = [Route("/", page), Route("/tell/{text:path}", tell)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
    env.serving = asyncio.create_task(server.serve([sock]))
    return f"http://127.0.0.1:{sock.getsockname()[1]}/"


@env.initialize
async def begin():
    site = await begin_site()
    folder = Path(tempfile.mkdtemp())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
    display = port % 500 + 100
    env.screen = await asyncio.create_subprocess_exec(
        "Xvnc", f":{display}", "-rfbport", str(port), "-geometry", "800x600", "-depth", "24",
        "-SecurityTypes", "VncAuth", "-PasswordFile", str(passwords(folder)), "-localhost", **quiet,
    )  # fmt: skip
    while not Path(f"/tmp/.X11-unix/X{display}").exists():
        await asyncio.sleep(0.05)
    env.program = await asyncio.create_subprocess_exec(
        os.environ["CHROMIUM_HEADFUL"], "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", "--kiosk", "--window-size=800,600",
        "--window-position=0,0", f"--app={site}",
        env={**os.environ, "DISPLAY": f":{display}"}, start_new_session=True, **quiet,
    )  # fmt: skip
    while "ready" not in EVENTS:
        await asyncio.sleep(0.05)
    env.add_capability(Capability.rfb(url=f"rfb://127.0.0.1:{port}", password="tea"))
    env.add_capability(
        Capability.rfb(name="locked", url=f"rfb://127.0.0.1:{port}", password="coffee")
    )


@env.shutdown
async def end():
    os.killpg(env.program.pid, 9)
    env.screen.kill()
    await env.screen.wait()


@env.template()
async def write(what: str = "tea"):
    """Type something."""
    yield f"Type {what!r} into the field."
    yield 1.0 if f"text {what}" in EVENTS else 0.0
