"""What became of rescales: measured before and after, in ``gold.rescale_outcomes``."""
