"""The pages: their data, their addresses, and the report of a job as one file."""
