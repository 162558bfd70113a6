"""A task's own site: its files, its backend, and the state that belongs to one session."""

# ruff: noqa: E501  # pages are easier to read unbroken

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest, SiteResponse
from hud_mcp.worlds.browser.site import MAX_BODY_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]


async def shop(request: SiteRequest, state: dict[str, Any]) -> Any:
    """Count, echo, redirect, fail, or know nothing."""
    match request.path:
        case "/api/count":
            before = state.get("count", 0)
            await anyio.lowlevel.checkpoint()
            state["count"] = before + 1
            return state
        case "/api/echo":
            return {
                "method": request.method,
                "query": dict(request.query),
                "json": request.json,
                "form": request.form,
                "type": request.headers.get("content-type"),
            }
        case "/api/done":
            return SiteResponse.redirect("/done.html")
        case "/api/text":
            return SiteResponse(text="a,b", status=201, headers={"Content-Type": "text/csv"})
        case "/api/boom":
            raise RuntimeError("the author's mistake")
    return None


async def get(world: BrowserWorld, path: str, **options: Any) -> httpx.Response:
    """Ask the world's site from outside of the browser, with the path sent as it is."""
    async with httpx.AsyncClient(trust_env=False) as client:
        url = httpx.URL(world.site_address).copy_with(raw_path=path.encode())
        return await client.request(options.pop("method", "GET"), url, **options)


@pytest.mark.long
async def test_a_site_without_its_start_page_says_which_start_works(
    shared: Shared, tmp_path: Path
) -> None:
    """A folder that has no index.html: what the error advises opens."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "table.html").write_text("<h1>Table</h1>")
    opening = Opening(folder=tmp_path, shared=shared)
    with pytest.raises(EnvironmentFailed) as caught:
        await Browser("site").open(opening)
    advised = re.findall(r"start=(?:'([^']*)'|None)", str(caught.value))
    assert advised == ["/table.html", ""], caught.value
    for start in advised:
        world = await Browser("site", start=start or None).open(opening)
        assert world.url.endswith(start or "about:blank")
        await world.close()


async def test_files_are_served_with_their_types_and_never_cached(browse: Browse) -> None:
    """Each kind of file has the type that makes it load, and `no-store`."""
    world = await browse(
        {"index.html": "<h1>Hi</h1>", "a.js": "1", "a.mjs": "1", "a.css": "", "a.svg": "<svg/>",
         "a.json": "{}", "a.wasm": "", "sub/index.html": "<h1>Sub</h1>", "ä b.txt": "x"}
    )  # fmt: skip
    expected = {"/": "text/html", "/a.js": "text/javascript", "/a.mjs": "text/javascript",
                "/a.css": "text/css", "/a.svg": "image/svg+xml", "/a.json": "application/json",
                "/a.wasm": "application/wasm", "/sub/": "text/html",
                "/%C3%A4%20b.txt": "text/plain"}  # fmt: skip
    for path, mime in expected.items():
        response = await get(world, path)
        assert response.status_code == 200, path
        assert response.headers["content-type"].partition(";")[0] == mime
        assert response.headers["cache-control"] == "no-store"
    assert (await get(world, "/sub")).headers["location"] == "/sub/"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/sub/../../secret.txt", "/link.txt",
     "/linked/secret.txt", "//etc/passwd", "/..\\secret.txt", "/%00", "/sub/", "/sub", "/none"],
)  # fmt: skip
async def test_nothing_outside_of_the_folder_is_served(
    browse: Browse, tmp_path: Path, path: str
) -> None:
    """Dots, links that lead out, NUL bytes and listings of folders are all a 404."""
    (tmp_path / "secret.txt").write_text("classified")
    world = await browse({"index.html": "x", "sub/a.txt": "x"})
    (tmp_path / "site0" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "site0" / "linked").symlink_to(tmp_path)
    async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as client:
        url = httpx.URL(world.site_address).copy_with(raw_path=path.encode())
        response = await client.get(url)
    assert response.status_code == 404
    assert "classified" not in response.text


async def test_the_backend_sees_the_request_and_its_answer_arrives(browse: Browse) -> None:
    """Method, query, JSON and form go in; JSON, text, redirects and a 404 come out."""
    world = await browse(backend=shop)
    echo = (await get(world, "/api/echo?a=1&a=2&b=", method="POST", json={"x": [1]})).json()
    assert echo["query"] == {"a": "1", "b": ""}
    assert (echo["method"], echo["json"], echo["type"]) == ("POST", {"x": [1]}, "application/json")
    assert (await get(world, "/api/echo", method="PUT", data={"n": "ä b"})).json()["form"] == {
        "n": "ä b"
    }
    text = await get(world, "/api/text")
    assert (text.status_code, text.text) == (201, "a,b")
    assert text.headers["content-type"].startswith("text/csv")
    assert (await get(world, "/api/done")).headers["location"] == "/done.html"
    assert (await get(world, "/api/none")).status_code == 404
    assert (await get(world, "/index.html", method="POST")).status_code == 405


async def test_a_backend_that_fails_is_a_500_and_a_line_in_the_log(browse: Browse) -> None:
    """The page gets an error without details; the session's log has them."""
    lines: list[str] = []
    world = await browse(backend=shop, log=lines.append)
    response = await get(world, "/api/boom")
    assert response.status_code == 500
    assert "mistake" not in response.text
    assert "the author's mistake" in lines[0]
    assert (await get(world, "/api/count")).json() == {"count": 1}


