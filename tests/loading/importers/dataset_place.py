"""A place of data sets on a loopback port: it gives what a test says, and breaks off as it says."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["DatasetPlace", "dataset_place"]


@dataclass
class DatasetPlace:
    """A running server of files.

    Attributes:
        url: Its address.
        files: What it gives, by path.
        breaks: How many bytes it sends before it hangs up, for each of the next requests.
        token: Without which it refuses; empty for none.
        asked: Each request: its path, and the byte that it began at.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    breaks: list[int] = field(default_factory=list)
    token: str = ""
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and hang up."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        path = head[0].split()[1].lstrip("/")
        sent = {name.lower(): value for name, _, value in (h.partition(": ") for h in head[1:])}
        data = self.files.get(path)
        etag = f'"{hashlib.sha256(data or b"").hexdigest()[:16]}"'
        begin = 0
        if sent.get("if-range") == etag:
            begin = int(sent["range"].removeprefix("bytes=").rstrip("-"))
        self.asked.append((path, begin))
        if self.token and sent.get("authorization") != f"Bearer {self.token}":
            status, data = "401 Unauthorized", b"no"
        elif data is None:
            status, data = "404 Not Found", b"none"
        else:
            status = "206 Partial Content" if begin else "200 OK"
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(data) - begin}", "connection: close"]
        lines += [f"etag: {etag}"]
        if begin:
            lines.append(f"content-range: bytes {begin}-{len(data) - 1}/{len(data)}")
        body = data[begin:]
        if self.breaks:
            body = body[: self.breaks.pop(0)]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def dataset_place() -> AsyncIterator[DatasetPlace]:
    """Serve files while the block runs."""
    place = DatasetPlace()
    server = await asyncio.start_server(place.answer, "127.0.0.1", 0)
    place.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield place
