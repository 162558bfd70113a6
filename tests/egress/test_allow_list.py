"""`allow=` has one meaning: which hosts are listed, and which addresses they may lead to."""

import ipaddress

import pytest
from reaching import HERE, NAMES, REACHED, Reach
from tables import each_of

from hud_mcp.base.egress import AllowList, is_host, look_up
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.sandbox import SandboxOptions
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.shell import Shell


def allows(patterns: list[str], host: str, address: str, port: int = 443) -> bool:
    """Whether a list opens a host that leads to an address."""
    return AllowList(patterns).allows(host, port, ipaddress.ip_address(address))


@pytest.mark.anyio
@each_of("reach", REACHED, ids=str)
async def test_a_list_opens_what_the_table_says(reach: Reach) -> None:
    """The table that a sandbox and a browser are held to holds for the list alone."""
    allow = AllowList([each.replace("PORT", "8000") for each in reach.allow])
    opened: list[str] = []
    for host in (*reach.reached, *reach.refused):
        addresses = NAMES.get(host.lower().rstrip(".")) or [*map(str, await look_up(host, 8000))]
        if any(allow.allows(host, 8000, ipaddress.ip_address(a)) for a in addresses):
            opened.append(host)
    assert opened == [*reach.reached]


@each_of(
    ("patterns", "host", "address", "allowed"),
    [
        (["example.com"], "example.com", "93.184.215.14", True),
        (["example.com"], "EXAMPLE.com.", "93.184.215.14", True),
        (["example.com"], "www.example.com", "93.184.215.14", False),
        (["*.example.com"], "www.example.com", "93.184.215.14", True),
        (["*.example.com"], "example.com", "93.184.215.14", False),
        (["*.example.com"], "www.example.com", "10.0.0.1", False),
        (["example.com:80"], "example.com", "93.184.215.14", False),
        (["example.com:443"], "example.com", "93.184.215.14", True),
        (["example.com"], "example.com", "127.0.0.1", False),
        (["example.com"], "example.com", "::ffff:127.0.0.1", False),
        (["example.com"], "example.com", "64:ff9b::127.0.0.1", False),
        (["example.com"], "example.com", "169.254.169.254", False),
        (["example.com"], "example.com", "fe80::1", False),
        (["example.com"], "example.com", "0.0.0.0", False),
        (["example.com"], "example.com", "224.0.0.1", False),
        (["169.254.169.254"], "169.254.169.254", "169.254.169.254", True),
        (["intranet"], "intranet", "10.0.0.1", True),
        (["intranet"], "intranet", "fd00::1", True),
        (["*"], "example.com", "93.184.215.14", True),
        (["*"], "example.com", "10.0.0.1", False),
        (["*"], "example.com", "fd00::1", False),
        (["*", "intranet"], "intranet", "10.0.0.1", True),
        (["*", "localhost"], "localhost", "127.0.0.1", True),
        (["[::1]:443"], "::1", "::1", True),
        (["10.0.0.1"], "10.0.0.1", "10.0.0.1", True),
        ([], "example.com", "93.184.215.14", False),
    ],
)
def test_the_list_decides_by_name_and_by_address(
    patterns: list[str], host: str, address: str, *, allowed: bool
) -> None:
    """A name that leads somewhere private is no way in; what is written out is."""
    assert allows(patterns, host, address) is allowed


@each_of(
    "address",
    ["127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1",
     "169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "fd12::1", "fec0::1", "::",
     "::127.0.0.1", "2001:0:7f00:1::", "ff02::1", "255.255.255.255", HERE, f"::ffff:{HERE}"],
)  # fmt: skip
def test_no_spelling_of_a_local_address_is_a_public_one(address: str) -> None:
    """Addresses within addresses count as what they lead to, for patterns and imported rows."""
    assert not allows(["*", "*.example"], "a.example", address)
    row = AllowList().with_row(["a.example", "*"], is_trusted=False)
    for host in ("a.example", "other.example"):
        assert not row.allows(host, 80, ipaddress.ip_address(address))
        assert row.allows(host, 443, ipaddress.ip_address("93.184.216.34"))
        assert row.allows(host, 443, ipaddress.ip_address("2606:2800:220:1::1"))


