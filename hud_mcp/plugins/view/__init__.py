"""Records as people and programs follow them: pages, exported files, notebooks, a person's desk."""
