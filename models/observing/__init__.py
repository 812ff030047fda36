"""What raw replies tell of jobs, as pure functions over NumPy arrays: one arithmetic for Spark and the controller.

Hosts fetch rows, call these functions and write what they return.
"""
