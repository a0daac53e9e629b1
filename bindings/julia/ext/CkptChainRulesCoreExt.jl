module CkptChainRulesCoreExt

import Ckpt
import ChainRulesCore
include("rules.jl")

end
