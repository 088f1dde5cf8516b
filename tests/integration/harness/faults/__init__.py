"""Faults: calls that fail, workers that are killed, processes that survive, clocks that are set."""
