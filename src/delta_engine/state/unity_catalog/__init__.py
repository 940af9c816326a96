"""The parts of `unity_catalog_reader`: queries, table descriptions, and the states made of both."""
