"""Reports: plans and results for people and for machines. Nothing here decides or runs anything."""
