"""A client whose id is the address of its document, and addresses that are no client's."""

import json
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from signing_in import BACK, PUBLIC, RESOURCE, Face, face, pkce, query_of
from tables import each_of
from test_sdk_client import Kept
from tls_site import HOST, Site, site

from hud_mcp.base.egress import is_public
from hud_mcp.plugins.oauth.documents import DOCUMENT_BYTES, Documents
from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.plugins.oauth.values import Refused
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Site]:
    """A site of an app."""
    async with site(tmp_path) as found:
        yield found


@pytest.fixture
async def at(kept: Store, people: PasswordFile, here: Site) -> AsyncIterator[Face]:
    """A server that reads its documents."""
    async with face(kept, people, documents=here.documents()) as found:
        yield found


def document(here: Site, path: str = "/client.json", **more: Any) -> str:
    """Publish a client's document; return its address."""
    given = {
        "client_id": here.url(path),
        "client_name": "An app",
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
        **more,
    }
    return here.put(path, json.dumps(given))


async def test_a_client_is_known_by_its_document(at: Face, here: Site) -> None:
    """It registers nothing, and its document is read once. The page names the site that vouches."""
    client_id = document(here)
    page = await at.open(at.asked(client_id, pkce()[1]))
    assert HOST in page.text
    given = await at.signed_in(client_id)
    assert await at.whoami(given["access_token"]) is not None
    assert (await at.refresh(client_id, given["refresh_token"])).status_code == 200
    assert here.asked == ["/client.json"]


@each_of(
    "more",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_secret": "x"},
        {"redirect_uris": ["https://evil.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": []},
    ],
)
async def test_a_document_that_does_not_fit_is_refused(
    at: Face, here: Site, more: dict[str, Any]
) -> None:
    """The browser stays on the page that says so."""
    reply = await at.open(at.asked(document(here, **more), pkce()[1]))
    assert reply.status_code == 400
    assert "location" not in reply.headers


@each_of(
    "url",
    [
        "http://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example/a/../b",
        "https://user@app.example/client.json",
        "https://app.example/client.json#x",
        "https://app.example/a b",
        "https:///client.json",
        "https://[::1/client.json",
        "file:///etc/passwd",
    ],
)
async def test_an_address_of_another_form_is_never_asked(here: Site, url: str) -> None:
    """Its host is not even looked up."""
    with pytest.raises(Refused):
        await here.documents().fetch(url)
    assert (here.asked, here.looked_up) == ([], [])


async def test_a_document_on_a_private_address_is_never_asked_for(here: Site) -> None:
    """Whatever its name is: this machine, its network, and the cloud's metadata."""
    url = document(here)
    with pytest.raises(Refused, match="no public"):
        await here.documents(is_public).fetch(url)
    for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]",
                 "localhost", "0x7f000001"):  # fmt: skip
        with pytest.raises(Refused, match="no public"):
            await Documents().fetch(f"https://{host}:{here.port}/client.json")
    assert here.asked == []


async def test_one_private_address_among_public_ones_is_enough(here: Site) -> None:
    """A name that leads to both is a trap."""

    async def look_up(_host: str, _port: int) -> list[Any]:
        return [ip_address("93.184.216.34"), ip_address("127.0.0.1")]

    with pytest.raises(Refused, match="no public"):
        await Documents(look_up=look_up, verify=here.trusts).fetch(document(here))


async def test_the_checked_address_is_the_one_that_is_asked(here: Site) -> None:
    """A name is looked up once, so it cannot lead elsewhere the second time."""
    await here.documents().fetch(document(here))
    assert here.looked_up == [HOST]


@each_of(
    ("status", "more"),
    [
        ("302 Found", "location: https://app.example/client.json\r\n"),
        ("404 Not Found", ""),
        ("200 OK", "content-encoding: gzip\r\n"),
    ],
)
async def test_a_redirect_an_error_and_a_compressed_document_are_refused(
    here: Site, status: str, more: str
) -> None:
    """A redirect could lead to an address that nobody has checked."""
    url = here.put("/client.json", "{}", status=status, more=more)
    with pytest.raises(Refused):
        await here.documents().fetch(url)
    assert set(here.asked) == {"/client.json"}


@each_of("body", ["", "[]", "{", '"x"', "x" * (DOCUMENT_BYTES + 1), "[" * 4000])
async def test_a_document_is_a_small_object(here: Site, body: str) -> None:
    """Nothing else, and nothing deep or large."""
    with pytest.raises(Refused):
        await here.documents().fetch(here.put("/client.json", body))


@each_of("host", [".app.example", "a..b", "x" * 64 + ".example", 'a"b', "a_b"])
async def test_a_host_that_is_none_is_refused_as_any_other(here: Site, host: str) -> None:
    """The server does not fail over its spelling."""
    with pytest.raises(Refused):
        await here.documents().fetch(here.url("/client.json", host=host))


async def test_a_certificate_of_another_name_is_refused(here: Site) -> None:
    """The certificate is the name's, not the address's."""
    document(here)
    with pytest.raises(Refused, match="cannot be reached"):
        await here.documents().fetch(here.url("/client.json", host="other.example"))


async def test_a_site_that_says_nothing_is_left_after_a_while(here: Site) -> None:
    """And is not asked again at once."""
    documents = here.documents()
    for _ in range(3):
        with pytest.raises(Refused, match="within 5 s"):
            await documents.fetch(here.url("/silent"))
    assert here.asked == ["/silent"]


async def test_an_answer_to_a_client_of_a_document_has_the_issuer(at: Face, here: Site) -> None:
    """A client of several servers knows whose answer it is."""
    answer = query_of((await at.answer(at.asked(document(here), pkce()[1]))).headers["location"])
    assert answer["iss"] == "https://tasks.example.com"


async def test_the_sdks_client_shows_its_document_and_registers_nothing(
    at: Face, here: Site
) -> None:
    """Once the metadata says that documents are read here."""
    client_id, kept, answers = document(here), Kept(), list[dict[str, str]]()

    async def allow(url: str) -> None:
        assert query_of(url)["client_id"] == client_id
        answers.append(query_of((await at.answer(url)).headers["location"]))

    async def answer() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**answers[-1])

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)])
    auth = OAuthClientProvider(
        RESOURCE, metadata, kept, allow, answer, client_metadata_url=client_id
    )
    transport = httpx2.ASGITransport(at.app)
    async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC, auth=auth) as http:
        assert (await http.post("/mcp")).json()["principal"] == "ann"
    assert here.asked == ["/client.json"]
