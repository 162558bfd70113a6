"""The authorization endpoint: it reads a client's request, asks a person, and answers the client.

A person gives name and password with each consent, so that there is no login to ride on. The
request stands in the address of the page alone, so any replica can answer the form.
"""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from hud_mcp.plugins.oauth.clients import Clients, matches
from hud_mcp.plugins.oauth.page import consent_page, refusal_page
from hud_mcp.plugins.oauth.people import OWNER, People, Person, verify
from hud_mcp.plugins.oauth.records import Records
from hud_mcp.plugins.oauth.settings import Place
from hud_mcp.plugins.oauth.values import OPERATE, SCOPES, WORK, Client, Grant, Refused
from hud_mcp.plugins.oauth.web import read_form, read_pairs, redirect

logger = logging.getLogger(__name__)

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # the base64url of a SHA-256
_STATE_CHARS = 2048
_COOKIE = "hud_mcp_consent"
_COOKIE_S = 3600


@dataclass(frozen=True)
class _Asked:
    """A client's valid request."""

    client: Client
    redirect_uri: str
    is_explicit: bool
    challenge: str
    scopes: tuple[str, ...]
    state: str | None


class Authorize:
    """The endpoint: it shows a page of consent, and records what people grant."""

    def __init__(self, place: Place, clients: Clients, people: People, records: Records) -> None:
        self._place, self._clients = place, clients
        self._people, self._records = people, records

    async def answer(self, request: Request) -> Response:
        """Answer a request with the page, or the page's form."""
        query = request.scope["query_string"].decode("latin-1")
        try:
            given = read_pairs(query)
            client = await self._clients.find(given.get("client_id", ""))
            uri = _redirect_uri(client, given.get("redirect_uri"))
        except Refused as exc:
            # An address that nobody has checked gets no answer: it could be a thief's.
            return refusal_page(str(exc))
        state = given.get("state")
        try:
            asked = self._read(given, client, uri)
            is_form = request.method == "POST"
            return await self._decide(request, asked) if is_form else self._page(request, asked)
        except Refused as exc:
            # Anybody may register any site: a link here must not lead there (RFC 9700, 4.11.2).
            if uri.startswith("https:") and exc.error != "access_denied":
                return refusal_page(str(exc))
            return self._back(uri, state, error=exc.error, error_description=str(exc))

    def _back(self, uri: str, state: str | None, **answer: str) -> Response:
        """Send the browser back to the client, which compares the issuer (RFC 9207)."""
        kept = state if state is None or len(state) <= _STATE_CHARS else None
        return redirect(uri, **answer, state=kept, iss=self._place.issuer)

    def _read(self, given: Mapping[str, str], client: Client, uri: str) -> _Asked:
        if given.get("response_type") != "code":
            raise Refused("unsupported_response_type", "response_type is `code`.")
        if len(given.get("state", "")) > _STATE_CHARS:
            raise Refused("invalid_request", f"state has more than {_STATE_CHARS} characters.")
        if given.get("response_mode", "query") != "query":
            raise Refused("invalid_request", "response_mode is `query`.")
        challenge = given.get("code_challenge", "")
        if given.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
            text = "The request needs a code_challenge of the method S256 (PKCE)."
            raise Refused("invalid_request", text)
        if not self._place.is_resource(given.get("resource", self._place.resource)):
            raise Refused("invalid_target", f"This server gives tokens for {self._place.resource}.")
        scopes = read_scopes(given.get("scope"))
        return _Asked(client, uri, "redirect_uri" in given, challenge, scopes, given.get("state"))

    def _page(
        self, request: Request, asked: _Asked, *, name: str = "", problem: str = "",
        status: int = 200,
    ) -> Response:  # fmt: skip
        seed = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        page = consent_page(
            asked.client, scopes=asked.scopes, resource=self._place.resource,
            redirect_uri=asked.redirect_uri, csrf=_proof(seed, request),
            asks_name=self._people.have_names, name=name, problem=problem, status=status,
        )  # fmt: skip
        page.set_cookie(
            self._cookie, seed, max_age=_COOKIE_S, secure=self._place.is_secure, httponly=True,
            samesite="strict",
        )  # fmt: skip
        return page

    @property
    def _cookie(self) -> str:
        # A browser takes this prefix from the host itself alone, and over TLS.
        return f"__Host-{_COOKIE}" if self._place.is_secure else _COOKIE

    async def _decide(self, request: Request, asked: _Asked) -> Response:
        if not self._is_own(request):
            return refusal_page("Only this server's own page may answer for you.", status=403)
        try:
            form = await read_form(request)
        except Refused as exc:
            return refusal_page(str(exc), status=exc.status)
        seed = request.cookies.get(self._cookie, "")
        proof = _proof(seed, request).encode()
        if not seed or not hmac.compare_digest(form.get("csrf", "").encode(), proof):
            problem = "The page had expired. Please answer again."
            return self._page(request, asked, problem=problem, status=403)
        if form.get("decision") != "allow":
            raise Refused("access_denied", "The person did not allow it.")
        return await self._sign_in(request, asked, form)

    async def _sign_in(self, request: Request, asked: _Asked, form: Mapping[str, str]) -> Response:
        name = form.get("name", "").strip() if self._people.have_names else OWNER
        # Counted before it is made: many guesses at once are as slow as one after the other.
        if wait_s := await self._records.count_guess(name):
            problem = f"There were too many attempts. Try again in {_shown(wait_s)}."
            page = self._page(request, asked, name=name, problem=problem, status=429)
            page.headers["retry-after"] = str(wait_s)
            return page
        person = await verify(self._people, name, form.get("password", ""))
        if person is None:
            logger.warning("somebody gave a wrong password for %r", name[:64])
            word = "name or password" if self._people.have_names else "passcode"
            problem = f"The {word} is wrong."
            return self._page(request, asked, name=name, problem=problem, status=403)
        await self._records.forget_guesses(name)
        return await self._grant(asked, person)

    async def _grant(self, asked: _Asked, person: Person) -> Response:
        scopes = tuple(s for s in asked.scopes if s != OPERATE or person.is_operator)
        grant = Grant(
            id=secrets.token_urlsafe(24),
            client=asked.client.id,
            subject=person.name,
            scopes=scopes,
            issuer=self._place.issuer,
            resource=self._place.resource,
            stamp=person.stamp,
        )
        uri = asked.redirect_uri if asked.is_explicit else None
        facts = {"redirect_uri": uri, "challenge": asked.challenge}
        code = await self._records.grant(grant, facts)
        logger.info("%s allowed %s for %s", person.name, " ".join(scopes), asked.client.id)
        return self._back(asked.redirect_uri, asked.state, code=code)

    def _is_own(self, request: Request) -> bool:
        """Whether a form comes from this server's page, by the browser's own word."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        # A page with the policy `no-referrer` sends `null` as its origin.
        own = (None, "null", self._place.origin, f"http://{request.headers.get('host')}")
        return site == "same-origin" and origin in own


def _redirect_uri(client: Client, given: str | None) -> str:
    """Return the address of the answer; raise Refused if it is none of the client's."""
    if given is None:
        if len(client.redirect_uris) == 1:
            return client.redirect_uris[0]
        raise Refused("invalid_request", "The request has no redirect_uri.")
    if not any(matches(each, given) for each in client.redirect_uris):
        text = f"redirect_uri {given[:200]!r} is none that the client registered."
        raise Refused("invalid_request", text)
    return given


def read_scopes(given: str | None) -> tuple[str, ...]:
    """Return the asked scopes, and always `work`; raise Refused if none of them exists."""
    named = (given or WORK).split()
    if not set(named) & set(SCOPES):
        raise Refused("invalid_scope", f"The scopes are {' and '.join(SCOPES)}.")
    return tuple(each for each in SCOPES if each == WORK or each in named)


def _proof(seed: str, request: Request) -> str:
    """Return what only a page of this cookie and this very request has."""
    return hmac.new(seed.encode(), request.scope["query_string"], hashlib.sha256).hexdigest()


def _shown(wait_s: int) -> str:
    return f"{wait_s} s" if wait_s < 120 else f"{-(-wait_s // 60)} minutes"  # noqa: PLR2004  # two minutes
