"""`--allow`: which local hosts the rows of tasks may open."""

import click

__all__ = ["allow_option"]

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="Let rows of tasks open this local or private host, such as localhost:8080.",
)
"""The option; the same for each command that holds sessions."""
