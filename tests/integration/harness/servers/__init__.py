"""Redis servers of a test: alone, replicated, with TLS, of another kind, behind a proxy."""
