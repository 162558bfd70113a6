"""Sign-in of people over HTTP: an authorization server of this program's own, or another issuer."""
