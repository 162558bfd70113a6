"""A connection to a VNC server: vncdotool's protocol on a transport of asyncio.

The library itself uses a thread with a reactor; its protocol needs neither.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed, NotInstalled

if TYPE_CHECKING:
    from PIL.Image import Image


logger = logging.getLogger(__name__)

CONNECT_BOUND_S = 15.0
REFRESH_BOUND_S = 10.0


class Vnc(asyncio.Protocol):
    """One connection, with the pointer's last position and a bit for each pressed button."""

    def __init__(self, password: str | None) -> None:
        try:
            client = libraries.vnc_client
        except ImportError:
            raise NotInstalled(
                "A screen over VNC needs `pip install hud-mcp[vnc]`. Nothing was done."
            ) from None
        self.x = self.y = 0
        self.buttons = 0
        factory = client.VNCDoToolFactory()
        factory.password = password
        self._client: Any = factory.protocol()
        self._client.factory = factory
        self._ready = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._reason = ""
        self._painted = asyncio.Event()
        self.is_open = False
        factory.deferred.addCallbacks(self._on_ready, self._on_failed)

    @classmethod
    async def connect(cls, host: str, port: int, *, password: str | None = None) -> "Vnc":
        """Connect, and wait until the size of the screen is known.

        Raises:
            EnvironmentFailed: Nothing answers, or no VNC server does, or it refuses the password.
            NotInstalled: vncdotool is missing.
        """
        vnc = cls(password)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_BOUND_S):
                await loop.create_connection(lambda: vnc, host, port)
                await vnc._ready
                await vnc.refresh()
        except BaseException as exc:
            vnc.close()
            if isinstance(exc, OSError | TimeoutError):
                reason = vnc._reason or str(exc) or "it took too long"
                raise EnvironmentFailed(f"The screen cannot be reached: {reason}") from exc
            raise
        return vnc

    @property
    def size(self) -> tuple[int, int]:
        """The width and height in pixels."""
        return self.picture.size

    @property
    def picture(self) -> "Image":
        """The screen at the last update."""
        return cast("Image", self._client.screen)

    async def refresh(self, *, incremental: bool = False) -> None:
        """Wait for the screen, or for its changes.

        ConnectionError tells an end, TimeoutError silence.
        """
        self._check()
        done = asyncio.get_running_loop().create_future()

        def on_painted(_client: Any) -> None:
            if not done.done():
                done.set_result(None)

        self._client.refreshScreen(incremental).addCallback(on_painted)
        ended = asyncio.ensure_future(self._painted.wait())
        try:
            async with asyncio.timeout(REFRESH_BOUND_S):
                await asyncio.wait([done, ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        self._check()

    def point(self, x: float, y: float, buttons: int | None = None) -> None:
        """Move the pointer, with the present or given buttons; ConnectionError after the end."""
        self._check()
        self.x, self.y = round(x), round(y)
        self.buttons = self.buttons if buttons is None else buttons
        self._client.x, self._client.y = self.x, self.y  # the library draws the pointer there
        self._client.pointerEvent(self.x, self.y, self.buttons)

    def key(self, keysym: int, *, down: bool) -> None:
        """Press or release a key; ConnectionError after the connection's end."""
        self._check()
        self._client.keyEvent(keysym, down)

    def close(self) -> None:
        """Disconnect. It may be called twice."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102
        self._transport = cast("asyncio.Transport", transport)
        self._client.makeConnection(_Transport(self._transport))

    def data_received(self, data: bytes) -> None:  # noqa: D102
        try:
            self._client.dataReceived(data)
        except Exception as exc:  # noqa: BLE001  # an error of the library, which cannot read on
            logger.info("a VNC server's message could not be read: %r", exc)
            self._end(f"its messages cannot be read ({type(exc).__name__})")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        self._end(str(exc) if exc else "it closed the connection")

    def _on_ready(self, _client: Any) -> None:
        self.is_open = True
        if not self._ready.done():
            self._ready.set_result(None)

    def _on_failed(self, failure: Any) -> None:
        self._end(str(getattr(failure, "value", failure)))

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self.is_open = False
        self._painted.set()
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(self._reason))
        if self._transport is not None:
            self._transport.abort()

    def _check(self) -> None:
        if not self.is_open:
            raise ConnectionError(f"the connection to the screen has ended: {self._reason}")


class _Transport:
    """The transport that the library expects."""

    disconnecting = False

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def loseConnection(self) -> None:  # noqa: N802  # Twisted's name
        self._transport.close()

    def setTcpNoDelay(self, _enabled: object) -> None:  # noqa: N802  # asyncio does it itself
        """Do nothing."""
