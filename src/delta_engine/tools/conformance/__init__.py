"""The conformance run: every statement kind and every read of the engine, once, on scratch tables of a platform."""
