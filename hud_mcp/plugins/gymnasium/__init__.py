"""Gymnasium: its environments as worlds, their contexts, and tasks as its environments.

`world/` makes an environment a world. `carl/` has contexts under CARL's names. `task_env/` gives
the tasks of a server to trainers as Gymnasium environments.
"""
