"""The scheme `gym:`: any Gymnasium environment by its id, with options."""

import importlib.util
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from hud_mcp.environment.author_files import load_module
from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment, NotInstalled, SourceNotFound, did_you_mean
from hud_mcp.loading.source import Scheme, shipped_folder

_GYM = "gym:"
_NAME = re.compile(r"CARL[A-Z][A-Za-z0-9]*|[A-Za-z0-9_-]+-v\d+")
"""The names of environments that are made of Gymnasium ids, in rows."""


def _load(source: str) -> list[Environment]:
    """Make the environment of an id once; raise `NotInstalled` if the extra is missing."""
    missing = [n for n in ("gymnasium", "ConfigSpace") if importlib.util.find_spec(n) is None]
    if missing:
        raise NotInstalled(
            f"{source} needs {' and '.join(missing)}: pip install 'hud-mcp[gymnasium]', or "
            "'hud-mcp[box2d]' with Box2D."
        )
    module: Any = load_module(shipped_folder("environments") / "gym" / "make.py")
    made: dict[str, Environment] = module.__dict__.setdefault("made", {})
    lasting = _lasting(source)
    if lasting in made:
        return [made[lasting]]
    env_id, options = _split_options(source)
    if not env_id:
        raise SourceNotFound(f"{source!r} names no environment; write one, as in gym:CartPole-v1.")
    try:
        known: list[str] = module.option_names(env_id)
        if unknown := [name for name in options if name not in known]:
            raise InvalidEnvironment(
                f"{source}: there is no option {unknown[0]!r}.{did_you_mean(unknown[0], known)} "
                f"There are: {', '.join(known)}."
            )
        environment: Environment = module.make(env_id, options)
    except ValueError as exc:
        raise InvalidEnvironment(f"{source}: {exc}") from exc
    environment.loaded(text=lasting)
    made[lasting] = environment
    return [environment]


def _lasting(source: str) -> str:
    env_id, options = _split_options(source)
    lasting = {
        name: str(Path(value).resolve()) if Path(value).is_file() else value
        for name, value in options.items()
    }
    return f"{_GYM}{env_id}" + (f"?{urlencode(lasting, safe='/')}" if lasting else "")


def _named(name: str) -> str | None:
    return f"{_GYM}{name}" if _NAME.fullmatch(name) else None


def _split_options(source: str) -> tuple[str, dict[str, str]]:
    env_id, _, options = source.removeprefix(_GYM).partition("?")
    return env_id, dict(parse_qsl(options, keep_blank_values=True))


SCHEME = Scheme(load=_load, lasting=_lasting, named=_named)
