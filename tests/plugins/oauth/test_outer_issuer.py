"""People sign in at an issuer that the operator has, and its tokens are read with its keys."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from signing_in import PUBLIC, RESOURCE
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from tables import each_of
from tls_site import Site, site

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.oauth.issuer import OuterIssuer
from hud_mcp.plugins.oauth.settings import IssuerSettings
from hud_mcp.server.web.auth import Hosts, Tokens

pytestmark = [pytest.mark.anyio, pytest.mark.long]

KEY, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))


def public_key(key: rsa.RSAPrivateKey, kid: str) -> dict[str, Any]:
    """A key as an issuer publishes it."""
    made = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return {**made, "kid": kid, "use": "sig", "alg": "RS256"}


class Issuer:
    """An issuer on a site of its own, and a server that trusts it."""

    def __init__(self, here: Site, **settings: Any) -> None:
        self.here, self.url = here, here.url("")
        self.now_s = 1000.0
        self.publish()
        self.server = OuterIssuer(
            IssuerSettings(PUBLIC, self.url, operators="groups=operators", **settings),
            documents=here.documents(),
            clock=lambda: self.now_s,
        )

    def publish(self, *keys: dict[str, Any], **more: Any) -> None:
        """Publish its metadata and its keys."""
        metadata = {"issuer": self.url, "jwks_uri": self.here.url("/keys"), **more}
        for path in ("oauth-authorization-server", "openid-configuration"):
            self.here.put(f"/.well-known/{path}", json.dumps(metadata))
        self.here.put("/keys", json.dumps({"keys": keys or [public_key(KEY, "1")]}))

    def token(
        self, key: Any = KEY, *, kid: str | None = "1", algorithm: str = "RS256", **claims: Any
    ) -> str:
        """A token that it signs for the server; a claim of None is left out."""
        given = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "ann",
            "scope": "work",
            "exp": int(time.time()) + 600,
            **claims,
        }
        kept = {name: value for name, value in given.items() if value is not None}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(kept, key, algorithm=algorithm, headers=headers)


@pytest.fixture
async def issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    """An issuer, whose keys the server has."""
    async with site(tmp_path) as here:
        found = Issuer(here)
        await found.server.prepare()
        found.server.around(_nothing, address=PUBLIC, path="/mcp", hosts=Hosts("127.0.0.1"))
        yield found


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({}, 401)(scope, receive, send)


async def test_a_token_of_the_issuer_is_its_subjects(issuer: Issuer) -> None:
    """And the operators' claim makes an operator, if the token has the scope too."""
    found = await issuer.server.verify_token(issuer.token())
    assert found is not None
    assert (found.subject, found.scopes) == ("ann", ["work"])
    for groups, scope, scopes in (
        (["operators", "staff"], "work operate", ["work", "operate"]),
        (["operators"], "work", ["work"]),
        (["staff"], "work operate", ["work"]),
        ("operators", "work operate", ["work", "operate"]),
    ):
        token = issuer.token(groups=groups, scope=scope)
        access = await issuer.server.verify_token(token)
        assert access is not None
        assert access.scopes == scopes


@each_of(
    "claims",
    [
        {"aud": "https://other.example.com/mcp"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": None},
        {"sub": None},
        {"sub": 7},
        {"sub": ""},
        {"sub": "#operator"},
        {"sub": "token"},
        {"sub": "ann\n"},
        {"sub": "a" * 300},
        {"scope": "operate"},
        {"scope": None},
        {"scope": {"work": 1}},
    ],
)
async def test_a_token_for_somebody_else_is_none(issuer: Issuer, claims: dict[str, Any]) -> None:
    """Of another resource or issuer, without an end, of no principal, without the scope."""
    assert await issuer.server.verify_token(issuer.token(**claims)) is None


@each_of(
    ("claim", "ago_s", "is_taken"),
    [
        ("exp", 50, True),
        ("exp", 3600, False),
        ("nbf", -50, True),
        ("nbf", -3600, False),
        ("iat", -50, True),
        ("iat", -3600, False),
    ],
)
async def test_a_clock_may_be_off_by_a_minute_and_not_by_an_hour(
    issuer: Issuer, claim: str, ago_s: int, *, is_taken: bool
) -> None:
    """Two machines never agree on the second."""
    token = issuer.token(**{claim: int(time.time()) - ago_s})
    assert (await issuer.server.verify_token(token) is not None) == is_taken


async def test_a_signature_is_of_the_issuers_own_key_pair(issuer: Issuer) -> None:
    """No other key, no secret that is public, and no signature at all."""
    public = public_key(KEY, "1")["n"]
    forged = [
        issuer.token(OTHER),
        issuer.token(OTHER, kid="2"),
        issuer.token(OTHER, kid=None),
        issuer.token(public, algorithm="HS256"),
        jwt.encode({"iss": issuer.url, "aud": RESOURCE}, None, algorithm="none"),
        issuer.token().rpartition(".")[0] + ".",
        "a.b.c",
        "." * 2,
        "x" * 100_000,
    ]
    assert [await issuer.server.verify_token(each) for each in forged] == [None] * len(forged)


async def test_a_new_key_is_found_and_unknown_ones_do_not_hammer_the_issuer(
    issuer: Issuer,
) -> None:
    """The keys are fetched again for a name that is unknown, at most once a minute."""
    issuer.publish(public_key(KEY, "1"), public_key(OTHER, "2"))
    token = issuer.token(OTHER, kid="2")
    assert await issuer.server.verify_token(token) is not None
    asked = issuer.here.asked.count("/keys")
    for number in range(20):
        assert await issuer.server.verify_token(issuer.token(kid=f"none-{number}")) is None
    assert issuer.here.asked.count("/keys") == asked
    issuer.now_s += 61
    assert await issuer.server.verify_token(issuer.token(kid="none")) is None
    assert issuer.here.asked.count("/keys") == asked + 1


@each_of(
    "more",
    [
        {"issuer": "https://evil.example"},
        {"jwks_uri": None},
        {"jwks_uri": "http://127.0.0.1:1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
async def test_an_issuer_whose_metadata_is_wrong_is_refused_at_the_start(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """The error names the issuer, and what is wrong."""
    async with site(tmp_path) as here:
        found = Issuer(here)
        found.publish(**more)
        with pytest.raises(HudMcpError, match=r"--oauth https://app\.example"):
            await found.server.prepare()


async def test_a_client_is_sent_to_the_issuer(issuer: Issuer) -> None:
    """By the resource's metadata; this server gives out nothing itself."""

    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        given = Request(scope).headers.get("authorization", "").removeprefix("Bearer ")
        found = await Tokens({}, issuer.server).verify_token(given)
        await JSONResponse({}, 401 if found is None else 200)(scope, receive, send)

    app = issuer.server.around(
        mcp, address=PUBLIC, path="/mcp", hosts=Hosts("127.0.0.1", issuer.server.hosts)
    )
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC) as http:
        refused = await http.post("/mcp")
        assert 'scope="work"' in refused.headers["www-authenticate"]
        found = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert found["authorization_servers"] == [issuer.url]
        headers = {"authorization": f"Bearer {issuer.token()}"}
        assert (await http.post("/mcp", headers=headers)).status_code == 200
        operated = await http.post("/mcp", headers={**headers, "mcp-name": "hud-mcp/start"})
        assert operated.status_code == 403
        told = operated.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in told
        assert 'scope="work operate"' in told
