"""What happens during a change on a real Flink cluster: rises, falls, a lost TaskManager, a savepoint, a person."""
