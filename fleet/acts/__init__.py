"""What persons do to the control of jobs, for commands and page: done once, then written into ``ops.interventions``."""
