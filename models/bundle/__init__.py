"""Models of all jobs as one value: what a training makes, MLflow keeps, and a plan reads."""
