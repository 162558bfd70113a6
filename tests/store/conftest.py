"""A store on each kind of database."""

from databases import data_folder, open_store, serve, store, url

__all__ = ["data_folder", "open_store", "serve", "store", "url"]
