"""The proof of tasks: the probes of each, all that an agent could see, and the verdict.

`probes` plans, `solver` plays, `surface` looks at all that a client can see, `leaks` searches that
for values that must not be there, and `verdicts` judges from the record alone.
"""
