"""Helpers of the integration tests: private servers, the real daemon, the queue."""
