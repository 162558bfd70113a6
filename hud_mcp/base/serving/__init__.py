"""What every server of this package needs once: lines, a port to listen on, and signals."""
