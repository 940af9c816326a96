"""The command line: parse, call the orchestrator, print."""
