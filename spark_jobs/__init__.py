"""A folder per stage (DataFrame -> DataFrame functions and one run() that reads and writes), and what stages share."""
