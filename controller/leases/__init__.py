"""One controller at a time may write for a cluster."""
