"""What Tidewise's own policies share: the decision of an evaluation, and what is kept of a job until the next one."""
