"""What ``python -m tools.mutate_rules`` tries with each changed rule: the tests that execute it, and what they say."""
