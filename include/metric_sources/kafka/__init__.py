"""What arrives in the topics that jobs read, told by Kafka brokers themselves."""
