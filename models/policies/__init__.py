"""The systems that can decide a job's schedule, behind one protocol."""
