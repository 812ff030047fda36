"""History -> what policies know before they decide."""
