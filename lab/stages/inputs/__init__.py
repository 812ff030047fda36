"""What several stages of the laboratory read: jobs with their history, and what really ran."""
