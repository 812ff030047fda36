"""All tables -> one page."""
