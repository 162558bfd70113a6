"""The worlds that come with the package: one module each, none imports another."""
