"""Stages on services that run Spark elsewhere: the request of each, from the same submission as ``spark-submit``'s."""
