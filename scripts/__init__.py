"""Scripts of this repository, which are no part of the package."""
