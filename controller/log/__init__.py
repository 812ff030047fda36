"""The log of decisions in ``ops.control_log``: written before a request leaves, and read again at the start."""
