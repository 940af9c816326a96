"""Where documents, versions and journals live, and the clients that reach them."""
