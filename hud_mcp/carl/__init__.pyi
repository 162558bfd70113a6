from hud_mcp.plugins.gymnasium.carl import ENVIRONMENTS as ENVIRONMENTS
from hud_mcp.plugins.gymnasium.carl import AbstractSelector as AbstractSelector
from hud_mcp.plugins.gymnasium.carl import CARLAcrobot as CARLAcrobot
from hud_mcp.plugins.gymnasium.carl import CARLAnt as CARLAnt
from hud_mcp.plugins.gymnasium.carl import CARLAttributesEnv as CARLAttributesEnv
from hud_mcp.plugins.gymnasium.carl import CARLBipedalWalker as CARLBipedalWalker
from hud_mcp.plugins.gymnasium.carl import CARLCarRacing as CARLCarRacing
from hud_mcp.plugins.gymnasium.carl import CARLCartPole as CARLCartPole
from hud_mcp.plugins.gymnasium.carl import CARLEnv as CARLEnv
from hud_mcp.plugins.gymnasium.carl import CARLHalfCheetah as CARLHalfCheetah
from hud_mcp.plugins.gymnasium.carl import CARLHopper as CARLHopper
from hud_mcp.plugins.gymnasium.carl import CARLHumanoid as CARLHumanoid
from hud_mcp.plugins.gymnasium.carl import CARLLunarLander as CARLLunarLander
from hud_mcp.plugins.gymnasium.carl import CARLMountainCar as CARLMountainCar
from hud_mcp.plugins.gymnasium.carl import CARLMountainCarContinuous as CARLMountainCarContinuous
from hud_mcp.plugins.gymnasium.carl import CARLPendulum as CARLPendulum
from hud_mcp.plugins.gymnasium.carl import CARLWalker2d as CARLWalker2d
from hud_mcp.plugins.gymnasium.carl import CategoricalContextFeature as CategoricalContextFeature
from hud_mcp.plugins.gymnasium.carl import Context as Context
from hud_mcp.plugins.gymnasium.carl import ContextFeature as ContextFeature
from hud_mcp.plugins.gymnasium.carl import ContextSampler as ContextSampler
from hud_mcp.plugins.gymnasium.carl import ContextSelector as ContextSelector
from hud_mcp.plugins.gymnasium.carl import ContextSpace as ContextSpace
from hud_mcp.plugins.gymnasium.carl import CustomSelector as CustomSelector
from hud_mcp.plugins.gymnasium.carl import NormalFloatContextFeature as NormalFloatContextFeature
from hud_mcp.plugins.gymnasium.carl import RandomSelector as RandomSelector
from hud_mcp.plugins.gymnasium.carl import RoundRobinSelector as RoundRobinSelector
from hud_mcp.plugins.gymnasium.carl import StaticSelector as StaticSelector
from hud_mcp.plugins.gymnasium.carl import UniformFloatContextFeature as UniformFloatContextFeature
from hud_mcp.plugins.gymnasium.carl import (
    UniformIntegerContextFeature as UniformIntegerContextFeature,
)
from hud_mcp.plugins.gymnasium.carl import Verification as Verification
