"""The proof of tasks: what is played on each, what an agent could see, and the verdict.

`probes` says what is played, `solver` plays it, `surface` looks at all that a client can see,
`leaks` searches in it for what must not be there, `verdicts` judges from the record alone.
"""
