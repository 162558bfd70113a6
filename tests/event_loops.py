"""Which event loop a test is told that it runs in, where `sniffio` is installed.

AnyIO's plugin names its own for as long as a fixture lives that is asynchronous: a whole module, or
the whole run. A test that begins a loop of its own would be refused one, though none runs.
"""

from typing import Any

import pytest

try:
    from sniffio import current_async_library_cvar as _named
except ImportError:  # then AnyIO asks asyncio itself
    _named = None


def _forget(*_: Any) -> None:
    if _named is not None:
        _named.set(None)  # sniffio looks at the running task then


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before its fixtures."""
    _forget(item)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> None:
    """Before each of them: another one may have begun a loop."""
    _forget(fixturedef)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Before the test itself."""
    _forget(item)
