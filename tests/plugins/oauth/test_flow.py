"""A client finds its way from a refused request to a token, and keeps it."""

from typing import Any

import pytest
from signing_in import BACK, PUBLIC, RESOURCE, Clock, Face, face, pkce, query_of

from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


async def test_a_refused_request_names_the_way_to_a_token(at: Face) -> None:
    """The challenge leads to the resource's metadata, and that to the authorization server's."""
    refused = await at.http.post("/mcp")
    assert refused.status_code == 401
    told = refused.headers["www-authenticate"]
    metadata = f"{PUBLIC}/.well-known/oauth-protected-resource/mcp"
    assert told == f'Bearer resource_metadata="{metadata}", scope="work"'
    resource = (await at.http.get(metadata)).json()
    assert resource["resource"] == RESOURCE
    assert resource["authorization_servers"] == [PUBLIC]
    assert resource["scopes_supported"] == ["work"], "clients ask a person for all that it lists"
    found = (await at.http.get("/.well-known/oauth-authorization-server")).json()
    assert found["issuer"] == PUBLIC
    assert found["scopes_supported"] == ["work", "operate"]
    assert "none" in found["token_endpoint_auth_methods_supported"]
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"]
    assert found["client_id_metadata_document_supported"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert found[f"{name}_endpoint"].startswith(f"{PUBLIC}/")


async def test_a_token_that_is_none_is_said_to_be_none(at: Face) -> None:
    """A client drops it, and begins again."""
    refused = await at.http.post("/mcp", headers={"authorization": "Bearer hma-nothing"})
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert "resource_metadata=" in refused.headers["www-authenticate"]


async def test_a_person_allows_a_client_and_its_token_is_theirs(at: Face) -> None:
    """The answer has the state and the issuer, and the token opens what the person has."""
    client_id = await at.client_id()
    verifier, challenge = pkce()
    reply = await at.answer(at.asked(client_id, challenge))
    assert reply.status_code == 303
    assert reply.headers["location"].startswith(f"{BACK}?")
    answer = query_of(reply.headers["location"])
    assert (answer["state"], answer["iss"]) == ("of-the-client", PUBLIC)
    given = (await at.redeem(client_id, answer["code"], verifier)).json()
    assert (given["token_type"], given["scope"]) == ("Bearer", "work")
    who = await at.whoami(given["access_token"])
    assert who is not None
    assert (who["principal"], who["scopes"]) == ("ann", ["work"])


async def test_sessions_follow_a_person_over_clients_and_new_tokens(at: Face) -> None:
    """Each token of one person has the same digest in the record; another person's has not."""
    first, second = await at.signed_in(), await at.signed_in()
    renewed = (await at.refresh(first["client_id"], first["refresh_token"])).json()
    found = [await at.whoami(each["access_token"]) for each in (first, second, renewed)]
    assert len({str(each) for each in found}) == 1
    verifier, challenge = pkce()
    reply = await at.answer(at.asked(first["client_id"], challenge), name="olga")
    code = query_of(reply.headers["location"])["code"]
    olga = (await at.redeem(first["client_id"], code, verifier)).json()
    who = await at.whoami(olga["access_token"])
    assert who is not None
    assert found[0] is not None
    assert who["digest"] != found[0]["digest"]


async def test_tokens_of_files_go_on_working_beside_it(at: Face) -> None:
    """A name is one person, whichever way they come."""
    who = await at.whoami("the-token-of-a-file")
    assert who is not None
    assert (who["principal"], who["scopes"]) == ("ann", [])


async def test_tokens_expire_and_are_renewed(at: Face, clock: Clock) -> None:
    """A token lasts an hour. Its refresh token gives another one, and is then replaced."""
    given = await at.signed_in()
    clock.turn(minutes=59)
    assert await at.whoami(given["access_token"]) is not None
    clock.turn(minutes=2)
    assert await at.whoami(given["access_token"]) is None
    renewed = (await at.refresh(given["client_id"], given["refresh_token"])).json()
    assert await at.whoami(renewed["access_token"]) is not None
    assert renewed["refresh_token"] != given["refresh_token"]
    clock.turn(days=31)
    late = await at.refresh(given["client_id"], renewed["refresh_token"])
    assert (late.status_code, late.json()["error"]) == (400, "invalid_grant")


async def test_a_revoked_token_ends_with_all_of_its_grant(at: Face) -> None:
    """Whichever of the two is revoked; a token that is unknown is no error."""
    for kind in ("access_token", "refresh_token"):
        given = await at.signed_in()
        form = {"token": given[kind], "client_id": given["client_id"]}
        assert (await at.http.post("/revoke", data=form)).status_code == 200
        assert await at.whoami(given["access_token"]) is None
        assert (await at.refresh(given["client_id"], given["refresh_token"])).status_code == 400
        assert (await at.http.post("/revoke", data=form)).status_code == 200


async def test_a_client_with_a_secret_proves_it_in_the_way_that_it_registered(at: Face) -> None:
    """In the header or in the form; a wrong secret, or none, gets no token."""
    for method in ("client_secret_basic", "client_secret_post"):
        made = (await at.register(token_endpoint_auth_method=method)).json()
        client_id, secret = made["client_id"], made["client_secret"]
        verifier, challenge = pkce()
        code = await at.code(client_id, challenge)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": BACK,
        }
        posted = {**form, "client_id": client_id}
        assert (await at.token(**posted)).status_code == 401
        assert (await at.token(**posted, client_secret=f"{secret}x")).status_code == 401
        assert (
            await at.http.post("/token", data=form, auth=(client_id, f"{secret}x"))
        ).status_code == 401
        if method == "client_secret_basic":
            reply = await at.http.post("/token", data=form, auth=(client_id, secret))
        else:
            reply = await at.token(**posted, client_secret=secret)
        assert reply.status_code == 200, reply.text


