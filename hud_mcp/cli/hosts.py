"""`--allow`: which local hosts the rows of tasks may open."""

import click

__all__ = ["allow_option"]

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="A host of this machine or of a private network, such as localhost:8080, that the row of "
    "any task may open, an imported one too. By itself it opens nothing.",
)
"""The option; the same for each command that holds sessions."""
