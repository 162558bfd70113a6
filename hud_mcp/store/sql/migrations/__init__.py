"""The store's revisions, run by Alembic where a store of an earlier version is opened."""
