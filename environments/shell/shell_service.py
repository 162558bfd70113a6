"""A service that does not start: its settings are to be repaired, and it is started elsewhere."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal

from shell_files import File, Files, Seed, draws, fill, graded, need, put, run
from shell_words import WORDS

from hud_mcp import Agent, Environment, Grade, ShellWorld

__all__ = ["declare", "service_case"]

Level = Literal["one", "several", "layers"]
SERVICE = '''"""Serves what is in stock. Usage: python3 service.py SETTINGS_FOLDER

It reads every file of the folder whose name ends in .ini, in the order of their names; a later
one overrides an earlier one. GET /status tells what it serves.
"""

import configparser
import http.server
import json
import pathlib
import sys

KNOWN = {"server": {"port", "workers", "mode"}, "store": {"data", "currency"}}


def stop(why):
    sys.exit(f"service: {why}")


def settings(folder):
    found = configparser.ConfigParser(interpolation=None)
    for path in sorted(pathlib.Path(folder).glob("*.ini")):
        try:
            found.read_string(path.read_text(encoding="utf-8"), source=str(path))
        except (configparser.Error, UnicodeDecodeError) as exc:
            stop(f"{path.name}: {exc}")
    for section in found.sections():
        for name in found[section]:
            if name not in KNOWN.get(section, ()):
                stop(f"[{section}] {name}: there is no such setting")
    return found


def number(found, name, low, high):
    text = found.get("server", name, fallback="")
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        stop(f"[server] {name}: {text!r} is no whole number from {low} to {high}")
    return int(text)


def status(found):
    mode = found.get("server", "mode", fallback="")
    if mode not in ("safe", "fast"):
        stop(f"[server] mode: {mode!r} is neither safe nor fast")
    path = pathlib.Path(found.get("store", "data", fallback=""), "stock.json")
    try:
        stock = json.loads(path.read_text())
    except (OSError, ValueError) as exc:
        stop(f"[store] data: {path} cannot be read: {exc}")
    currency = found.get("store", "currency", fallback="")
    if currency not in ("EUR", "NOK", "CHF"):
        stop(f"[store] currency: {currency!r} is not EUR, NOK or CHF")
    return {
        "port": number(found, "port", 1024, 65535),
        "workers": number(found, "workers", 1, 8),
        "mode": mode,
        "currency": currency,
        "stock": stock,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = json.dumps(STATUS).encode() if self.path == "/status" else b"{}"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    STATUS = status(settings(sys.argv[1]))
    http.server.ThreadingHTTPServer(("127.0.0.1", STATUS["port"]), Handler).serve_forever()
'''
ASK = """
import subprocess, sys, time, urllib.error, urllib.request
service = subprocess.Popen(["python3", "-I", "service.py", "settings"])
opened = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for _ in range(2000):
    try:
        print(opened.open(f"http://127.0.0.1:{sys.argv[1]}/status", timeout=10).read().decode())
        break
    except (urllib.error.URLError, OSError):
        if service.poll() is not None:
            break
        time.sleep(0.01)
service.kill()
"""


@dataclass(frozen=True)
class ServiceCase:
    """What the task's folder has, and what the service is to tell."""

    files: Files
    wanted: dict[str, Any]
    data: str


