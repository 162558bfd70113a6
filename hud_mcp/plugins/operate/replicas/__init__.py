"""Several servers on one store behind a balancer: any of them takes any call.

`replica.py` answers requests. `message.py` reads which session one means, `route.py` finds who runs
it, `forwarding.py` passes it on, and `signature.py` shows that a replica did. `connections.py` has
the connections of the 2025-11-25 era that another replica opened, and `drain.py` leaves.
"""
