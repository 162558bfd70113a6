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