@pytest.mark.long
async def test_a_body_over_the_limit_is_refused(browse: Browse) -> None:
    """A megabyte is the limit; the backend is not asked beyond it."""
    world = await browse(backend=shop)
    fits = await get(world, "/api/echo", method="POST", content=b"x" * MAX_BODY_BYTES)
    assert fits.status_code == 200
    over = await get(world, "/api/count", method="POST", content=b"x" * (MAX_BODY_BYTES + 1))
    assert over.status_code == 413
    assert world.state == {}


@pytest.mark.long
async def test_requests_take_turns_at_the_state(browse: Browse) -> None:
    """Ten requests at once count to ten, although the backend pauses between read and write."""
    world = await browse(backend=shop)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(get, world, "/api/count")
    assert world.state == {"count": 10}


async def test_each_session_has_a_state_of_its_own(browse: Browse) -> None:
    """The initial state is copied, cookies and storage are not shared, a grader may write."""
    initial: dict[str, Any] = {"count": 5, "list": []}
    one, two = [await browse(backend=shop, state=initial) for _ in range(2)]
    for world in (one, two):
        world.state["list"].append(1)
        await world.page.evaluate(
            "() => { document.cookie += 'x'; localStorage.n = 1 + +(localStorage.n || 0) }"
        )
    await get(one, "/api/count")
    assert (one.state["count"], two.state["count"], initial) == (6, 5, {"count": 5, "list": []})
    assert one.state["list"] == [1]
    assert await two.page.evaluate("() => localStorage.n") == "1"


@pytest.mark.long
async def test_a_state_may_be_made_from_the_opening(browse: Browse) -> None:
    """A function of the opening sees the seed, and is called once for each session."""
    world = await browse(backend=shop, state=lambda opening: {"count": opening.seed}, seed=41)
    await get(world, "/api/count")
    assert world.state == {"count": 42}


@pytest.mark.long
async def test_the_site_has_the_same_secure_origin_in_every_session(browse: Browse) -> None:
    """Addresses mean the same after a restart, and pages have what needs a secure context."""
    worlds = [await browse() for _ in range(2)]
    for world in worlds:
        assert world.url == world.site_url + "/" == "http://site.localhost/"
        assert await world.page.evaluate("() => isSecureContext && !!crypto.subtle")
    assert worlds[0].site_address != worlds[1].site_address


@pytest.mark.long
async def test_a_name_that_points_at_the_port_is_not_served(browse: Browse) -> None:
    """A page of the user's own browser that rebinds its name gets a 403."""
    world = await browse()
    response = await get(world, "/", headers={"host": "evil.example"})
    assert response.status_code == 403


@pytest.mark.long
async def test_a_folder_that_is_not_there_is_an_environments_failure(
    shared: Shared, tmp_path: Path
) -> None:
    """The error names the folder."""
    with pytest.raises(EnvironmentFailed, match="nowhere"):
        await Browser("nowhere").open(Opening(folder=tmp_path, shared=shared))


@pytest.mark.long
async def test_a_backend_needs_no_folder(shared: Shared) -> None:
    """A site that is all backend starts on a blank page where `/` is not answered otherwise."""
    world = await Browser(backend=shop, start=None).open(Opening(shared=shared))
    try:
        await world.goto("/api/count")
        assert '"count":1' in await world.text()
    finally:
        await world.close()


def test_a_state_without_a_backend_is_refused() -> None:
    """A state that nothing could change is an author's mistake."""
    with pytest.raises(InvalidEnvironment, match="backend"):
        Browser("site", state={"a": 1})


@pytest.mark.long
async def test_closing_while_the_backend_works_is_silent(
    browse: Browse, caplog: pytest.LogCaptureFixture
) -> None:
    """A world that closes cuts its backend off, and nothing is logged as an error of it."""
    entered = anyio.Event()

    async def endless(request: SiteRequest, state: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        await anyio.sleep_forever()
        return {}

    world = await browse("<script>fetch('/api/x')</script>", backend=endless, start=None)
    async with anyio.create_task_group() as group:
        group.start_soon(world.page.goto, world.site_url + "/")
        with anyio.fail_after(PATIENCE_S):
            await entered.wait()
    with anyio.fail_after(PATIENCE_S):
        await world.close()

    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
