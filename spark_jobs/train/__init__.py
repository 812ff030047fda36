"""Silver -> a bundle of fitted models in MLflow."""
