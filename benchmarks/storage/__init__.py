"""What fleets of other sizes would store in a month, from the bytes that the tables of a `make run` take."""
