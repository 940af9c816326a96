"""Execution: how a plan's actions reach the platform. No policy here: executors do what the plan says."""
