"""House rules of a team for its models: conventions, which `validate` does not know."""
