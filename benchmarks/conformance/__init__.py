"""Cases of published systems' rules, run against ours."""
