"""The algorithms: numpy, scipy, scikit-learn and LightGBM; no files, no clock, no data frames."""
