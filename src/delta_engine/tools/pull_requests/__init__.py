"""What a pull request shows of a plan: a comment for reviewers, and refusals at their lines."""
