"""A finished training -> what plans by its models would have cost, beside those by the champion before it."""
