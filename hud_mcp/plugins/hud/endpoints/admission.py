"""One loopback port for all sessions, and a secret for each: what `ssh/2` and `cdp/1.3` share."""

import secrets
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

from hud_mcp.base.listening import LOOPBACK
from hud_mcp.environment.world import EndpointAccess, FindSession
from hud_mcp.values.capability import Capability


class _Server(Protocol):
    @property
    def port(self) -> int: ...

    async def close(self) -> None: ...


AccessT = TypeVar("AccessT", bound=EndpointAccess)
ServerT = TypeVar("ServerT", bound=_Server)


class Admission(Generic[AccessT]):
    """The accesses of a server's sessions, by their secrets."""

    def __init__(self) -> None:
        self._accesses: dict[str, AccessT] = {}

    def admit(self, secret: str, access: AccessT) -> AccessT:
        """Let the clients of a session in by its secret, until `dismiss`."""
        self._accesses[secret] = access
        return access

    def find(self, secret: str) -> AccessT | None:
        """Return the access of a secret, or None."""
        given, found = secret.encode(), None
        for known, access in self._accesses.items():  # all of them: how long it takes tells nothing
            if secrets.compare_digest(known.encode(), given):
                found = access
        return found

    def dismiss(self, secret: str) -> None:
        """Forget a secret."""
        self._accesses.pop(secret, None)

    async def close(self) -> None:
        """Close every access."""
        for access in list(self._accesses.values()):
            await access.close()


class PortEndpoint(ABC, Generic[ServerT]):
    """An `Endpoint` with a server on one loopback port; a subclass admits sessions to it."""

    protocol: ClassVar[str]
    scheme: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name
        self._opened: ServerT | None = None

    def check(self) -> None:
        """Accept every machine; a subclass may need a library."""

    async def open(self) -> None:
        """Listen on a loopback port; HudMcpError says that no port is free."""
        self._opened = await self.listen()

    @property
    def server(self) -> ServerT:
        """The open server."""
        if self._opened is None:
            raise RuntimeError("the endpoint is not open")
        return self._opened

    @property
    def address(self) -> Capability:
        """The address of the server."""
        url = f"{self.scheme}://{LOOPBACK}:{self.server.port}"
        return Capability(name=self.name, protocol=self.protocol, url=url)

    async def close(self) -> None:
        """Stop listening. It may be called twice."""
        if self._opened is not None:
            await self._opened.close()

    @abstractmethod
    async def listen(self) -> ServerT:
        """Open the server."""

    @abstractmethod
    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Admit a session to the open server."""
