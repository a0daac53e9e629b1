using Random

# Drawn numbers are part of what is run again: the task's generator is where it was, and afterwards where it would be.
function with_generator(f, before)
    after = copy(Random.default_rng())
    copy!(Random.default_rng(), before)
    try
        f()
    finally
        copy!(Random.default_rng(), after)
    end
end

function ChainRulesCore.rrule(config::ChainRulesCore.RuleConfig{>:ChainRulesCore.HasReverseMode}, ::typeof(Ckpt.checkpointed), f, args...)
    before = copy(Random.default_rng())
    function pullback(grad)
        _, inner = with_generator(() -> ChainRulesCore.rrule_via_ad(config, f, args...), before)
        (ChainRulesCore.NoTangent(), inner(grad)...)
    end
    f(args...), pullback
end
