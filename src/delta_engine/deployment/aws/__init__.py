"""S3 and DynamoDB: clients that say which of three things became of a request, and a folder over S3."""
