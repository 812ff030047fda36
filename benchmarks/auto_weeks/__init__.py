"""Two weeks of mode auto: the controller's process against a double of Flink, without the time between its polls."""
