"""What the runs of a job amount to: rates, means, intervals, gaps."""
