"""Where MiniWoB++ keeps its pages."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["find_pages"]


def find_pages() -> Path:
    """The folder of the site, found without importing the package, which needs Selenium.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    try:
        package = distribution("miniwob")
    except PackageNotFoundError:
        raise ModuleNotFoundError(
            "MiniWoB++ is not installed. `pip install 'hud-mcp[miniwob]'` brings its pages"
        ) from None
    return Path(str(package.locate_file("miniwob/html")))
