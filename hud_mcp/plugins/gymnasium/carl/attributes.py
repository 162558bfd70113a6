"""The contextual wrapper for any environment, whose features declare the attributes they set."""

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from hud_mcp.errors import InvalidContext, did_you_mean
from hud_mcp.plugins.gymnasium import libraries
from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import constants_of, make_quietly
from hud_mcp.plugins.gymnasium.carl.space import ContextSpace
from hud_mcp.values.context import Context, ContextFeature, ContextSelector, Scalar, plain_value

_PART = re.compile(r"(?P<name>[A-Za-z_]\w*)|\[(?P<index>[^\[\]]*)\]")
_INDEX = re.compile(r"""\s*(?:(-?\d+)|(:)|'([^']*)'|"([^"]*)")\s*""")
_SHOWN = 12
"""The most attributes, keys or values that an error lists."""


@dataclass(frozen=True)
class _Part:
    """One part of a path: an attribute's name or an index, after the path `before` it."""

    key: Any
    is_index: bool
    before: str
    is_slice: bool = False


class AttributePath:
    """A path such as `masscart`, `world.gravity` or `model.opt.gravity[2]`.

    `[2]` or `[-1]` is a place of a sequence, `[1, 0]` of an array, `[:, 0]` each of a column, and
    `['key']` a key. Another form raises `InvalidContext`; errors name the feature.
    """

    def __init__(self, text: str, feature: str) -> None:
        self.text = text
        self._feature = feature
        self._parts = list(self._parsed())

    def read(self, env: Any) -> Any:
        """Return the value at the path, or raise `InvalidContext` for none or several."""
        value = self._follow(env, self._parts)
        if not any(part.is_slice for part in self._parts):
            return plain_value(value)
        values = sorted(set(libraries.numpy.ravel(value).tolist()))
        if len(values) == 1:
            return values[0]
        some = ", ".join(f"{each:g}" for each in values[:_SHOWN])
        raise InvalidContext(f"{self._said()} holds several values: {some}. Name one by its place.")

    def write(self, env: Any, value: Any) -> None:
        """Set the value and see that it is there, or raise `InvalidContext`."""
        *before, last = self._parts
        owner = self._follow(env, before)
        if not last.is_index:
            self._step(owner, last)  # no attribute comes to be by a mistake
        try:
            if last.is_index:
                owner[last.key] = value
            else:
                setattr(owner, last.key, value)
        except (AttributeError, TypeError, ValueError, IndexError, KeyError) as exc:
            kind = type(owner).__name__
            raise InvalidContext(
                f"{self._said()} cannot be set in a {kind}: {type(exc).__name__}: {exc}."
            ) from exc
        there = self._follow(env, self._parts)
        if not _holds(there, value):
            raise InvalidContext(
                f"{self._said()} was set to {value!r} and still is {plain_value(there)!r}. What is "
                f"read at {last.before or self.text!r} is a copy, or of another type."
            )

    def check(self, env: Any) -> None:
        """Set the value to itself, or raise `InvalidContext` if it cannot be set."""
        there = self._follow(env, self._parts)
        if isinstance(plain_value(there), Scalar):
            self.write(env, plain_value(there))

    def _parsed(self) -> Iterator[_Part]:
        at, end = 0, len(self.text)
        while at < end or at == 0:
            begin = at + 1 if at and self.text[at] == "." else at
            found = _PART.match(self.text, begin)
            # A name begins the path or follows a dot; an index does neither.
            if found is None or (found["name"] is None) == (at == 0 or begin > at):
                raise InvalidContext(
                    f"{self._said()}, which is not a path from its character {at + 1} on; write "
                    "names and indexes, such as 'model.opt.gravity[2]'."
                )
            before = self.text[:at]
            if found["name"] is None:
                keys = self._index(found["index"])
                key = keys[0] if len(keys) == 1 else tuple(keys)
                is_slice = any(isinstance(each, slice) for each in keys)
                yield _Part(key, is_index=True, before=before, is_slice=is_slice)
            else:
                yield _Part(found["name"], is_index=False, before=before)
            at = found.end()

    def _index(self, text: str) -> list[Any]:
        keys: list[Any] = []
        for part in text.split(","):
            found = _INDEX.fullmatch(part)
            if found is None:
                raise InvalidContext(
                    f"{self._said()} has the index [{text}]; write [2], [-1], [1, 0], [:, 0] or "
                    "['key']."
                )
            whole, every, one, other = found.groups()
            if whole is not None:
                keys.append(int(whole))
            else:
                keys.append(slice(None) if every else one if one is not None else other)
        return keys

    def _follow(self, value: Any, parts: Iterable[_Part]) -> Any:
        for part in parts:
            value = self._step(value, part)
        return value

    def _step(self, value: Any, part: _Part) -> Any:
        kind = type(value).__name__
        if not part.is_index:
            if hasattr(value, part.key):
                return getattr(value, part.key)
            known = _names(value)
            raise InvalidContext(
                f"{self._said()}, and a {kind} has no attribute {part.key!r}."
                f"{did_you_mean(part.key, known)} It has {_nearest(part.key, known)}."
            )
        try:
            return value[part.key]
        except KeyError:
            known = [str(key) for key in value]
            raise InvalidContext(
                f"{self._said()}, and {part.before!r} has no key {part.key!r}. It has "
                f"{_nearest(str(part.key), known)}."
            ) from None
        except (IndexError, TypeError) as exc:
            shape = getattr(value, "shape", None)
            size = f" of shape {shape}" if shape else f" of {len(value)}" if _sized(value) else ""
            raise InvalidContext(
                f"{self._said()}, and {part.before!r} is a {kind}{size}: {exc}."
            ) from None

    def _said(self) -> str:
        return f"The feature {self._feature!r} sets {self.text!r}"


