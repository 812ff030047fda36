"""What is remembered of jobs between evaluations, in ``ops.controller_memory``."""
