"""The garbage collector leaves alone what pytest has collected, which lasts as long as the run.

It would go through thousands of tests and all that they import, again and again.
"""

import gc
from collections.abc import Generator

import pytest

__all__ = ["pytest_collection"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without it, and set what is there apart."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
