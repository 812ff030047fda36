"""Every policy on the same trace, with the same noise and failures: what each of them costs."""
