"""What `unity_catalog_reader` is made of: the queries, the tables' own descriptions, and what states come of both."""
