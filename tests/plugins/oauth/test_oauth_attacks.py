"""Strangers ask for tokens that nobody gave them, by each way that is known."""

import re
from datetime import timedelta

import anyio
import pytest
from signing_in import BACK, PASSWORD, PUBLIC, RESOURCE, Clock, Face, face, pkce, query_of
from tables import each_of

from hud_mcp.plugins.oauth.people import Passcode, PasswordFile
from hud_mcp.plugins.oauth.values import Bounds
from hud_mcp.store import Store

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_a_refresh_token_that_is_used_twice_ends_its_family(at: Face) -> None:
    """The thief and the client cannot be told apart, so neither keeps anything."""
    stolen = await at.signed_in()
    client_id = stolen["client_id"]
    renewed = (await at.refresh(client_id, stolen["refresh_token"])).json()
    assert await at.whoami(renewed["access_token"]) is not None
    again = await at.refresh(client_id, stolen["refresh_token"])
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    for each in (stolen, renewed):
        assert await at.whoami(each["access_token"]) is None
    assert (await at.refresh(client_id, renewed["refresh_token"])).status_code == 400


async def test_a_code_is_good_for_one_use_of_the_client_that_asked(at: Face, clock: Clock) -> None:
    """Another client, another verifier and a later time get nothing; a second use ends all."""
    client_id, other = await at.client_id(), await at.client_id()
    verifier, challenge = pkce()
    code = await at.code(client_id, challenge)
    for wrong in (
        await at.redeem(other, code, verifier),
        await at.redeem(client_id, code, pkce()[0]),
        await at.redeem(client_id, code, verifier, redirect_uri="http://127.0.0.1:4711/other"),
        await at.redeem(client_id, code, ""),
    ):
        assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_grant")
    given = (await at.redeem(client_id, code, verifier)).json()
    assert await at.whoami(given["access_token"]) is not None
    assert (await at.redeem(client_id, code, verifier)).status_code == 400
    assert await at.whoami(given["access_token"]) is None
    late = await at.code(client_id, challenge)
    clock.turn(seconds=61)
    assert (await at.redeem(client_id, late, verifier)).status_code == 400


