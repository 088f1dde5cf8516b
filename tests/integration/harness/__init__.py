"""What the integration tests stand on: private servers, the real daemon, the queue."""