@each_of(
    ("pattern", "url", "allowed"),
    [
        ("example.com", "https://example.com/a", True),
        ("example.com", "https://www.example.com/", False),
        ("example.com", "https://example.com.evil.org/", False),
        ("example.com", "https://user:pw@example.com/", True),
        ("example.com", "https://example.com@evil.org/", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("example.com:443", "https://example.com/", True),
        ("example.com:443", "http://example.com/", False),
        ("*", "https://anything.example/", True),
        ("*", "http://127.0.0.1:80/", False),
        ("*", "http://2130706433/", False),
        ("*", "http://0x7f.1/", False),
        ("*", "http://10.0.0.1/", False),
        ("*", f"http://{HERE}/", False),
        ("*", "http://[::1]/", False),
        ("*", "http://[::ffff:127.0.0.1]/", False),
        ("*", "http://169.254.169.254/latest", False),
        ("*", "http://app.localhost/", False),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/", True),
        ("EXAMPLE.com", "https://Example.COM/", True),
        ("example.com", "ftp://example.com/", False),
        ("example.com", "https://example.com:99999/", False),
    ],
)
def test_a_pattern_allows_exactly_its_hosts(pattern: str, url: str, *, allowed: bool) -> None:
    """Hosts, subdomains, ports and the public web are told apart; look-alikes are not let in."""
    assert AllowList([pattern]).allows_url(url) is allowed


@each_of(
    "pattern",
    ["https://example.com", "a.com/b", "a b", "", "<local>", "a.com;*", "a,b", "*.*", "ex ample"],
)
def test_what_is_no_host_is_refused_when_it_is_declared(pattern: str) -> None:
    """A browser and a shell say alike how a host is written."""
    for declare in (
        AllowList,
        lambda allow: Browser(allow=allow),
        lambda allow: Shell(allow=allow),
    ):
        with pytest.raises(InvalidEnvironment, match=r"is not a host\. Write 'example.com'"):
            declare([pattern])


@pytest.mark.parametrize("declare", [Browser, Shell])
def test_one_string_is_not_taken_for_a_list_of_letters(
    declare: type[Browser] | type[Shell],
) -> None:
    """`allow="example.com"` is refused with how it is written."""
    with pytest.raises(InvalidEnvironment, match="write"):
        declare(allow="example.com")


def test_a_list_without_isolation_is_refused() -> None:
    """It could not be kept."""
    with pytest.raises(InvalidEnvironment, match="has the network and the files of the host"):
        SandboxOptions(isolation="none", hosts=AllowList(["example.com"]))


@each_of(
    ("local", "row", "port", "allowed"),
    [
        ("home.example", "home.example", 80, True),
        ("home.example:80", "home.example", 80, True),
        ("home.example:80", "home.example", 81, False),
        ("home.example", "home.example:80", 80, True),
        ("home.example", "home.example:80", 81, False),
        ("home.example:81", "home.example:80", 80, False),
        ("other.example", "home.example", 80, False),
        ("home.example", "*.example", 80, False),
        ("home.example", "*", 80, False),
    ],
)
def test_an_operator_opens_a_local_host_to_the_rows_that_name_it(
    local: str, row: str, port: int, *, allowed: bool
) -> None:
    """By its name and port, wherever it leads; by itself, and to a pattern, it opens nothing."""
    allow = AllowList().with_row([row], is_trusted=False, local=[local])
    assert allow.allows("home.example", port, ipaddress.ip_address("127.0.0.1")) is allowed


def test_a_row_opens_its_hosts_beside_those_of_its_environment() -> None:
    """What the author declared means the same as before."""
    allow = AllowList(["intranet", "*.corp"]).with_row(["a.example"], is_trusted=False)
    assert str(allow) == "intranet, *.corp, a.example"
    assert allow.allows("intranet", 80, ipaddress.ip_address("10.0.0.1"))
    assert not allow.allows("x.corp", 80, ipaddress.ip_address("10.0.0.1"))
    assert not allow.allows("a.example", 80, ipaddress.ip_address("10.0.0.1"))
    with pytest.raises(EnvironmentFailed, match=r"127\.1:80, an address of this machine"):
        AllowList().with_row(["127.1:80"], is_trusted=False)


@each_of(
    ("text", "is_one"),
    [
        ("localhost:8080", True), ("10.0.0.5", True), ("[::1]:80", True), ("Intranet", True),
        ("*", False), ("*.x", False), ("http://x", False), ("x/y", False), ("", False),
    ],
)  # fmt: skip
def test_one_host_is_told_from_a_pattern_and_a_url(text: str, *, is_one: bool) -> None:
    """What `--allow` takes."""
    assert is_host(text) is is_one
