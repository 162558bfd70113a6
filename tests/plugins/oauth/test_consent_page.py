"""The page of consent in a real browser: by keyboard, on a phone, without scripts, and with axe."""

import os
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
from axe import axe_source, findings
from playwright.async_api import Browser, Page, async_playwright, expect
from signing_in import PASSWORD, face, pkce, query_of
from starlette.responses import PlainTextResponse

from hud_mcp.base.listening import base_url, listen, port_of
from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.server.web.listener import serving
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.browser, pytest.mark.long]

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PHONE, DESK = {"width": 320, "height": 640}, {"width": 1280, "height": 800}
NAME = "A very long name of an app: " + "Wörterbuch" * 9


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A Chromium."""
    async with async_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        yield await driver.chromium.launch(executable_path=CHROMIUM, args=arguments)


@pytest.fixture
async def asked(kept: Store, people: PasswordFile) -> AsyncIterator[str]:
    """The address of the page on a server on loopback."""
    listener, app = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    base = base_url("127.0.0.1", port_of(listener))
    back = f"{base_url('127.0.0.1', port_of(app))}/callback"
    told = PlainTextResponse("The app has its answer.")
    async with face(kept, people, public=base) as at, serving(at.app, listener), serving(told, app):
        client_id = await at.client_id(client_name=NAME)
        more = {"resource": f"{base}/mcp", "scope": "work operate", "redirect_uri": back}
        yield base + at.asked(client_id, pkce()[1], **more)


async def opened(browser: Browser, url: str, **look: Any) -> Page:
    """The page, in a browser of its own."""
    page = await (await browser.new_context(**look)).new_page()
    await page.goto(url)
    return page


async def test_a_person_allows_it_by_keyboard_alone_on_a_phone_without_scripts(
    browser: Browser, asked: str
) -> None:
    """A wrong password is said, and the right one sends the browser back to the app."""
    page = await opened(browser, asked, viewport=PHONE, java_script_enabled=False)
    await expect(page.get_by_label("Name")).to_be_focused()
    await page.keyboard.type("ann")
    await page.keyboard.press("Tab")
    await page.keyboard.type("wrong password")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("wrong")
    await expect(page.get_by_label("Name")).to_have_value("ann")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The app has its answer.")).to_be_visible()
    assert "code" in query_of(page.url)


async def test_a_person_says_no_with_one_press(browser: Browser, asked: str) -> None:
    """No field has to be filled in for it."""
    page = await opened(browser, asked)
    await page.get_by_role("button", name="Deny").click()
    await expect(page.get_by_text("The app has its answer.")).to_be_visible()
    assert query_of(page.url)["error"] == "access_denied"


@pytest.mark.peers
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_axe_finds_nothing(
    browser: Browser, asked: str, scheme: Any, size: dict[str, int]
) -> None:
    """Nor is anything beside the screen, with a problem that is said and without."""
    look: dict[str, Any] = {"color_scheme": scheme, "viewport": size, "bypass_csp": True}
    page = await opened(browser, asked, **look)
    for _ in range(2):
        assert await findings(page, axe_source()) == []
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert await page.evaluate(wide)
        await page.get_by_label("Name").fill("ann")
        await page.get_by_label("Password").fill("wrong password")
        await page.get_by_role("button", name="Allow").click()
        await expect(page.get_by_role("alert")).to_be_visible()


async def test_the_page_is_shown_in_no_frame_of_another_page(browser: Browser, asked: str) -> None:
    """Nobody is led to press a button that they do not see."""
    page = await (await browser.new_context()).new_page()
    await page.route(
        "http://elsewhere.test/*",
        lambda route: route.fulfill(
            body=f'<iframe src="{asked.replace("&", "&amp;")}"></iframe>', content_type="text/html"
        ),
    )
    await page.goto("http://elsewhere.test/")
    await page.wait_for_load_state("networkidle")
    texts = [await frame.content() for frame in page.frames[1:]]
    assert not any("Allow" in text for text in texts)
