"""What well-known environments reward, from their documentation."""

__all__ = ["REWARDED"]

_HOP = (
    "Each step is rewarded by the speed forwards and, while the robot is healthy, for that; large "
    "actions cost. The episode ends when it falls."
)
_LANDING = (
    "Steps are rewarded for coming nearer to the pad, slower and more upright, and for each leg on "
    "the ground. Engines cost. A crash costs 100; to come to rest is rewarded with 100."
)

REWARDED = {
    "CartPole": "Each step is rewarded with 1, the last one included.",
    "Acrobot": "Each step costs 1 until the tip is above the line.",
    "MountainCar": "Each step costs 1 until the car is at the goal, on the right hill.",
    "MountainCarContinuous": (
        "The goal is rewarded with 100; each step costs a tenth of the squared force."
    ),
    "Pendulum": (
        "Each step costs angle² + 0.1 · velocity² + 0.001 · torque², so upright and still is best."
    ),
    "LunarLander": _LANDING,
    "LunarLanderContinuous": _LANDING,
    "BipedalWalker": (
        "Moving forwards is rewarded, about 300 for the whole way. Motors cost; a fall costs 100."
    ),
    "CarRacing": (
        "Each new tile of the track is rewarded with 1000 by the number of tiles; each step costs "
        "0.1, and to leave the field costs 100."
    ),
    "FrozenLake": "The goal is rewarded with 1, and nothing else is. A hole ends the episode.",
    "CliffWalking": (
        "Each step costs 1. A step into the cliff costs 100, and you are at the start again."
    ),
    "Taxi": (
        "Each step costs 1. To drop the passenger off at the destination is rewarded with 20; to "
        "pick up or drop off where that is wrong costs 10."
    ),
    "Blackjack": "A win is rewarded with 1, a draw with 0, and a loss costs 1.",
    "MiniGrid": (
        "To do what the mission says is rewarded with 1, less up to 0.9 for the steps that it "
        "took; nothing else is."
    ),
    "HalfCheetah": "Each step is rewarded by the speed forwards; large actions cost.",
    "Ant": _HOP,
    "Hopper": _HOP,
    "Walker2d": _HOP,
    "Humanoid": _HOP,
    "Swimmer": "Each step is rewarded by the speed forwards; large actions cost.",
    "HumanoidStandup": "Each step is rewarded by the height of the body; large actions cost.",
    "InvertedPendulum": "Each step is rewarded with 1 while the pole leans less than 0.2 rad.",
    "InvertedDoublePendulum": (
        "Each step is rewarded with 10, less for a tip off the middle or low, and for speed."
    ),
    "Reacher": "Each step costs the distance from the fingertip to the target, and large actions.",
    "Pusher": (
        "Each step costs the distance from the tip to the object and from the object to its goal, "
        "and large actions."
    ),
}
"""By the environment's name, without its version."""
