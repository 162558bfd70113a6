"""HTTP surfaces: their access, their listeners, and the frame of a page."""
