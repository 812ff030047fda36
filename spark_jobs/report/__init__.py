"""The HTML report: plain data in, one self-contained page out."""