async def test_two_clients_that_redeem_one_code_at_once_get_one_token_at_most(at: Face) -> None:
    """However they overlap; and what the quicker one got has ended."""
    client_id = await at.client_id()
    verifier, challenge = pkce()
    code = await at.code(client_id, challenge)
    found: list[int] = []

    async def redeem() -> None:
        found.append((await at.redeem(client_id, code, verifier)).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(redeem)
    assert sorted(found)[1:] == [400] * 4


@each_of(
    ("method", "challenge"),
    [
        ("plain", "a" * 43),
        (None, "a" * 43),
        ("S256", None),
        ("S256", "short"),
        ("S256", "a" * 42 + "="),
        ("s256", "a" * 43),
    ],
)
async def test_a_request_without_the_strong_pkce_is_refused(
    at: Face, method: str | None, challenge: str | None
) -> None:
    """A downgrade would let whoever sees the code have the token."""
    more = {"code_challenge_method": method, "code_challenge": challenge}
    url = at.asked(await at.client_id(), "", **more)
    answer = query_of((await at.open(url)).headers["location"])
    assert (answer["error"], answer["iss"]) == ("invalid_request", PUBLIC)
    assert "code" not in answer


@each_of(
    "uri",
    [
        "https://evil.example/callback",
        "http://127.0.0.1.evil.example:4711/callback",
        "http://127.0.0.1:4711@evil.example/callback",
        "http://127.0.0.1:4711/callback/../other",
        "http://127.0.0.1:4711/callback#code",
        "http://127.0.0.1:4711/callback?next=https://evil.example",
        "http://localhost:4711/callback",
        "https://127.0.0.1:4711/callback",
        "javascript:alert(1)",
        "",
    ],
)
async def test_an_answer_goes_to_no_address_that_was_not_registered(at: Face, uri: str) -> None:
    """The person sees a page that says so, and the browser goes nowhere."""
    registered = [BACK, "http://127.0.0.1:4712/other"]  # so that none is the only one
    client_id = await at.client_id(redirect_uris=registered)
    reply = await at.open(at.asked(client_id, pkce()[1], redirect_uri=uri))
    assert reply.status_code == 400
    assert "location" not in reply.headers
    assert "cannot be answered" in reply.text


async def test_a_link_here_leads_to_no_site_that_anybody_registered(at: Face) -> None:
    """Only a person's own answer sends a browser to a site."""
    back = "https://evil.example/landing"
    client_id = await at.client_id(redirect_uris=[back])
    for wrong in ({"response_type": "token"}, {"scope": "none"}, {"code_challenge": "x"}):
        reply = await at.open(at.asked(client_id, pkce()[1], redirect_uri=back, **wrong))
        assert reply.status_code == 400
        assert "location" not in reply.headers
    denied = await at.answer(at.asked(client_id, pkce()[1], redirect_uri=back), decision="deny")
    assert denied.headers["location"].startswith(f"{back}?error=access_denied")


@each_of(
    ("registered", "given"),
    [
        ("http://127.0.0.1/", "http://127.0.0.1:51234/"),
        ("http://127.0.0.1", "http://127.0.0.1:51234/"),
        ("http://localhost/callback", "http://localhost:3118/callback"),
        ("http://[::1]/cb", "http://[::1]:9999/cb"),
        ("https://vscode.dev/redirect", "https://vscode.dev/redirect"),
        ("cursor://anysphere.cursor/oauth", "cursor://anysphere.cursor/oauth"),
    ],
)
async def test_an_app_on_the_persons_machine_names_its_port_when_it_asks(
    at: Face, registered: str, given: str
) -> None:
    """As editors and programs of a terminal do; other addresses are compared whole."""
    client_id = await at.client_id(redirect_uris=[registered])
    verifier, challenge = pkce()
    reply = await at.answer(at.asked(client_id, challenge, redirect_uri=given))
    assert reply.headers["location"].startswith(f"{given}?code=")
    code = query_of(reply.headers["location"])["code"]
    assert (await at.redeem(client_id, code, verifier, redirect_uri=given)).status_code == 200


@each_of(
    "uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://example.com/callback",
        "https://user@example.com/callback",
        "https:///callback",
        "https://example.com;frame-ancestors/callback",
        "https://example.com/a#b",
        "https://example.com/ä",
        "//example.com/callback",
        "callback",
        7,
    ],
)
async def test_a_client_registers_no_address_that_is_dangerous(at: Face, uri: object) -> None:
    """An answer in the clear could be read, and a script would run with it."""
    reply = await at.register(redirect_uris=[uri])
    assert (reply.status_code, reply.json()["error"]) == (400, "invalid_redirect_uri")


async def test_a_token_is_for_one_server_alone(
    kept: Store, people: PasswordFile, clock: Clock
) -> None:
    """Another address on the same store takes no token of this one, and gives none for it."""
    other_place = "https://other.example.com"
    async with (
        face(kept, people, clock=clock) as one,
        face(kept, people, clock=clock, public=other_place) as other,
    ):
        given = await one.signed_in()
        assert await other.whoami(given["access_token"]) is None
        foreign = await other.http.post(
            "/token",
            data={
                "grant_type": "refresh_token",
                "client_id": given["client_id"],
                "refresh_token": given["refresh_token"],
            },
        )
        assert foreign.json()["error"] == "invalid_grant"
        url = one.asked(given["client_id"], pkce()[1], resource=f"{other_place}/mcp")
        assert query_of((await one.open(url)).headers["location"])["error"] == "invalid_target"
        verifier, challenge = pkce()
        code = await one.code(given["client_id"], challenge)
        wrong = await one.redeem(given["client_id"], code, verifier, resource=f"{other_place}/mcp")
        assert wrong.json()["error"] == "invalid_target"


