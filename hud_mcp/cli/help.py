"""The commands: the options that all of them take, and help within a terminal's 80 columns."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

from hud_mcp.errors import did_you_mean
from hud_mcp.registry import load

_ANY_LENGTH = 1_000
_WIDE = (None, 2**63 - 1)
"""The ends of ranges that bound nothing which a person would write."""
_TERM_CHARS = 24
"""Columns for an option's name: the other two thirds of a line are for its sentence."""

_SHARED = {
    "store": (
        "--store URL",
        "The record: a SQLite file or a PostgreSQL URL. Default: HUD_MCP_STORE, else your own.",
    ),
    "as_json": ("--json", "Print JSON Lines."),
    "rare": ("--set NAME=VALUE", "Give an option by its name, also one that is not listed."),
    "config": ("--config FILE", "Take options from a TOML file: [serve] has those of serve."),
}
"""The options of every command, with their sentence. They stand before its name or after it."""


_OF_ALL = "Shared options"
_META = "hud_mcp.shared_options"


def shared_options() -> list[click.Option]:
    """Return the options of every command for the group of all, where its help shows them."""
    return [_shared(name, _keep, help=text) for name, (_, text) in _SHARED.items()]


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Keep the value of an option that stands before the name of its command."""
    ctx.meta.setdefault(_META, {})[option.name] = value


def _shared(name: str, callback: Any = None, **more: Any) -> click.Option:
    spelled, _, metavar = _SHARED[name][0].partition(" ")
    kind: dict[str, Any] = {"metavar": metavar} if metavar else {"is_flag": True}
    return click.Option(
        [spelled, name],
        multiple=name == "rare",
        expose_value=False,
        callback=callback,
        **kind,
        **more,
    )


class Command(click.Command):
    """A command whose help lists its options in groups.

    Args:
        *args: As click's.
        groups: The parameters of each group, by its heading. The other options come last.
        **kwargs: As click's.
    """

    def __init__(
        self, *args: Any, groups: Mapping[str, Sequence[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = dict(groups or {})
        self._own = {str(each.name) for each in self.params}
        # A command without a record takes --store and has no use for it, as a program may pass it.
        self.params += [_shared(name, hidden=True) for name in _SHARED if name not in self._own]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments after those of a file, the group and `--set`; a later one wins."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        written, _, _ = self.make_parser(ctx).parse_args(list(args))
        if "as_json" not in self._own and (written.get("as_json") or _of_group(ctx, "as_json")):
            raise click.UsageError(f"`{ctx.command_path}` prints no JSON; leave --json out.", ctx)
        before = list(self._before(ctx, written))
        return super().parse_args(ctx, [*before, *args])

    def _before(self, ctx: click.Context, written: Mapping[str, Any]) -> Iterator[str]:
        after = None if "config" in self._own else written.get("config")
        for file in (_of_group(ctx, "config"), after):
            if file is not None:
                yield from self._of_file(ctx, Path(file))
        for option in self.params:
            value = _of_group(ctx, str(option.name))
            if isinstance(option, click.Option) and option.name in self._own and value:
                values = cast("tuple[Any, ...]", value if option.multiple else (value,))
                for each in values:
                    yield _flag(option) if option.is_flag else f"{_flag(option)}={each}"
        for each in (*(_of_group(ctx, "rare") or ()), *(written.get("rare") or ())):
            name, equals, value = each.partition("=")
            if not equals:
                raise click.UsageError(f"--set {each}: write NAME=VALUE.", ctx)
            yield from self._written(ctx, name, value, "--set")

    def _of_file(self, ctx: click.Context, file: Path) -> Iterator[str]:
        try:
            table = _table(
                load("tomllib:loads")(file.read_text(encoding="utf-8"))
            )  # few have a file
        except (OSError, ValueError) as exc:
            raise click.UsageError(f"--config {file} cannot be read: {exc}.", ctx) from None
        known = _root_commands(ctx)
        for name in table:
            if name not in known:
                raise click.UsageError(
                    f"--config {file}: there is no command [{name}].{did_you_mean(name, known)} "
                    "A table has the name of a command.",
                    ctx,
                )
        for name in _path(ctx):
            table = _table(table.get(name))
        for name, value in table.items():
            yield from self._written(ctx, name, value, f"--config {file}")

    def _written(self, ctx: click.Context, name: str, value: Any, where: str) -> Iterator[str]:
        name, _, key = name.partition(".")
        option = self._named(ctx, name, where)
        if key:
            value = f"{key}={value}"
        if isinstance(value, dict):
            for inner, each in _table(value).items():
                yield f"{_flag(option)}={inner}={each}"
        elif isinstance(value, list):
            for each in cast("list[Any]", value):
                yield f"{_flag(option)}={each}"
        elif not option.is_flag:
            yield f"{_flag(option)}={value}"
        elif str(value).lower() in _TRUE:
            yield _flag(option)
        elif option.secondary_opts:
            yield option.secondary_opts[0]

    def _named(self, ctx: click.Context, name: str, where: str) -> click.Option:
        options = self._by_name(ctx)
        found = options.get(name.replace("-", "_"))
        if found is None:
            rows = "".join(
                f"\n  {each}: {option.help}"
                for each, option in options.items()
                if option.hidden and option.help
            )
            raise click.UsageError(
                f"{where}: `{ctx.command_path}` has no option {name!r}."
                f"{did_you_mean(name, options)} It has those of its --help"
                f"{', and:' + rows if rows else '.'}",
                ctx,
            )
        return found

    def _by_name(self, ctx: click.Context) -> dict[str, click.Option]:
        """Return the options of this command alone, by the names that `--set` takes."""
        return {
            _flag(each).lstrip("-").replace("-", "_"): each
            for each in self.get_params(ctx)
            if isinstance(each, click.Option) and each.name in self._own and not each.deprecated
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its heading."""
        last = "Other options" if self.groups else "Options"
        heading_of = {name: each for each, names in self.groups.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {
            **{heading: [] for heading in (*self.groups, last)},
            _OF_ALL: list(self._shared_rows(ctx)),
        }
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                heading = heading_of.get(param.name or "", last)
                heading = _OF_ALL if "--help" in param.opts else heading
                rows[heading].append((record[0], _without_bound(record[1], param, ctx)))
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=_TERM_CHARS)

    def _shared_rows(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        options = self._by_name(ctx)
        rare = [name for name in options if options[name].hidden and options[name].help]
        rare = [name for name in rare if name not in ("store", "json")]
        above = ctx.parent.command if ctx.parent is not None else None
        for option in above.shared if isinstance(above, Group) else ():
            if option.name in self._own and (row := option.get_help_record(ctx)) is not None:
                yield row
                rare = [name for name in rare if name != _flag(option).lstrip("-")]
        for name, (shown, sentence) in _SHARED.items():
            if name in self._own and name in ("store", "as_json"):
                yield shown, sentence
            elif name == "rare" and rare:
                yield shown, f"Rare options: {', '.join(rare)}."
            elif name == "config" and rare:
                yield shown, sentence


class Group(click.Group):
    """A group whose help has the whole first sentence of each command, in the order of use.

    Args:
        *args: As click's.
        shared: Options that its commands take too, before the command's name or after it. The
            commands that have them hide them.
        **kwargs: As click's.
    """

    command_class = Command

    def __init__(self, *args: Any, shared: Sequence[click.Option] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shared = shared
        for option in shared:
            option.expose_value, option.callback = False, _keep
        self.params += shared

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which the commands were added."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line or two for each command; nothing is cut."""
        rows = [
            (name, self.commands[name].get_short_help_str(_ANY_LENGTH))
            for name in self.list_commands(ctx)
            if not self.commands[name].hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_TRUE = ("true", "1", "yes", "on")


def _flag(option: click.Option) -> str:
    return max(option.opts, key=len)


def _path(ctx: click.Context) -> list[str]:
    """Return the names of a command below the group of all: `store`, `prune`."""
    above = ctx.parent
    return [] if above is None else [*_path(above), str(ctx.info_name)]


def _root_commands(ctx: click.Context) -> list[str]:
    root = ctx.find_root()
    return root.command.list_commands(root) if isinstance(root.command, click.Group) else []


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _of_group(ctx: click.Context, name: str) -> Any:
    return ctx.meta.get(_META, {}).get(name)


def _without_bound(text: str, option: click.Option, ctx: click.Context) -> str:
    """Leave out a bound that any number of the kind has, such as `x>=1`; an error names it."""
    bound = option.get_help_extra(ctx).get("range", "")
    if not bound or getattr(option.type, "max", None) in _WIDE:
        return text.replace(f"; {bound}]", "]").replace(f"  [{bound}]", "") if bound else text
    return text
