"""What people have set for a job: limits, holds, blackouts, pins, and changes of the settings."""
