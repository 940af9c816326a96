"""Configuration: one file per environment, and the models it names. The edge where untrusted text comes in."""