async def test_tokens_and_clients_outlive_the_server_and_serve_its_replicas(
    kept: Store, people: PasswordFile, clock: Clock
) -> None:
    """Another server on the same store knows both, and the store has no secret in the clear."""
    async with face(kept, people, clock=clock) as first:
        given = await first.signed_in()
    async with face(kept, people, clock=clock) as second:
        assert await second.whoami(given["access_token"]) is not None
        reply = await second.refresh(given["client_id"], given["refresh_token"])
        assert reply.status_code == 200
        again = await second.signed_in(given["client_id"])
        assert await second.whoami(again["access_token"]) is not None
    await kept.close()
    files = kept.folder.glob("store.sqlite3*")
    whole = b"".join(path.read_bytes() for path in files)
    assert b"oauth_secrets" in whole
    for secret in (given["access_token"], given["refresh_token"], again["access_token"]):
        assert secret.encode() not in whole


async def test_scopes_are_what_the_person_may_give(at: Face) -> None:
    """`operate` is for operators alone; a scope that is unknown is passed over."""
    client_id = await at.client_id()
    assert (await at.signed_in(client_id, scope="work operate"))["scope"] == "work"
    assert (await at.signed_in(client_id, scope="work offline_access"))["scope"] == "work"
    verifier, challenge = pkce()
    url = at.asked(client_id, challenge, scope="operate")
    reply = await at.answer(url, name="olga")
    code = query_of(reply.headers["location"])["code"]
    given = (await at.redeem(client_id, code, verifier)).json()
    assert given["scope"] == "work operate"
    narrow = (await at.refresh(client_id, given["refresh_token"], scope="work")).json()
    assert narrow["scope"] == "work"
    wrong = at.asked(client_id, challenge, scope="everything")
    assert query_of((await at.open(wrong)).headers["location"])["error"] == "invalid_scope"


async def test_another_password_ends_what_was_granted_before(
    at: Face, people: PasswordFile
) -> None:
    """So does the removal of the person."""
    given = await at.signed_in()
    people.add("ann", "another password", is_operator=False)
    assert await at.whoami(given["access_token"]) is None
    assert (await at.refresh(given["client_id"], given["refresh_token"])).status_code == 400
    people.remove("ann")
    assert await at.whoami(given["access_token"]) is None


async def test_an_operators_call_of_either_era_is_answered_by_the_scope_that_it_needs(
    at: Face,
) -> None:
    """By its name in a header or in the body; a person who has the scope is not asked."""
    client_id = await at.client_id()
    ann = (await at.signed_in(client_id))["access_token"]
    verifier, challenge = pkce()
    reply = await at.answer(at.asked(client_id, challenge, scope="work operate"), name="olga")
    code = query_of(reply.headers["location"])["code"]
    olga = (await at.redeem(client_id, code, verifier)).json()["access_token"]
    body = {"method": "tools/call", "params": {"name": "hud-mcp/start", "arguments": {}}}
    spelled: list[dict[str, Any]] = [
        {"json": body},
        {"json": body, "headers": {"mcp-protocol-version": "2025-11-25"}},
        {"content": b"[", "headers": {"mcp-name": "hud-mcp/start"}},
    ]
    for given in spelled:
        headers = given.pop("headers", {})
        for token, status in ((ann, 403), (olga, 200), ("hma-none", 401)):
            sent = {**headers, "authorization": f"Bearer {token}"}
            reply = await at.http.post("/mcp", headers=sent, **given)
            assert reply.status_code == status
            told = reply.headers.get("www-authenticate", "")
            assert ('error="insufficient_scope"' in told) == (status == 403)
            assert ('scope="work operate"' in told) == (status == 403)
    other = [b'{"params": {"name": "hud-mcp/look"', b'["hud-mcp/"]', b"[" * 60_000 + b"hud-mcp/"]
    for content in other:
        headers = {"authorization": f"Bearer {ann}"}
        assert (await at.http.post("/mcp", headers=headers, content=content)).status_code == 200
