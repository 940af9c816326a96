"""Tests against real servers on loopback, each started once and ended by its own process id."""
