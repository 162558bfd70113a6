"""Several servers on one store behind a balancer: any of them takes any call."""
