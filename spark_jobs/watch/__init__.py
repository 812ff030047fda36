"""The safety net between plans: fresh raw files -> what goes out now, per job."""
