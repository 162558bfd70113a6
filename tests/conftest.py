"""What every test shares."""

import pytest
from hypothesis import HealthCheck, settings

# No property is about time, and the machine may be busy.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Playwright and the SDK's HTTP app run on asyncio, so that is what is tested."""
    return "asyncio"


@pytest.fixture(scope="session")
async def machine(anyio_backend: str) -> None:
    """That sandboxes can be made here; where not, whatever needs one is skipped aloud."""
    from hud_mcp.errors import EnvironmentFailed  # noqa: PLC0415  # few tests need it
    from hud_mcp.sandbox import Sandbox, SandboxOptions  # noqa: PLC0415

    try:
        sandbox = await Sandbox.open(SandboxOptions())
    except EnvironmentFailed as exc:
        pytest.skip(f"NO SANDBOX HERE, SO NOTHING OF IT IS TESTED: {exc}")
    await sandbox.close()
