"""The authorization server of a server of MCP: its endpoints, and the tokens that it gave out."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.auth.provider import AccessToken
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hud_mcp.plugins.oauth.authorize import Authorize
from hud_mcp.plugins.oauth.clients import Clients
from hud_mcp.plugins.oauth.documents import Documents
from hud_mcp.plugins.oauth.front import Endpoint, document_routes, endpoint_route, in_front
from hud_mcp.plugins.oauth.metadata import (
    resource_metadata,
    resource_paths,
    server_metadata,
    server_paths,
)
from hud_mcp.plugins.oauth.people import Person
from hud_mcp.plugins.oauth.records import Records
from hud_mcp.plugins.oauth.settings import Place, Settings, hosts_of
from hud_mcp.plugins.oauth.tokens import TokenEndpoint
from hud_mcp.plugins.oauth.values import OPERATE, Grant, Refused
from hud_mcp.plugins.oauth.web import json_answer, read_form, read_json
from hud_mcp.server.web.auth import HOLDER, Hosts
from hud_mcp.store.archive import Database


class AuthorizationServer:
    """The identity of a server that people sign in to, with its state in a store's database."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        records: Records | None = None,
        documents: Documents | None = None,
    ) -> None:
        self._settings = settings
        self._records = records or Records(database)
        self._clients = Clients(self._records, documents or Documents(), is_open=settings.is_open)
        self._place = Place("", "")
        self.hosts = hosts_of(settings.public)

    async def prepare(self) -> None:
        """Make its tables; StoreFailed if the store cannot be written."""
        await self._records.prepare()

    def holder(self, grant: Grant) -> Person | None:
        """Return the person of a grant; None if they are gone, or have another password."""
        person = self._settings.people.find(grant.subject)
        return person if person is not None and person.stamp == grant.stamp else None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a token of this server; None if it is none, or has ended."""
        found = await self._records.find("access", token)
        if found is None or found.has_ended:
            return None
        grant, place = found.grant, self._place
        person = self.holder(grant)
        if person is None or grant.issuer != place.issuer or grant.resource != place.resource:
            return None
        return AccessToken(
            token=token,
            client_id=person.name,
            subject=person.name,
            scopes=[s for s in found.facts["scopes"] if s != OPERATE or person.is_operator],
            expires_at=int(found.expires_at.timestamp()),
            resource=grant.resource,
            claims={HOLDER: f"{place.issuer} {person.name}", "iss": place.issuer},
        )

    def around(self, app: ASGIApp, *, address: str, path: str, hosts: Hosts) -> ASGIApp:
        """Return the app that answers OAuth's paths, and tells others at MCP's how to begin."""
        self._place = Place(self._settings.public or address, path)
        routes = self._routes(self._place)
        return in_front(app, routes, place=self._place, hosts=hosts, verify=self.verify_token)

    def _routes(self, place: Place) -> list[Route]:
        clients, people = self._clients, self._settings.people
        authorize = Authorize(place, clients, people, self._records)
        tokens = TokenEndpoint(place, self._records, self.holder)

        def of_a_client(answer: Callable[..., Awaitable[dict[str, Any]]]) -> Endpoint:
            async def endpoint(request: Request) -> Response:
                form = await read_form(request)
                client = await clients.authenticate(form, request.headers.get("authorization", ""))
                return json_answer(await answer(client, form))

            return endpoint

        async def register(request: Request) -> Response:
            if not clients.is_open:
                raise Refused("access_denied", "Registration is closed here.", status=403)
            return json_answer(await clients.register(await read_json(request)), 201)

        about = resource_metadata(place, place.issuer)
        about_server = server_metadata(place, is_open=clients.is_open)
        return [
            *document_routes(dict.fromkeys(resource_paths(place), about)),
            *document_routes(dict.fromkeys(server_paths(place), about_server)),
            endpoint_route("/token", of_a_client(tokens.exchange)),
            endpoint_route("/revoke", of_a_client(tokens.revoke)),
            endpoint_route("/register", register),
            Route("/authorize", authorize.answer, methods=["GET", "POST"]),
        ]
