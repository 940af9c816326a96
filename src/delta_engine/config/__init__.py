"""Configuration: one file per environment, and the models it names. Untrusted text comes in here."""
