"""What the tests of the control channel ask of a session that nobody attends to."""

import re
from collections.abc import Callable

from waiting import until
from wire import Gate, Refused, Served, wire

Gates = Callable[[str], Gate]
SESSION = re.compile(r"sess-[0-9a-f]{32}")


async def parked(here: Served, session: str) -> None:
    """Wait until no connection speaks for a session."""
    held = here.channel._service.hud_sessions._by_id.get(session)
    await until(lambda: held is None or held.speaker is None)


async def refusal(here: Served, session: str) -> Refused:
    """What the next connection is told that names a session."""
    await parked(here, session)
    async with wire(here.port, hello=False) as peer:
        refused = await peer.refused("hello", session_id=session)
        assert refused.code == -32600
        assert refused.text.startswith(f"unknown session: {session!r}")
        assert (await peer.refused("tasks.grade", answer="x")).text == "no task in progress"
        return refused
