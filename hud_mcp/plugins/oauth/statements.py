"""The tables of sign-in, which this plugin makes in the store, and their statements."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from hud_mcp.plugins.oauth.values import Bounds, Secret, digest
from hud_mcp.store.sql.schema import Id, Json, Utc

_MAKING_LOCK = 4_873_121  # PostgreSQL's advisory lock, under which the tables are made

metadata = MetaData()

clients = Table(
    "oauth_clients",
    metadata,
    Column("id", Id(64), primary_key=True),  # the digest of its client_id
    Column("row", Json, nullable=False),  # the Client
    Column("created_at", Utc, nullable=False),
    Column("used_at", Utc),  # when it was last given tokens; none of one that never was
    Index("oauth_clients_used", "used_at", "created_at"),
)

grants = Table(
    "oauth_grants",
    metadata,
    Column("id", Id(64), primary_key=True),
    Column("row", Json, nullable=False),  # the Grant
    Column("expires_at", Utc, nullable=False),  # with the last of its secrets
    Column("ended_at", Utc),  # when it was revoked, or one of its secrets was used twice
    Index("oauth_grants_expires", "expires_at"),
)

secrets = Table(
    "oauth_secrets",
    metadata,
    Column("id", Id(64), primary_key=True),  # the digest of the secret
    Column("grant_id", Id(64), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("row", Json, nullable=False),  # of a code: the request that it answers
    Column("expires_at", Utc, nullable=False),
    Column("used_at", Utc),
    Index("oauth_secrets_expires", "expires_at"),
)

guesses = Table(
    "oauth_guesses",
    metadata,
    Column("id", Id(64), primary_key=True),  # the digest of a name, or of nothing for all names
    Column("amount", Integer, nullable=False),
    Column("until", Utc, nullable=False),
)


def make_tables(connection: Connection) -> None:
    """Make the tables that there are not. Several servers may do so at once."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_MAKING_LOCK})"))
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(CreateIndex(index, if_not_exists=True))


def find_client(connection: Connection, key: str) -> Mapping[str, Any] | None:
    """Find a registered client by the digest of its id."""
    return connection.execute(select(clients.c.row).where(clients.c.id == key)).scalar()


def add_client(
    connection: Connection, key: str, row: Mapping[str, Any], now: datetime, bounds: Bounds
) -> bool:
    """Add a client, after those that expired are gone; return whether there was room."""
    unused = clients.c.used_at.is_(None)
    connection.execute(delete(clients).where(unused, clients.c.created_at < now - bounds.unused))
    connection.execute(delete(clients).where(clients.c.used_at < now - bounds.idle))
    count = select(func.count()).select_from(clients).where(unused)
    if (connection.execute(count).scalar() or 0) >= bounds.most:
        # A crowd of clients that nobody uses makes room for those of people before its time.
        hurried = clients.c.created_at < now - bounds.hurried
        connection.execute(delete(clients).where(unused, hurried))
        if (connection.execute(count).scalar() or 0) >= bounds.most:
            return False
    connection.execute(insert(clients).values(id=key, row=row, created_at=now))
    return True


def add_grant(
    connection: Connection, row: Mapping[str, Any], secret: Secret, until: datetime
) -> None:
    """Add a grant with its first secret."""
    connection.execute(insert(grants).values(id=row["id"], row=row, expires_at=until))
    _add_secrets(connection, row["id"], [secret])


def find_secret(connection: Connection, key: str, kind: str) -> Any:
    """Find a secret by its digest, with its grant; None if there is none of this kind."""
    found = (secrets.c.row, secrets.c.expires_at, secrets.c.used_at)
    query = select(grants.c.row.label("grant"), grants.c.ended_at, *found)
    query = query.join(grants, grants.c.id == secrets.c.grant_id)
    query = query.where(secrets.c.id == key, secrets.c.kind == kind)
    return connection.execute(query).one_or_none()


def exchange(
    connection: Connection,
    key: str,
    grant: Mapping[str, Any],
    new: Sequence[Secret],
    now: datetime,
) -> bool:
    """Use a secret up, and add new ones in its place.

    False if somebody has used it meanwhile, or the grant has ended; then the grant ends here, and
    nothing is added.
    """
    name = grant["id"]
    living = select(grants.c.id).where(grants.c.id == name, grants.c.ended_at.is_(None))
    taken = connection.execute(
        update(secrets)
        .where(secrets.c.id == key, secrets.c.used_at.is_(None), secrets.c.grant_id.in_(living))
        .values(used_at=now)
    )
    if taken.rowcount != 1:
        end_grant(connection, name, now)
        return False
    _add_secrets(connection, name, new)
    until = max(expires_at for *_, expires_at in new)
    connection.execute(update(grants).where(grants.c.id == name).values(expires_at=until))
    client = clients.c.id == digest(grant["client"])
    connection.execute(update(clients).where(client).values(used_at=now))
    _forget(connection, now)
    return True


def end_grant(connection: Connection, grant: str, now: datetime) -> None:
    """End a grant with all of its tokens."""
    open_one = (grants.c.id == grant) & grants.c.ended_at.is_(None)
    connection.execute(update(grants).where(open_one).values(ended_at=now))


def _add_secrets(connection: Connection, grant: str, new: Sequence[Secret]) -> None:
    names = ("id", "kind", "row", "expires_at")
    rows = [dict(zip(names, each, strict=True)) | {"grant_id": grant} for each in new]
    connection.execute(insert(secrets), rows)


def _forget(connection: Connection, now: datetime) -> None:
    """Delete secrets and grants that no request can ask for any more."""
    connection.execute(delete(secrets).where(secrets.c.expires_at < now - timedelta(hours=1)))
    connection.execute(delete(grants).where(grants.c.expires_at < now - timedelta(hours=1)))


def count_guess(
    connection: Connection, bounds: Mapping[str, int], now: datetime, window: timedelta
) -> float:
    """Count one more guess under each of these keys, before it is made.

    Returns:
        The seconds to wait if one of them has reached its bound; then nothing is counted.
    """
    connection.execute(delete(guesses).where(guesses.c.until <= now))
    if connection.dialect.name == "postgresql":  # two servers must not count one guess
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_MAKING_LOCK})"))
    found = {
        row.id: row
        for row in connection.execute(select(guesses).where(guesses.c.id.in_(list(bounds))))
    }
    full = [row.until for key, row in found.items() if row.amount >= bounds[key]]
    if full:
        return float((max(full) - now).total_seconds())
    for key in bounds:
        if key in found:
            statement = update(guesses).where(guesses.c.id == key)
            connection.execute(statement.values(amount=guesses.c.amount + 1))
        else:
            connection.execute(insert(guesses).values(id=key, amount=1, until=now + window))
    return 0.0


def forget_guesses(connection: Connection, key: str) -> None:
    """Forget the guesses under a key, once one of them was right."""
    connection.execute(delete(guesses).where(guesses.c.id == key))
