"""The deployment state: what this engine last applied, per environment, safe from crashes and each other."""
