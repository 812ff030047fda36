"""What the last week would have cost a job under other policies: its own load, a replica, all policies side by side."""