async def test_a_crowd_of_registrations_stays_within_its_bound(
    kept: Store, people: PasswordFile, clock: Clock
) -> None:
    """Those that nobody uses make room after a while, and a client that is used stays."""
    bounds = Bounds(most=20, hurried=timedelta(minutes=15))
    async with face(kept, people, clock=clock, bounds=bounds) as at:
        used = await at.signed_in()
        found = [(await at.register()).status_code for _ in range(100)]
        assert found == [201] * 20 + [429] * 80
        refused = await at.register()
        assert int(refused.headers["retry-after"]) > 0
        again = await at.signed_in(used["client_id"])
        assert await at.whoami(again["access_token"]) is not None
        clock.turn(minutes=16)
        assert (await at.register()).status_code == 201
        fresh = await at.client_id()
        clock.turn(days=2)
        await at.register()
        assert (await at.open(at.asked(fresh, pkce()[1]))).status_code == 400
        assert (await at.refresh(used["client_id"], again["refresh_token"])).status_code == 200


async def test_a_closed_server_registers_nobody(kept: Store, people: PasswordFile) -> None:
    """Its metadata does not offer it either."""
    async with face(kept, people, is_open=False) as at:
        assert (await at.register()).status_code == 403
        found = (await at.http.get("/.well-known/oauth-authorization-server")).json()
        assert "registration_endpoint" not in found


async def test_guesses_are_few(at: Face, clock: Clock) -> None:
    """Ten in a quarter of an hour for a name, also at once; the right one then waits, too."""
    url = at.asked(await at.client_id(), pkce()[1])
    found: list[int] = []

    async def guess() -> None:
        found.append((await at.answer(url, password="wrong password")).status_code)

    async with anyio.create_task_group() as group:
        for _ in range(15):
            group.start_soon(guess)
    assert sorted(found) == [403] * 10 + [429] * 5
    right = await at.answer(url)
    assert right.status_code == 429
    assert 0 < int(right.headers["retry-after"]) <= 15 * 60
    assert (await at.answer(url, name="olga")).status_code == 303, "others sign in meanwhile"
    clock.turn(minutes=16)
    assert (await at.answer(url)).status_code == 303


async def test_a_passcode_is_of_one_person_and_is_guessed_as_slowly(kept: Store) -> None:
    """Whatever name a guess gives: there is one counter."""
    async with face(kept, Passcode.of(PASSWORD)) as at:
        url = at.asked(await at.client_id(), pkce()[1])
        assert 'name="name"' not in (await at.open(url)).text
        found = [
            (await at.answer(url, name=f"n{n}", password="wrong")).status_code for n in range(11)
        ]
        assert found == [403] * 10 + [429]


async def test_a_person_with_a_passcode_is_the_owner(kept: Store) -> None:
    """The passcode is in the store in no form."""
    async with face(kept, Passcode.of(PASSWORD)) as at:
        given = await at.signed_in(scope="work operate")
        who = await at.whoami(given["access_token"])
        assert who is not None
        assert (who["principal"], who["scopes"]) == ("owner", ["work"])


async def test_a_page_elsewhere_cannot_answer_for_a_person(at: Face) -> None:
    """Without the page's own proof, from another origin, or for another request."""
    client_id = await at.client_id()
    url, other = (at.asked(client_id, pkce()[1]) for _ in range(2))
    form = {"name": "ann", "password": PASSWORD, "decision": "allow"}
    assert (await at.http.post(url, data=form)).status_code == 403
    page = await at.open(url)
    (proof,) = re.findall(r'name="csrf" value="([^"]+)"', page.text)
    given = {**form, "csrf": proof}
    assert (await at.http.post(other, data=given)).status_code == 403
    for headers in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "null"},
    ):
        assert (await at.http.post(url, data=given, headers=headers)).status_code == 403
    own = {"origin": PUBLIC, "sec-fetch-site": "same-origin"}
    assert (await at.http.post(url, data=given, headers=own)).status_code == 303
    at.http.cookies.clear()
    assert (await at.http.post(url, data=given)).status_code == 403


async def test_the_page_is_shown_in_no_frame_and_keeps_its_cookie_to_itself(at: Face) -> None:
    """No other page sees it, no script runs in it, and the cookie is this host's alone."""
    page = await at.open(at.asked(await at.client_id(), pkce()[1]))
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"
    cookie = page.headers["set-cookie"].lower()
    assert cookie.startswith("__host-")
    for word in ("httponly", "secure", "samesite=strict", "path=/"):
        assert word in cookie


