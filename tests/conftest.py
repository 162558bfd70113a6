"""What every test shares."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Playwright and the SDK's HTTP app run on asyncio, so that is what is tested."""
    return "asyncio"
