"""The servers of a job on the nodes of a Ray cluster."""
