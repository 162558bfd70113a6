"""A site with TLS on this machine, under any name, that answers as a test says."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hud_mcp.base.egress import Address
from hud_mcp.plugins.oauth.documents import Documents

__all__ = ["Site", "certificate", "site"]

HOST = "app.example"


@dataclass
class Site:
    """The site.

    Attributes:
        port: Its port on loopback.
        trusts: Certificates of which its own is one.
        answers: The whole answers of its paths; a path that is missing waits for ever.
        asked: The paths that were asked for.
        looked_up: The hosts that were looked up.
    """

    port: int
    trusts: ssl.SSLContext
    answers: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[str] = field(default_factory=list[str])
    looked_up: list[str] = field(default_factory=list[str])

    def url(self, path: str, host: str = HOST) -> str:
        """The address of a path."""
        return f"https://{host}:{self.port}{path}"

    def put(self, path: str, body: str, *, status: str = "200 OK", more: str = "") -> str:
        """Answer a path by a body; return its address."""
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body.encode())}\r\n{more}\r\n"
        self.answers[path] = (head + body).encode()
        return self.url(path)

    def documents(self, admits: Callable[[Address], bool] = lambda _each: True) -> Documents:
        """Documents whose names all lead here."""

        async def look_up(host: str, _port: int) -> list[Address]:
            self.looked_up.append(host)
            return [ip_address("127.0.0.1")]

        return Documents(look_up=look_up, admits=admits, verify=self.trusts)


def certificate(folder: Path, host: str = HOST) -> Path:
    """A certificate of a host that it signed itself, with its private key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "site.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@asynccontextmanager
async def site(folder: Path) -> AsyncGenerator[Site]:
    """Serve while the body runs."""
    pem = certificate(folder)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(pem)
    found = Site(0, ssl.create_default_context(cafile=pem))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            found.asked.append(path)
            if path in found.answers:
                writer.write(found.answers[path])
                await writer.drain()
            else:
                await reader.read()  # until the client leaves
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=own)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found
