"""One file per stage: DataFrame -> DataFrame functions and one run() that reads and writes."""
