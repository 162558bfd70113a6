"""The servers of a job on the nodes of a Ray cluster.

`libraries` loads Ray, `nodes` describes a cluster and gathers the files for it, `node_server` runs
on a node, and `servers` serves a job on them, with an address for agents that stays.
"""
