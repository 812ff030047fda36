"""Its REST API, the collection of its metrics, and a real cluster of plain processes for recordings and tests."""
