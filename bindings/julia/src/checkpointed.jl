"""
    checkpointed(f, args...)

`f(args...)`. Under an AD system that uses ChainRules nothing of it is kept: its pullback runs `f` again, with the random numbers that it
drew the first time.
"""
checkpointed(f, args...) = f(args...)

"""Before Julia 1.9, which loads ext/ by itself: the rule is defined when ChainRulesCore is loaded."""
function watch_for_chain_rules()
    isdefined(Base, :get_extension) && return
    rules = joinpath(dirname(@__DIR__), "ext", "rules.jl")
    id = Base.PkgId(Base.UUID("d360d2e6-b24c-11e9-a2a3-2a2ae2dbcce4"), "ChainRulesCore")
    define() = Core.eval(@__MODULE__, :(module ChainRules
        const Ckpt = $(@__MODULE__)
        const ChainRulesCore = $(Base.loaded_modules[id])
        include($rules)
    end))
    haskey(Base.loaded_modules, id) && return define()
    push!(Base.package_callbacks, loaded -> (loaded == id && define(); nothing))
end
