"""The removal of fields from models' turns. Each function takes an open connection."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from hud_mcp.errors import StoreFailed
from hud_mcp.record.recorded_turn import RedactedField
from hud_mcp.store.sql.schema import turns
from hud_mcp.store.sql.turns import load_turns

__all__ = ["empty_log", "redact"]

_PLACE = {"number", "before_step", "until_step"}
"""What of a turn is in columns of their own."""


def redact(
    connection: Connection,
    trajectory_ids: Sequence[str],
    fields: Sequence[RedactedField],
    at: datetime,
) -> tuple[int, int]:
    """Remove fields of all turns of some sessions, for good, and leave a marker in each.

    Returns:
        The number of turns, and the number of turns that had such fields.

    Raises:
        DamagedRecord: A row is damaged. Nothing was removed.
    """
    count = changed = 0
    for trajectory_id in trajectory_ids:
        for turn in load_turns(connection, [trajectory_id])[trajectory_id]:
            count += 1
            kept = turn.redacted(fields, at)
            if kept is turn:
                continue
            changed += 1
            row = kept.model_dump(mode="json", exclude_defaults=True, exclude=_PLACE)
            here = (turns.c.session_id == trajectory_id, turns.c.turn == turn.number)
            # The digest is of what is gone: whoever guesses that could prove it.
            values = {"row": row, "digest": secrets.token_hex(32)}
            connection.execute(turns.update().where(*here).values(**values))
    return count, changed


def empty_log(connection: Connection) -> None:
    """Move what SQLite still has in its log into the file, which has nothing of what was removed.

    Raises:
        StoreFailed: Others read for so long that it stays.
    """
    if connection.dialect.name != "sqlite":
        return
    stays, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    if stays:
        raise StoreFailed(
            "The fields are removed, but SQLite's log still has them, as another process reads "
            "the store. Let it finish, then redact again."
        )
