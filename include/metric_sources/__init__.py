"""Where raw replies come from: REST, Prometheus, Kafka; which of them a cluster has, and collecting them."""
