"""Replies of Flink's REST API, poll by poll, to observation windows of all jobs at once (no I/O, no clock).

The windows are those of ``silver.observations``, by the same functions (:mod:`models.observing`).  What differs:

- A job is known by its id: two running jobs of one name stay two, and a job submitted again begins without a past.
- Only windows that ended are given, and only while all their polls are kept.
- A share of time that was not measured is NaN, and so is the target data rate of a source whose output was not.
"""