async def test_markup_in_a_clients_words_is_text(at: Face) -> None:
    """Its name, and every address that it names."""
    name = "<script>alert(1)</script>\u202e\n<b>Claude</b>" + "x" * 500
    uri = "http://127.0.0.1:4711/callback?a=%22%3E%3Cscript%3E&b='\"><script>"
    client_id = await at.client_id(client_name=name, redirect_uris=[uri])
    page = await at.open(at.asked(client_id, pkce()[1], redirect_uri=uri, state='"><script>'))
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "<b>" not in page.text
    assert "\u202e" not in page.text
    assert "x" * 100 not in page.text


@each_of("host", ["evil.example", "tasks.example.com.evil.example", "127.0.0.1@evil.example"])
async def test_a_page_of_another_name_reaches_no_endpoint(at: Face, host: str) -> None:
    """A name that is bound anew to this address is none of this server's."""
    for path in ("/authorize", "/.well-known/oauth-authorization-server"):
        assert (await at.http.get(path, headers={"host": host})).status_code == 421
    for path in ("/token", "/register", "/revoke"):
        assert (await at.http.post(path, headers={"host": host})).status_code == 421


async def test_a_parameter_that_comes_twice_is_refused(at: Face) -> None:
    """Two readers could read two things."""
    client_id = await at.client_id()
    url = at.asked(client_id, pkce()[1]) + "&redirect_uri=https%3A%2F%2Fevil.example"
    assert (await at.open(url)).status_code == 400
    body = f"grant_type=refresh_token&client_id={client_id}&client_id=other&refresh_token=x"
    form = {"content-type": "application/x-www-form-urlencoded"}
    reply = await at.http.post("/token", content=body, headers=form)
    assert reply.json()["error"] == "invalid_request"


async def test_a_person_who_says_no_needs_no_password(at: Face) -> None:
    """The client is told, and gets nothing."""
    url = at.asked(await at.client_id(), pkce()[1])
    reply = await at.answer(url, decision="deny", name="", password="")
    answer = query_of(reply.headers["location"])
    assert (answer["error"], answer["state"]) == ("access_denied", "of-the-client")


async def test_nothing_of_a_request_is_too_large_or_too_odd_to_be_refused(at: Face) -> None:
    """No body, no header and no query is answered with a failure of the server."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    found = [
        await at.http.post("/token", content=b"x" * 100_000, headers=form),
        await at.http.post("/token", content=b"\xff\xfe=\x00", headers=form),
        await at.http.post("/token", json={"grant_type": "refresh_token"}),
        await at.http.post("/token", content="a=b", headers={**form, "authorization": "Basic x"}),
        await at.http.post("/register", content=b"[" * 10_000),
        await at.http.post("/register", json=[1]),
        await at.http.post("/register", json={"redirect_uris": {}, "client_name": {}}),
        await at.http.post("/register", json={"redirect_uris": [BACK], "grant_types": 7}),
        await at.http.post("/register", json={"redirect_uris": [BACK], "response_types": 7}),
        await at.http.post(
            "/register", json={"redirect_uris": [BACK], "token_endpoint_auth_method": [7]}
        ),
        await at.http.get("/authorize?" + "a=b&" * 50),
        await at.http.get("/authorize?client_id=%00&redirect_uri=%ff"),
        await at.http.get("/authorize?client_id=https://[::1"),
        await at.http.post("/authorize?client_id=x", content=b"\xff", headers=form),
    ]
    assert [each.status_code // 100 for each in found] == [4] * len(found)
    assert await at.whoami("hma-" + "\ud800".encode("utf-8", "surrogatepass").hex()) is None


def break_file(people: PasswordFile) -> None:
    """Write a line that no command writes."""
    people.path.write_text("ann\n")


async def test_a_password_file_that_was_broken_lets_nobody_in(
    at: Face, people: PasswordFile
) -> None:
    """Not even those who were in; nor does the server fail."""
    given = await at.signed_in()
    break_file(people)
    assert await at.whoami(given["access_token"]) is None
    page = await at.open(at.asked(given["client_id"], pkce()[1]))
    assert page.status_code == 200
    assert RESOURCE in page.text
