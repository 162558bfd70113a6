"""`hud-mcp users`: the people who may sign in."""

import sys

import click

from hud_mcp.cli.help import Group
from hud_mcp.plugins.oauth.people import PasswordFile
from hud_mcp.plugins.oauth.settings import users_file


@click.group("users", Group)
def command() -> None:
    """Name the people who may sign in to a server with --oauth."""


@command.command("add")
@click.argument("name")
@click.option("--operator", is_flag=True, help="Let this person run and grade tasks as operator.")
def add(name: str, *, operator: bool) -> None:
    """Add a person, or give them another password.

    The password is asked for, or is the first line of standard input. Another password ends all
    that was granted under the one before.
    """
    people = PasswordFile(users_file())
    is_new = people.add(name, _read_password(), is_operator=operator)
    click.echo(f"{name} {'may sign in' if is_new else 'has another password'}: {people.path}")


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove a person, whose tokens end with that."""
    people = PasswordFile(users_file())
    people.remove(name)
    click.echo(f"{name} may not sign in any more: {people.path}")


@command.command("list")
def list_people() -> None:
    """List the people who may sign in."""
    for each in PasswordFile(users_file()).all().values():
        click.echo(f"{each.name}\toperator" if each.is_operator else each.name)


def _read_password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")
