"""Apache Flink's own autoscaler in the replay: a Java program of ours around its jars, driven over stdin and stdout."""