def service_case(seed: int, level: str) -> ServiceCase:
    """Draw settings, with faults."""
    draw = draws(f"service/{level}", seed)
    data, other = (f"data/{name}" for name in draw.sample(WORDS, 2))
    stocks = {
        path: {draw.choice(WORDS): draw.randint(1, 99) for _ in range(4)} for path in (data, other)
    }
    wanted = {
        "port": draw.randint(2000, 60_000),
        "workers": draw.randint(2, 8),
        "mode": "safe",
        "currency": draw.choice(("EUR", "NOK", "CHF")),
        "stock": stocks[data],
    }
    base = {f"{path}/stock.json": json.dumps(stock) for path, stock in stocks.items()}
    files: dict[str, File | str | bytes] = {**base, "service.py": SERVICE}
    files["data/old/stock.json"] = '{"nothing": '
    values = {**wanted, "data": data}
    if level == "one":
        name = draw.choice(("port", "workers", "currency", "data"))
        values[name] = {"port": f"{wanted['port']}O", "workers": "-2"}.get(name, f"{values[name]}s")
        files["settings/service.ini"] = as_ini(values)
        return ServiceCase(files, wanted, data)
    values |= {"port": f"{wanted['port']} # was 80", "workers": draw.choice(("12", "2.0", "four"))}
    values["data"] = draw.choice(("data/old", "data/new"))
    text = as_ini(values).replace("mode =", draw.choice(("mdoe =", "mode_ =")))
    files["settings/service.ini"] = text
    if level == "layers":
        files["settings/service.ini"] = as_ini({**wanted, "data": data})
        files["service.ini"] = as_ini({**wanted, "data": data})
        files["settings/10-base.ini"] = text
        late = {"port": wanted["port"] + 1, "mode": "fast", "workers": 1}
        files["settings/zz-host.ini"] = f"\ufeff{as_ini({**values, **late})}"
        files["settings/zz-host.ini.orig"] = as_ini({**wanted, "data": other})
    return ServiceCase(files, wanted, data)


def as_ini(values: dict[str, Any]) -> str:
    """Settings as a file has them."""
    sections = {"server": ("port", "workers", "mode"), "store": ("data", "currency")}
    lines: list[str] = []
    for section, names in sections.items():
        lines += [f"[{section}]", *(f"{name} = {values[name]}" for name in names), ""]
    return "\n".join(lines)


async def start_service(
    shell: ShellWorld, seed: Seed = 0, level: Level = "one"
) -> AsyncGenerator[str | Grade]:
    """Ask for settings with which a service starts."""
    case = service_case(seed, level)
    wanted = case.wanted
    await need(shell)
    await fill(shell, case.files)
    yield (
        "`python3 service.py settings` in /workspace does not start the service as it should. "
        "Repair the files in /workspace/settings, and nothing else, so that it starts and serves "
        f"the stock of the folder {case.data} on port {wanted['port']}, with "
        f"{wanted['workers']} workers, in the mode {wanted['mode']} and the currency "
        f"{wanted['currency']}. GET /status tells what it serves. It is started anew for grading, "
        "with your settings: you need not leave it running."
    )
    kept = {path: each for path, each in case.files.items() if not path.startswith("settings/")}
    async with shell.verifier(copy=["settings"]) as clean:
        await put(clean, kept)
        ask = ["python3", "-I", "-c", ASK, str(wanted["port"])]
        done = await clean.run(ask, timeout_s=45)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        told = {}
    yield graded({name: told.get(name) == value for name, value in wanted.items()})


async def solve_service(agent: Agent, level: str) -> str:
    """Start it, read what it says, repair that, and start it again."""
    await run(agent, "ls -la . settings data/*")
    await run(agent, "cat service.py")
    await run(agent, "timeout 1 python3 service.py settings; tail -n +1 settings/*")
    told = agent.prompt.partition("the folder ")[2].replace(",", " ").replace(".", " ").split()
    data, port, workers, currency = (
        told[0],
        told[3],
        told[5],
        told[told.index("currency") + 1],
    )
    last = "zz-host" if level == "layers" else "service"
    names = ["10-base", "service", "zz-host"] if level == "layers" else ["service"]
    for name in names:
        repair = (
            f"sed -i -E 's/^\\xef\\xbb\\xbf//; s/^(mdoe|mode_) /mode /' settings/{name}.ini; "
            f"cat -A settings/{name}.ini"
        )
        await run(agent, repair)
        await run(agent, "timeout 1 python3 service.py settings")
    values = {"port": port, "workers": workers, "mode": "safe", "data": data, "currency": currency}
    for name, value in values.items():
        await run(agent, f"sed -i 's|^{name} = .*|{name} = {value}|' settings/{last}.ini")
    url = f"http://127.0.0.1:{port}/status"
    look = f"import urllib.request as u; print(u.urlopen('{url}').read().decode())"
    await run(
        agent,
        "python3 service.py settings & for i in $(seq 100); do "
        f'python3 -c "{look}" 2>/dev/null && break; done; kill %1',
    )
    return "done"


def declare(env: Environment) -> None:
    """Declare the template of this file."""
    env.template(description="Start a service that does not start")(start_service).oracle(
        solve_service
    )
