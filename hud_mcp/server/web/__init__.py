"""HTTP faces: who may ask, where they listen, and the frame of a page."""
