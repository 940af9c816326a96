"""Configuration: one file per environment, and the models that it names. Untrusted text enters here."""
