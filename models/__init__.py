"""The science: numpy, scipy and scikit-learn only; no files, no clock, no frame library."""
