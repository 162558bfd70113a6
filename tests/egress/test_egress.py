"""What a session's own programs reach: of a sandbox and of a browser's pages, by one table."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import anyio
import pytest
from reaching import HERE, NAMES, OWN, REACHED, Reach, Service, fake_names, serving

from hud_mcp.base.egress import AllowList
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser

pytestmark = pytest.mark.anyio

Attempt = Callable[[Sequence[str], Sequence[str]], Awaitable[None]]
"""Opens a session with a list, and has it ask for each of some URLs."""

_FETCH = """async urls => {
  for (const url of urls) await fetch(url, { mode: 'no-cors', cache: 'no-store' }).catch(() => 0);
}"""

_SURFACES = [
    pytest.param("sandbox", marks=pytest.mark.sandbox),
    pytest.param("browser", marks=pytest.mark.browser),
]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> Any:
    """The browser that the tests' sessions share."""
    services = Shared()
    yield services
    await services.close()


@pytest.fixture(params=_SURFACES)
def attempt(request: pytest.FixtureRequest) -> Attempt:
    """Ask for URLs from inside of a sandbox, and from inside of a page."""
    if request.param == "sandbox":
        request.getfixturevalue("machine")
        return _in_a_sandbox
    services: Shared = request.getfixturevalue("shared")

    async def in_a_page(allow: Sequence[str], urls: Sequence[str]) -> None:
        world = await Browser(start=None, allow=allow).open(Opening(shared=services))
        try:
            await world.load_html("<h1>Within</h1>")
            await world.page.evaluate(_FETCH, list(urls))
        finally:
            await world.close()

    return in_a_page


async def _in_a_sandbox(allow: Sequence[str], urls: Sequence[str]) -> None:
    sandbox = await Sandbox.open(SandboxOptions(hosts=AllowList(allow)))
    try:
        ask = "curl -sSL --noproxy '' -m 10 -o /dev/null"
        await sandbox.run("\n".join(f"{ask} '{url}'; {ask} -p '{url}'" for url in urls))
    finally:
        await sandbox.close()


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that listens on every address of the machine, as many do."""
    with serving() as started:
        yield started


@pytest.mark.sampled(5)
@pytest.mark.parametrize("reach", REACHED, ids=str)
async def test_a_list_means_the_same_to_a_sandbox_and_to_a_page(
    attempt: Attempt, service: Service, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each host of the table is asked for; the service hears of those that are opened alone."""
    fake_names(monkeypatch, {**NAMES})
    allow = [each.replace("PORT", str(service.port)) for each in reach.allow]
    hosts = [*reach.reached, *reach.refused]
    urls = [f"http://{host}:{service.port}/{index}" for index, host in enumerate(hosts)]
    with anyio.fail_after(120):
        await attempt(allow, urls)
    assert service.paths == {f"/{index}" for index, _host in enumerate(reach.reached)}


async def test_a_redirect_leads_to_no_other_host(
    attempt: Attempt, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An allowed server cannot send its visitor on to this machine by another name or port."""
    fake_names(monkeypatch, {**NAMES})
    start = f"http://localhost:{service.port}/to/"
    with serving() as other, anyio.fail_after(120):
        ends = (
            f"localhost:{other.port}/port", f"127.0.0.1:{other.port}/address",
            f"home.example:{other.port}/name", f"{HERE}:{other.port}/own",
            f"localhost:{service.port}/allowed",
        )  # fmt: skip
        await attempt([f"localhost:{service.port}", "*"], [start + end for end in ends])
        assert other.asked == []
    assert "/allowed" in service.paths


@pytest.mark.skipif(OWN is None, reason="not on this machine: it has no network")
async def test_a_name_that_is_bound_anew_reaches_nothing_else(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that was admitted is the one connected to; the next answer is judged anew."""
    names: dict[str, list[Any]] = {
        "once.example": [[HERE], ["127.0.0.1"]],
        "then.example": [["127.0.0.1"], [HERE], ["127.0.0.1"]],
    }
    asked = fake_names(monkeypatch, names)
    with serving(HERE) as allowed, serving("127.0.0.1", allowed.port) as inner:
        urls = [f"http://{host}:{allowed.port}/{host}/{i}" for host in names for i in range(3)]
        with anyio.fail_after(120):
            await attempt([*names], urls)
        assert inner.asked == []
    assert {each.partition("/")[2].partition("/")[0] for each in allowed.asked} == {*names}
    # One connection, one look-up: nothing between the two could have been told another address.
    assert len(asked) >= len(urls)


async def test_no_name_server_hears_of_other_hosts(
    attempt: Attempt, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not on the list is refused before it is looked up."""
    asked = fake_names(monkeypatch, {**NAMES})
    secret = f"http://secret.leak.example:{service.port}/"
    with anyio.fail_after(120):
        await attempt(["listed.example"], [secret, f"http://listed.example:{service.port}/"])
    assert set(asked) == {"listed.example"}
