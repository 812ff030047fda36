"""The schedule that covers a forecast quantile, with as few rescales as they are worth."""
