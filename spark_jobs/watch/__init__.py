"""The reactive controller between plans: fresh raw files -> what goes out now, per job."""
