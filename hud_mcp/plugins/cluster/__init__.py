"""The servers of a job on the nodes of a Ray cluster.

`libraries` loads Ray, `nodes` tells what a cluster has, `files` gathers what is sent to it,
`node_server` runs on a node, `servers` keeps one server on one node after the other, `anywhere`
lets a run go on where its node is gone, and `relay` gives agents an address that stays.
"""
