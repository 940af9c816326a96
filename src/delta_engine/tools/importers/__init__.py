"""Models from what teams have besides tables: DDL scripts, data contracts and dbt manifests. Needs no catalog."""
