"""Who is answered: requests that name the server, from its own pages, with the token."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from recorded import Run, shot, step
from tables import each_of

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.server.web.auth import Hosts

pytestmark = pytest.mark.anyio

HOST = "http://127.0.0.1:8199"
TOKEN = "correct horse battery"


def client(app: object, base: str = HOST) -> httpx.AsyncClient:
    """A client that speaks to an app without a socket."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=base)  # pyright: ignore[reportArgumentType]  # any ASGI app


@pytest.fixture
async def asks(run: Run) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a viewer on loopback, over a record of one trajectory."""
    await run.add("one", [step(0, see=shot("red"))], reward=1)
    async with client(viewer_app(run.store)) as asking:
        yield asking


@each_of(
    ("bound", "more", "header", "answered"),
    [
        ("127.0.0.1", (), "127.0.0.1:8199", True),
        ("127.0.0.1", (), "localhost", True),
        ("127.0.0.1", (), "[::1]:80", True),
        ("127.0.0.1", (), "evil.example", False),
        ("127.0.0.1", (), "127.0.0.1.evil.example:8199", False),
        ("127.0.0.1", (), "localhost.evil.example", False),
        ("127.0.0.1", (), "192.168.1.5:8199", False),
        ("127.0.0.1", (), "", False),
        ("127.0.0.1", (), "127.0.0.1:8199@evil.example", False),
        ("127.0.0.1", (), "localhost:80 evil.example", False),
        ("127.0.0.1", (), "[::1]evil.example", False),
        ("127.0.0.1", (), "[::1", False),
        ("0.0.0.0", (), "192.168.1.5:80@evil.example", False),
        ("0.0.0.0", (), "192.168.1.5:8199", True),
        ("0.0.0.0", (), "evil.example", False),
        ("box.example", (), "box.example:1", True),
        ("127.0.0.1", ("box.example",), "box.example:8199", True),
        ("127.0.0.1", ("box.example:*",), "BOX.example:1", True),
        ("127.0.0.1", ("box.example:80",), "box.example:81", False),
    ],
)
def test_a_server_is_named_by_its_own_names(
    bound: str,
    more: tuple[str, ...],
    header: str,
    answered: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """A name that somebody else's DNS resolves to this machine is not one of them."""
    assert Hosts(bound, more).allows(header) is answered


async def test_a_foreign_host_reads_nothing(asks: httpx.AsyncClient) -> None:
    """A page under another name that resolves here is refused, whatever it asks for."""
    for path in ("/", "/api/jobs", "/picture?id=tr-0&hash=" + shot("red").sha256, "/assets/app.js"):
        answer = await asks.get(path, headers={"host": "evil.example:8199"})
        assert answer.status_code == 421
        assert "one" not in answer.text.split()


async def test_only_its_own_pages_may_ask(asks: httpx.AsyncClient) -> None:
    """Requests from pages elsewhere are refused; a link that a person follows is not."""
    own = {"origin": HOST}
    assert (await asks.get("/api/jobs", headers=own)).status_code == 200
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ):
        assert (await asks.get("/api/jobs", headers=headers)).status_code == 403
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await asks.get("/", headers=link)).status_code == 200


async def test_nothing_can_be_written(asks: httpx.AsyncClient) -> None:
    """Every method but GET and HEAD is refused."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in ("/", "/api/job", "/live/x"):
            assert (await asks.request(method, path)).status_code == 405


async def test_every_answer_is_guarded(asks: httpx.AsyncClient) -> None:
    """Pages, data, errors and files carry the policy and are not sniffed, framed or kept."""
    for path in ("/", "/api/jobs", "/nothing", "/live/nothing", "/assets/app.js"):
        headers = (await asks.get(path)).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] in ("no-store", "no-cache")


async def test_with_a_token_nobody_reads_without_it(run: Run) -> None:
    """The address with the token opens it and leaves a cookie; a bearer token does too."""
    await run.add("one", reward=1)
    app = viewer_app(run.store, host="0.0.0.0", token=TOKEN)
    async with client(app, "http://192.168.1.5:8199") as asking:
        for path in ("/", "/api/jobs", "/?token=wrong", "/api/jobs?token=" + TOKEN):
            assert (await asking.get(path)).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await asking.get("/api/jobs", headers=bearer)).status_code == 200
        wrong = {"authorization": "Bearer wrong"}
        assert (await asking.get("/api/jobs", headers=wrong)).status_code == 401
        opened = await asking.get("/", params={"token": TOKEN})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        assert (await asking.get("/api/jobs")).status_code == 200


async def test_a_live_page_needs_no_token_but_its_own(run: Run) -> None:
    """Its address can be given away without the record."""
    live = "ab" * 16
    await run.add("one", outcome=None, live_token=live)
    app = viewer_app(run.store, host="0.0.0.0", token=TOKEN)
    async with client(app, "http://192.168.1.5:8199") as asking:
        assert (await asking.get(f"/live/{live}")).status_code == 200
        assert (await asking.get("/assets/live.js")).status_code == 200
        for path in ("/live/../api/jobs", "/live/%2e%2e/api/jobs", "/assets/../"):
            assert (await asking.get(path)).status_code in (401, 404)


async def test_only_pictures_of_the_record_are_served(
    asks: httpx.AsyncClient, run: Run, tmp_path: Path
) -> None:
    """Neither another file of the disk, nor a picture that no step of the trajectory has."""
    (tmp_path / "secret.png").write_bytes(shot("blue").data)
    other = shot("white")
    (run.file_of(other).parent).mkdir(parents=True, exist_ok=True)
    run.file_of(other).write_bytes(other.data)
    good = await asks.get("/picture", params={"id": "tr-0", "hash": shot("red").sha256})
    assert (good.status_code, good.headers["content-type"]) == (200, "image/png")
    assert good.content == shot("red").data
    for wanted in (other.sha256, "../../secret", "../store.sqlite3", "", "%2e%2e/secret.png"):
        answer = await asks.get("/picture", params={"id": "tr-0", "hash": wanted})
        assert answer.status_code == 404, wanted
    run.file_of(shot("red")).write_bytes(b"cut")
    damaged = await asks.get("/picture", params={"id": "tr-0", "hash": shot("red").sha256})
    assert damaged.status_code in (404, 410)
    assert damaged.headers["content-type"].startswith("text/plain")


async def test_no_path_leads_out_of_the_assets(asks: httpx.AsyncClient) -> None:
    """Only the named files are read."""
    for name in ("../pages.py", "%2e%2e/pages.py", "..%2fpages.py", "viewer.html", "", "x.js"):
        assert (await asks.get(f"/assets/{name}")).status_code == 404


async def test_what_is_not_there_is_said(asks: httpx.AsyncClient) -> None:
    """Errors of the data are words in JSON, with a status."""
    for path, status in (
        ("/api/job?id=none", 404),
        ("/api/trajectory?id=none", 404),
        ("/api/steps?id=tr-0", 400),
        ("/api/steps?id=tr-0&start=0&stop=99999999999", 400),
        ("/api/rows?id=none&start=0&revision=x", 409),
    ):
        answer = await asks.get(path)
        assert answer.status_code == status
        assert answer.json()["error"]
