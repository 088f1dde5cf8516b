"""The function library without a worker: calls, damage, invariants, results, signatures."""
