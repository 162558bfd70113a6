"""The figures of a job's runs: rates, means, intervals, gaps."""
