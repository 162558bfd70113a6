"""A store on each kind of database, as the tests of the store have."""

from databases import data_folder, open_store, serve, store, url

__all__ = ["data_folder", "open_store", "serve", "store", "url"]
