"""Tidewise's policies before the programme: a schedule by optimisation, corrected by a reactive controller."""
