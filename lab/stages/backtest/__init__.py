"""A job's own history -> what it would have cost under other policies."""
