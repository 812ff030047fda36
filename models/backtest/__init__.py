"""What the last week would have cost a job under other policies: its own load, its twin, every policy side by side."""