def _holds(there: Any, value: Any) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(libraries.numpy.allclose(there, value, rtol=1e-5, atol=1e-9))
    return bool(libraries.numpy.all(there == value))


def _sized(value: Any) -> bool:
    return hasattr(value, "__len__")


def _names(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


def _nearest(name: str, known: list[str]) -> str:
    """Return some of the names, those that resemble a name first."""
    near = difflib.get_close_matches(name, known, n=_SHOWN, cutoff=0.4)
    shown = [*near, *(each for each in known if each not in near)][:_SHOWN]
    more = len(known) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


class CARLAttributesEnv(CARLEnv):
    """Any environment whose features are attributes of it.

        env = CARLAttributesEnv(
            "CartPole-v1",
            attributes={"gravity": "gravity", "mass": "masscart"},
            features=[ContextFeature(name="gravity", default=9.8, lower=1, upper=20)],
            derived={"total_mass": lambda env: env.masscart + env.masspole},
            contexts={"moon": {"gravity": 1.62}, "heavy": {"mass": 5}},
        )

    Args:
        env: The environment, or the id under which Gymnasium makes it.
        attributes: From each feature to the attribute of the bare environment that it sets;
            a dot leads into an object, and an index into a sequence, an array or a mapping
            (`"model.opt.gravity[2]"`, `"model.geom_friction[:, 0]"`, `"settings['speed']"`).
            MuJoCo recomputes values that follow from its model.
        features: Their defaults and bounds. An omitted feature has the attribute's first value as
            its default, and no bounds.
        derived: From an attribute, or a path to one, to a function of the bare environment that
            gives its value, called in order after the features are set.
        options: Arguments of `CARLEnv`; and arguments of `gymnasium.make`, if `env` is an id.

    Raises:
        InvalidContext: The environment has no such attribute, or no plain value in it, or it
            cannot be set; the text says where its path ends and what is there.
    """

    def __init__(  # noqa: PLR0917  # CARL's signature
        self,
        env: gymnasium.Env[Any, Any] | str,
        contexts: Mapping[Any, Mapping[str, Any]] | None = None,
        obs_context_features: Sequence[str] | None = None,
        obs_context_as_dict: bool = True,  # noqa: FBT001, FBT002  # the same
        context_selector: ContextSelector | type[ContextSelector] | None = None,
        context_selector_kwargs: Mapping[str, Any] | None = None,
        *,
        attributes: Mapping[str, str],
        features: Iterable[ContextFeature] = (),
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        state_key: str = "state",
        **options: Any,
    ) -> None:
        features = tuple(features)
        RecordConstructorArgs.__init__(
            self,
            contexts=contexts,
            obs_context_features=obs_context_features,
            obs_context_as_dict=obs_context_as_dict,
            context_selector=context_selector,
            context_selector_kwargs=context_selector_kwargs,
            attributes=attributes,
            features=features,
            derived=derived,
            state_key=state_key,
        )
        if isinstance(env, str):
            env = make_quietly(env, **{"render_mode": "rgb_array", **options})
            options = {}
        self._attributes = {name: AttributePath(path, name) for name, path in attributes.items()}
        self._derived = {
            AttributePath(path, path): derive for path, derive in (derived or {}).items()
        }
        self._declared = ContextSpace(_complete(env.unwrapped, self._attributes, features))
        self._constants = constants_of(env.unwrapped) if "mujoco" in sys.modules else None
        self._entered = self._declared.default
        super().__init__(
            env,
            contexts,
            obs_context_features,
            obs_context_as_dict,
            context_selector,
            context_selector_kwargs,
            state_key=state_key,
            **options,
        )

    # Of one environment and not of the class: its author declares them with it.

    def get_context_features(self) -> Mapping[str, ContextFeature]:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """Return the features, by their names."""
        return {feature.name: feature for feature in self._declared.features}

    def get_context_space(self) -> ContextSpace:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """Return the space of the features."""
        return self._declared

    def get_default_context(self) -> Context:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """Return every feature at its default."""
        return self._declared.default

    def _update_context(self) -> None:
        env = self.unwrapped
        context = dict(self.context or {})
        for name, value in context.items():
            self._attributes[name].write(env, value)
        for path, derive in self._derived.items():
            path.write(env, derive(env))
        if self._constants is not None and context != self._entered:
            self._constants.update()
        self._entered = context


def _complete(
    env: Any, attributes: Mapping[str, AttributePath], features: tuple[ContextFeature, ...]
) -> list[ContextFeature]:
    declared = {feature.name: feature for feature in features}
    for name in declared:
        if name not in attributes:
            raise InvalidContext(
                f"The feature {name!r} sets no attribute.{did_you_mean(name, attributes)} Add it "
                "to `attributes`."
            )
    for path in attributes.values():
        path.check(env)
    return [
        declared.get(name) or _inferred(name, path.read(env), path.text)
        for name, path in attributes.items()
    ]


def _inferred(name: str, value: Any, path: str) -> ContextFeature:
    if not isinstance(value, Scalar):
        raise InvalidContext(
            f"The feature {name!r} sets {path!r}, which holds a {type(value).__name__}; a feature "
            "is a number, a text, or true or false."
        )
    return ContextFeature(name=name, default=value)
