"""The deployment state: what this engine last applied, per environment. Neither crashes nor other runs corrupt it."""
