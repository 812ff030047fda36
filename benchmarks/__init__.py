"""Comparisons and measurements that anyone can rerun: a folder per subject, and what they share."""
