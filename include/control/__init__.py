"""What watching and applying share: due steps, fresh metrics and the guard of a step."""
