"""The proof of tasks, judged from its record alone: probes, and all that an agent could see."""
