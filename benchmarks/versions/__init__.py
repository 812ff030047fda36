"""Real clusters of several versions and kinds, one after the other: what Tidewise can do on each."""
