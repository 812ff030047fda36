"""The controller's decisions: level-triggered, from what is desired and what is observed, without any I/O."""
