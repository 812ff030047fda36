"""How a stage reaches Spark: configuration, jars, the zip of the code, the submission."""
