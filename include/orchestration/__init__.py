"""What DAG files are made of: tasks, the stage operator, assets and the interval of a run."""
