"""Commands of those who work on the project; whoever runs it needs none of them."""
