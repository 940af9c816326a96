"""What every rule refuses, with the whole message, and what it lets pass: one module per module of `validation/`."""
