"""What a person starts of the laboratory."""
