# Written by bindings/generate.py from the public headers; do not edit. What each thing means: include/ckpt/*.h.
#
# Each function calls through its entry of ADDRESSES, which `load` in library.jl fills: the library's path is chosen when the package
# is loaded, not when it is compiled.

const ckpt_status = Int32
const ckpt_buffer = UInt64

const CKPT_VERSION_MAJOR = UInt32(0)
const CKPT_VERSION_MINOR = UInt32(1)
const CKPT_VERSION_PATCH = UInt32(0)
const CKPT_OK = ckpt_status(0)
const CKPT_ERROR_INVALID_ARGUMENT = ckpt_status(-1)
const CKPT_ERROR_STRUCT_SIZE = ckpt_status(-2)
const CKPT_ERROR_OUT_OF_MEMORY = ckpt_status(-3)
const CKPT_ERROR_BUDGET = ckpt_status(-4)
const CKPT_ERROR_BUSY = ckpt_status(-5)
const CKPT_ERROR_STALE = ckpt_status(-6)
const CKPT_ERROR_STATE = ckpt_status(-7)
const CKPT_ERROR_NOT_FILLED = ckpt_status(-8)
const CKPT_ERROR_CHECK = ckpt_status(-9)
const CKPT_ERROR_OVERFLOW = ckpt_status(-10)
const CKPT_ERROR_NOT_FOUND = ckpt_status(-11)
const CKPT_ERROR_CONFLICT = ckpt_status(-12)
const CKPT_ERROR_DEVICE = ckpt_status(-13)
const CKPT_ERROR_CAPTURE = ckpt_status(-14)
const CKPT_ERROR_UNSUPPORTED = ckpt_status(-15)
const CKPT_ERROR_INVALID_PLAN = ckpt_status(-16)
const CKPT_ERROR_INTERNAL = ckpt_status(-17)
const CKPT_DEVICE_KIND_CPU = UInt32(0)
const CKPT_DEVICE_KIND_CUDA = UInt32(1)
const CKPT_COPY_HOST_TO_DEVICE = UInt32(0)
const CKPT_COPY_DEVICE_TO_HOST = UInt32(1)
const CKPT_COPY_DEVICE_TO_DEVICE = UInt32(2)
const CKPT_ARENA_GUARD = UInt32(1)
const CKPT_ARENA_POISON = UInt32(2)
const CKPT_ARENA_PLAIN = UInt32(4)
const CKPT_ARENA_HIGH = UInt32(1)
const CKPT_SLOT_TRANSIENT = UInt32(1)
const CKPT_SLOT_KEEP = UInt32(2)
const CKPT_SLOT_RECOMPUTE = UInt32(4)
const CKPT_SLOT_COST_GIVEN = UInt32(8)
const CKPT_SLOT_CONSUMED = UInt32(16)
const CKPT_SLOT_ALONE = UInt32(32)
const CKPT_OUTPUT_NO_GRAD = UInt32(1)
const CKPT_OUTPUT_KEEP = UInt32(2)
const CKPT_OUTPUT_BACKWARD_READS = UInt32(4)
const CKPT_OUTPUT_COST_GIVEN = UInt32(8)
const CKPT_INPUT_BACKWARD_IGNORES = UInt32(1)
const CKPT_INPUT_NO_GRAD = UInt32(2)
const CKPT_INPUT_GRAD_OVER_OUTPUT_0 = UInt32(4)
const CKPT_STRATEGY_AUTO = UInt32(0)
const CKPT_STRATEGY_STORE_ALL = UInt32(1)
const CKPT_STRATEGY_EVERY_SEGMENT = UInt32(2)
const CKPT_STRATEGY_SQRT = UInt32(3)
const CKPT_STRATEGY_UNIFORM = UInt32(4)
const CKPT_STRATEGY_BLOCK = UInt32(5)
const CKPT_STRATEGY_FULL = UInt32(6)
const CKPT_STRATEGY_SELECTIVE = UInt32(7)
const CKPT_MEMORY_ARENA = UInt32(0)
const CKPT_MEMORY_CALLER = UInt32(1)
const CKPT_GRAD_NONE = UInt32(0)
const CKPT_GRAD_ARENA = UInt32(1)
const CKPT_GRAD_CALLER = UInt32(2)
const CKPT_CHAIN_SEGMENT_WHOLE = UInt32(1)
const CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT = UInt32(2)
const CKPT_CLASS_DEFAULT = UInt32(0)
const CKPT_CLASS_ROTOR = UInt32(1)
const CKPT_CLASS_SIGMA = UInt32(2)
const CKPT_CLASS_SIGMA_S_W = UInt32(3)
const CKPT_CLASS_SIGMA_S_W_D = UInt32(4)
const CKPT_PLAN_OPTIMAL = UInt32(0)
const CKPT_PLAN_GAP = UInt32(1)
const CKPT_ACTION_FORWARD = UInt32(0)
const CKPT_ACTION_BACKWARD = UInt32(1)
const CKPT_ACTION_FREE = UInt32(2)
const CKPT_ACTION_DROP = UInt32(3)
const CKPT_PLAN_MASK_WORDS = UInt32(4)
const CKPT_PLACED_SLOT = UInt32(0)
const CKPT_PLACED_OUTPUT = UInt32(1)
const CKPT_PLACED_INPUT = UInt32(2)
const CKPT_PLACED_GRAD = UInt32(3)
const CKPT_PLACED_SCRATCH = UInt32(4)
const CKPT_BECAUSE_MARKED = UInt32(0)
const CKPT_BECAUSE_UNUSED = UInt32(1)
const CKPT_BECAUSE_ALREADY = UInt32(2)
const CKPT_BECAUSE_FASTER = UInt32(3)
const CKPT_BECAUSE_BUDGET = UInt32(4)
const CKPT_BECAUSE_NO_GAIN = UInt32(5)
const CKPT_BECAUSE_SEARCH = UInt32(6)
const CKPT_SCHEDULE_DONE = UInt32(0)
const CKPT_SCHEDULE_STORE = UInt32(1)
const CKPT_SCHEDULE_RESTORE = UInt32(2)
const CKPT_SCHEDULE_ADVANCE = UInt32(3)
const CKPT_SCHEDULE_BACKWARD = UInt32(4)
const CKPT_CHECK_DETERMINISM = UInt32(1)
const CKPT_CHECK_RECOMPUTE = UInt32(2)
const CKPT_CHECK_INPUTS = UInt32(4)
const CKPT_REPLAN_AUTO = UInt32(0)
const CKPT_REPLAN_NEVER = UInt32(1)
const CKPT_TAPE_DRY = UInt32(1)
const CKPT_TAPE_NO_BACKWARD = UInt32(2)
const CKPT_TAPE_INPUT_ACCUMULATE = UInt32(1)
const CKPT_BACKWARD_RETAIN = UInt32(1)
const CKPT_FRAME_SLOT = UInt32(0)
const CKPT_FRAME_OUTPUT = UInt32(1)
const CKPT_FRAME_INPUT = UInt32(2)
const CKPT_FRAME_OUTPUT_GRAD = UInt32(3)
const CKPT_FRAME_INPUT_GRAD = UInt32(4)
const CKPT_FRAME_SCRATCH = UInt32(5)
const CKPT_MODEL_GELU = UInt32(0)
const CKPT_MODEL_SWIGLU = UInt32(1)
const CKPT_MODEL_PLAIN_ATTENTION = UInt32(0)
const CKPT_MODEL_FLASH_ATTENTION = UInt32(1)
const CKPT_MODEL_DROPOUT = UInt32(1)
const CKPT_LAYOUT_SEQUENCE_PARALLEL = UInt32(1)
const CKPT_RECOMPUTE_NONE = UInt32(0)
const CKPT_RECOMPUTE_ATTENTION = UInt32(1)
const CKPT_RECOMPUTE_FEED_FORWARD = UInt32(2)
const CKPT_RECOMPUTE_FULL = UInt32(3)
const CKPT_RECOMPUTE_OPTIMAL = UInt32(4)
const CKPT_ISA_BEST = UInt32(0)
const CKPT_ISA_GENERIC = UInt32(1)
const CKPT_ISA_AVX2 = UInt32(2)
const CKPT_ISA_AVX512 = UInt32(3)
const CKPT_DTYPE_FLOAT32 = UInt32(0)
const CKPT_DTYPE_BFLOAT16 = UInt32(1)
const CKPT_DTYPE_FLOAT16 = UInt32(2)
const CKPT_ATTENTION_PLAIN = UInt32(0)
const CKPT_ATTENTION_TILED = UInt32(1)
const CKPT_LAYER_EVALUATE = UInt32(1)

mutable struct ckpt_arena end  # opaque: only pointers to it exist
mutable struct ckpt_chain end  # opaque: only pointers to it exist
mutable struct ckpt_device end  # opaque: only pointers to it exist
mutable struct ckpt_frame end  # opaque: only pointers to it exist
mutable struct ckpt_gpt end  # opaque: only pointers to it exist
mutable struct ckpt_graph end  # opaque: only pointers to it exist
mutable struct ckpt_layer end  # opaque: only pointers to it exist
mutable struct ckpt_ops end  # opaque: only pointers to it exist
mutable struct ckpt_plan end  # opaque: only pointers to it exist
mutable struct ckpt_recording end  # opaque: only pointers to it exist
mutable struct ckpt_rng end  # opaque: only pointers to it exist
mutable struct ckpt_schedule end  # opaque: only pointers to it exist
mutable struct ckpt_segment end  # opaque: only pointers to it exist
mutable struct ckpt_tape end  # opaque: only pointers to it exist
mutable struct ckpt_trace end  # opaque: only pointers to it exist

zero_of(::Type{T}) where {T<:Number} = zero(T)
zero_of(::Type{Ptr{T}}) where {T} = Ptr{T}(C_NULL)
zero_of(::Type{NTuple{N, T}}) where {N, T} = ntuple(_ -> zero(T), N)

struct ckpt_device_info
    struct_size::UInt32
    kind::UInt32
    index::UInt32
    thread_count::UInt32
    total_bytes::Csize_t
    available_bytes::Csize_t
    name::NTuple{64, UInt8}
end
ckpt_device_info(; struct_size = UInt32(sizeof(ckpt_device_info)), kind = zero_of(UInt32), index = zero_of(UInt32), thread_count = zero_of(UInt32), total_bytes = zero_of(Csize_t), available_bytes = zero_of(Csize_t), name = zero_of(NTuple{64, UInt8})) =
    ckpt_device_info(struct_size, kind, index, thread_count, total_bytes, available_bytes, name)

struct ckpt_arena_desc
    struct_size::UInt32
    flags::UInt32
    capacity_bytes::Csize_t
    alignment_bytes::Csize_t
    stream::Ptr{Cvoid}
    slab::Ptr{Cvoid}
    alloc::Ptr{Cvoid}
    free::Ptr{Cvoid}
    user::Ptr{Cvoid}
    release::Ptr{Cvoid}
end
ckpt_arena_desc(; struct_size = UInt32(sizeof(ckpt_arena_desc)), flags = UInt32(0), capacity_bytes = Csize_t(0), alignment_bytes = Csize_t(0), stream = Ptr{Cvoid}(C_NULL), slab = Ptr{Cvoid}(C_NULL), alloc = Ptr{Cvoid}(C_NULL), free = Ptr{Cvoid}(C_NULL), user = Ptr{Cvoid}(C_NULL), release = Ptr{Cvoid}(C_NULL)) =
    ckpt_arena_desc(struct_size, flags, capacity_bytes, alignment_bytes, stream, slab, alloc, free, user, release)

struct ckpt_arena_stats
    struct_size::UInt32
    block_count::UInt32
    in_use_bytes::Csize_t
    peak_in_use_bytes::Csize_t
    height_bytes::Csize_t
    capacity_bytes::Csize_t
    largest_free_bytes::Csize_t
    alloc_count::UInt64
    free_count::UInt64
    failed_count::UInt64
end
ckpt_arena_stats(; struct_size = UInt32(sizeof(ckpt_arena_stats)), block_count = zero_of(UInt32), in_use_bytes = zero_of(Csize_t), peak_in_use_bytes = zero_of(Csize_t), height_bytes = zero_of(Csize_t), capacity_bytes = zero_of(Csize_t), largest_free_bytes = zero_of(Csize_t), alloc_count = zero_of(UInt64), free_count = zero_of(UInt64), failed_count = zero_of(UInt64)) =
    ckpt_arena_stats(struct_size, block_count, in_use_bytes, peak_in_use_bytes, height_bytes, capacity_bytes, largest_free_bytes, alloc_count, free_count, failed_count)

struct ckpt_slot
    name::Ptr{UInt8}
    bytes::Csize_t
    reads::Ptr{UInt32}
    read_count::UInt32
    group::UInt32
    cost_seconds::Float64
    flags::UInt32
    reserved::UInt32
end
ckpt_slot(; name = zero_of(Ptr{UInt8}), bytes = zero_of(Csize_t), reads = zero_of(Ptr{UInt32}), read_count = zero_of(UInt32), group = zero_of(UInt32), cost_seconds = zero_of(Float64), flags = zero_of(UInt32), reserved = zero_of(UInt32)) =
    ckpt_slot(name, bytes, reads, read_count, group, cost_seconds, flags, reserved)

struct ckpt_output
    name::Ptr{UInt8}
    bytes::Csize_t
    grad_bytes::Csize_t
    reads::Ptr{UInt32}
    read_count::UInt32
    group::UInt32
    memory::Ptr{Cvoid}
    cost_seconds::Float64
    flags::UInt32
    in_place_input::UInt32
end
ckpt_output(; name = zero_of(Ptr{UInt8}), bytes = zero_of(Csize_t), grad_bytes = zero_of(Csize_t), reads = zero_of(Ptr{UInt32}), read_count = zero_of(UInt32), group = zero_of(UInt32), memory = zero_of(Ptr{Cvoid}), cost_seconds = zero_of(Float64), flags = zero_of(UInt32), in_place_input = zero_of(UInt32)) =
    ckpt_output(name, bytes, grad_bytes, reads, read_count, group, memory, cost_seconds, flags, in_place_input)

struct ckpt_chain_segment
    name::Ptr{UInt8}
    forward_seconds::Float64
    backward_seconds::Float64
    slots::Ptr{ckpt_slot}
    outputs::Ptr{ckpt_output}
    inputs::Ptr{UInt32}
    input_flags::Ptr{UInt32}
    slot_count::UInt32
    output_count::UInt32
    input_count::UInt32
    flags::UInt32
    forward_scratch_bytes::Csize_t
    backward_scratch_bytes::Csize_t
end
ckpt_chain_segment(; name = zero_of(Ptr{UInt8}), forward_seconds = zero_of(Float64), backward_seconds = zero_of(Float64), slots = zero_of(Ptr{ckpt_slot}), outputs = zero_of(Ptr{ckpt_output}), inputs = zero_of(Ptr{UInt32}), input_flags = zero_of(Ptr{UInt32}), slot_count = zero_of(UInt32), output_count = zero_of(UInt32), input_count = zero_of(UInt32), flags = zero_of(UInt32), forward_scratch_bytes = zero_of(Csize_t), backward_scratch_bytes = zero_of(Csize_t)) =
    ckpt_chain_segment(name, forward_seconds, backward_seconds, slots, outputs, inputs, input_flags, slot_count, output_count, input_count, flags, forward_scratch_bytes, backward_scratch_bytes)

struct ckpt_chain_input
    bytes::Csize_t
    grad_bytes::Csize_t
    memory::UInt32
    grad::UInt32
end
ckpt_chain_input(; bytes = zero_of(Csize_t), grad_bytes = zero_of(Csize_t), memory = zero_of(UInt32), grad = zero_of(UInt32)) =
    ckpt_chain_input(bytes, grad_bytes, memory, grad)

struct ckpt_chain_desc
    struct_size::UInt32
    segment_size::UInt32
    slot_size::UInt32
    output_size::UInt32
    inputs::Ptr{ckpt_chain_input}
    segments::Ptr{ckpt_chain_segment}
    input_count::UInt32
    segment_count::UInt32
    output_grad::UInt32
    flags::UInt32
    alignment_bytes::Csize_t
end
ckpt_chain_desc(; struct_size = UInt32(sizeof(ckpt_chain_desc)), segment_size = zero_of(UInt32), slot_size = zero_of(UInt32), output_size = zero_of(UInt32), inputs = zero_of(Ptr{ckpt_chain_input}), segments = zero_of(Ptr{ckpt_chain_segment}), input_count = zero_of(UInt32), segment_count = zero_of(UInt32), output_grad = zero_of(UInt32), flags = zero_of(UInt32), alignment_bytes = zero_of(Csize_t)) =
    ckpt_chain_desc(struct_size, segment_size, slot_size, output_size, inputs, segments, input_count, segment_count, output_grad, flags, alignment_bytes)

struct ckpt_plan_desc
    struct_size::UInt32
    strategy::UInt32
    k::UInt32
    in_flight_count::UInt32
    keep_patterns::Ptr{Ptr{UInt8}}
    recompute_patterns::Ptr{Ptr{UInt8}}
    keep_pattern_count::UInt32
    recompute_pattern_count::UInt32
    budget_bytes::Csize_t
    work_limit::UInt64
    plan_class::UInt32
    reserved::UInt32
end
ckpt_plan_desc(; struct_size = UInt32(sizeof(ckpt_plan_desc)), strategy = UInt32(0), k = UInt32(0), in_flight_count = UInt32(0), keep_patterns = Ptr{Ptr{UInt8}}(C_NULL), recompute_patterns = Ptr{Ptr{UInt8}}(C_NULL), keep_pattern_count = UInt32(0), recompute_pattern_count = UInt32(0), budget_bytes = Csize_t(0), work_limit = UInt64(0), plan_class = UInt32(0), reserved = UInt32(0)) =
    ckpt_plan_desc(struct_size, strategy, k, in_flight_count, keep_patterns, recompute_patterns, keep_pattern_count, recompute_pattern_count, budget_bytes, work_limit, plan_class, reserved)

struct ckpt_plan_summary
    struct_size::UInt32
    strategy::UInt32
    k::UInt32
    action_count::UInt32
    hash::UInt64
    budget_bytes::Csize_t
    peak_bytes::Csize_t
    arena_bytes::Csize_t
    held_bytes::Csize_t
    forward_seconds::Float64
    backward_seconds::Float64
    recompute_seconds::Float64
    recompute_count::UInt64
    minimum_budget_bytes::Csize_t
    class_gap_seconds::Float64
    universal_gap_seconds::Float64
    plan_seconds::Float64
    work::UInt64
    status::UInt32
    plan_class::UInt32
    placement_count::UInt32
    reserved::UInt32
end
ckpt_plan_summary(; struct_size = UInt32(sizeof(ckpt_plan_summary)), strategy = zero_of(UInt32), k = zero_of(UInt32), action_count = zero_of(UInt32), hash = zero_of(UInt64), budget_bytes = zero_of(Csize_t), peak_bytes = zero_of(Csize_t), arena_bytes = zero_of(Csize_t), held_bytes = zero_of(Csize_t), forward_seconds = zero_of(Float64), backward_seconds = zero_of(Float64), recompute_seconds = zero_of(Float64), recompute_count = zero_of(UInt64), minimum_budget_bytes = zero_of(Csize_t), class_gap_seconds = zero_of(Float64), universal_gap_seconds = zero_of(Float64), plan_seconds = zero_of(Float64), work = zero_of(UInt64), status = zero_of(UInt32), plan_class = zero_of(UInt32), placement_count = zero_of(UInt32), reserved = zero_of(UInt32)) =
    ckpt_plan_summary(struct_size, strategy, k, action_count, hash, budget_bytes, peak_bytes, arena_bytes, held_bytes, forward_seconds, backward_seconds, recompute_seconds, recompute_count, minimum_budget_bytes, class_gap_seconds, universal_gap_seconds, plan_seconds, work, status, plan_class, placement_count, reserved)

struct ckpt_action
    kind::UInt32
    index::UInt32
    slots::NTuple{4, UInt64}
    outputs::NTuple{4, UInt64}
end
ckpt_action(; kind = zero_of(UInt32), index = zero_of(UInt32), slots = zero_of(NTuple{4, UInt64}), outputs = zero_of(NTuple{4, UInt64})) =
    ckpt_action(kind, index, slots, outputs)

struct ckpt_placement
    what::UInt32
    index::UInt32
    item::UInt32
    is_recompute::UInt32
    first_action::UInt32
    end_action::UInt32
    bytes::Csize_t
    offset::Csize_t
end
ckpt_placement(; what = zero_of(UInt32), index = zero_of(UInt32), item = zero_of(UInt32), is_recompute = zero_of(UInt32), first_action = zero_of(UInt32), end_action = zero_of(UInt32), bytes = zero_of(Csize_t), offset = zero_of(Csize_t)) =
    ckpt_placement(what, index, item, is_recompute, first_action, end_action, bytes, offset)

struct ckpt_curve_point
    budget_bytes::Csize_t
    peak_bytes::Csize_t
    seconds::Float64
    recompute_seconds::Float64
    class_gap_seconds::Float64
    universal_gap_seconds::Float64
    status::UInt32
    reserved::UInt32
end
ckpt_curve_point(; budget_bytes = zero_of(Csize_t), peak_bytes = zero_of(Csize_t), seconds = zero_of(Float64), recompute_seconds = zero_of(Float64), class_gap_seconds = zero_of(Float64), universal_gap_seconds = zero_of(Float64), status = zero_of(UInt32), reserved = zero_of(UInt32)) =
    ckpt_curve_point(budget_bytes, peak_bytes, seconds, recompute_seconds, class_gap_seconds, universal_gap_seconds, status, reserved)

struct ckpt_explanation
    what::UInt32
    index::UInt32
    item::UInt32
    kept::UInt32
    because::UInt32
    reserved::UInt32
    bytes::Csize_t
    seconds_change::Float64
    peak_change::Int64
end
ckpt_explanation(; what = zero_of(UInt32), index = zero_of(UInt32), item = zero_of(UInt32), kept = zero_of(UInt32), because = zero_of(UInt32), reserved = zero_of(UInt32), bytes = zero_of(Csize_t), seconds_change = zero_of(Float64), peak_change = zero_of(Int64)) =
    ckpt_explanation(what, index, item, kept, because, reserved, bytes, seconds_change, peak_change)

struct ckpt_philox
    seed::UInt64
    subsequence::UInt64
    offset::UInt64
    step_word::Ptr{UInt64}
end
ckpt_philox(; seed = zero_of(UInt64), subsequence = zero_of(UInt64), offset = zero_of(UInt64), step_word = zero_of(Ptr{UInt64})) =
    ckpt_philox(seed, subsequence, offset, step_word)

struct ckpt_schedule_action
    kind::UInt32
    snapshot::UInt32
    first::UInt64
    last::UInt64
end
ckpt_schedule_action(; kind = zero_of(UInt32), snapshot = zero_of(UInt32), first = zero_of(UInt64), last = zero_of(UInt64)) =
    ckpt_schedule_action(kind, snapshot, first, last)

struct ckpt_segment_desc
    struct_size::UInt32
    slot_size::UInt32
    output_size::UInt32
    flags::UInt32
    name::Ptr{UInt8}
    forward::Ptr{Cvoid}
    backward::Ptr{Cvoid}
    slots::Ptr{ckpt_slot}
    outputs::Ptr{ckpt_output}
    input_flags::Ptr{UInt32}
    slot_count::UInt32
    output_count::UInt32
    input_count::UInt32
    reserved::UInt32
    forward_scratch_bytes::Csize_t
    backward_scratch_bytes::Csize_t
    save_state::Ptr{Cvoid}
    restore_state::Ptr{Cvoid}
    state_bytes::Csize_t
end
ckpt_segment_desc(; struct_size = UInt32(sizeof(ckpt_segment_desc)), slot_size = UInt32(sizeof(ckpt_slot)), output_size = UInt32(sizeof(ckpt_output)), flags = UInt32(0), name = Ptr{UInt8}(C_NULL), forward = Ptr{Cvoid}(C_NULL), backward = Ptr{Cvoid}(C_NULL), slots = Ptr{ckpt_slot}(C_NULL), outputs = Ptr{ckpt_output}(C_NULL), input_flags = Ptr{UInt32}(C_NULL), slot_count = UInt32(0), output_count = UInt32(0), input_count = UInt32(0), reserved = UInt32(0), forward_scratch_bytes = Csize_t(0), backward_scratch_bytes = Csize_t(0), save_state = Ptr{Cvoid}(C_NULL), restore_state = Ptr{Cvoid}(C_NULL), state_bytes = Csize_t(0)) =
    ckpt_segment_desc(struct_size, slot_size, output_size, flags, name, forward, backward, slots, outputs, input_flags, slot_count, output_count, input_count, reserved, forward_scratch_bytes, backward_scratch_bytes, save_state, restore_state, state_bytes)

struct ckpt_watch
    name::Ptr{UInt8}
    data::Ptr{Cvoid}
    bytes::Csize_t
end
ckpt_watch(; name = zero_of(Ptr{UInt8}), data = zero_of(Ptr{Cvoid}), bytes = zero_of(Csize_t)) =
    ckpt_watch(name, data, bytes)

struct ckpt_call
    struct_size::UInt32
    input_count::UInt32
    user::Ptr{Cvoid}
    release::Ptr{Cvoid}
    inputs::Ptr{ckpt_buffer}
    slot_bytes::Ptr{Csize_t}
    output_bytes::Ptr{Csize_t}
    watch::Ptr{ckpt_watch}
    watch_count::UInt32
    reserved::UInt32
end
ckpt_call(; struct_size = UInt32(sizeof(ckpt_call)), input_count = UInt32(0), user = Ptr{Cvoid}(C_NULL), release = Ptr{Cvoid}(C_NULL), inputs = Ptr{ckpt_buffer}(C_NULL), slot_bytes = Ptr{Csize_t}(C_NULL), output_bytes = Ptr{Csize_t}(C_NULL), watch = Ptr{ckpt_watch}(C_NULL), watch_count = UInt32(0), reserved = UInt32(0)) =
    ckpt_call(struct_size, input_count, user, release, inputs, slot_bytes, output_bytes, watch, watch_count, reserved)

struct ckpt_tape_desc
    struct_size::UInt32
    checks::UInt32
    arena::Ptr{ckpt_arena}
    budget_bytes::Csize_t
    seed::UInt64
    strategy::UInt32
    strategy_k::UInt32
    keep_patterns::Ptr{Ptr{UInt8}}
    recompute_patterns::Ptr{Ptr{UInt8}}
    keep_pattern_count::UInt32
    recompute_pattern_count::UInt32
    in_flight_count::UInt32
    replan::UInt32
end
ckpt_tape_desc(; struct_size = UInt32(sizeof(ckpt_tape_desc)), checks = UInt32(0), arena = Ptr{ckpt_arena}(C_NULL), budget_bytes = Csize_t(0), seed = UInt64(0), strategy = UInt32(0), strategy_k = UInt32(0), keep_patterns = Ptr{Ptr{UInt8}}(C_NULL), recompute_patterns = Ptr{Ptr{UInt8}}(C_NULL), keep_pattern_count = UInt32(0), recompute_pattern_count = UInt32(0), in_flight_count = UInt32(0), replan = UInt32(0)) =
    ckpt_tape_desc(struct_size, checks, arena, budget_bytes, seed, strategy, strategy_k, keep_patterns, recompute_patterns, keep_pattern_count, recompute_pattern_count, in_flight_count, replan)

struct ckpt_input_desc
    struct_size::UInt32
    flags::UInt32
    data::Ptr{Cvoid}
    bytes::Csize_t
    grad::Ptr{Cvoid}
    grad_bytes::Csize_t
end
ckpt_input_desc(; struct_size = UInt32(sizeof(ckpt_input_desc)), flags = UInt32(0), data = Ptr{Cvoid}(C_NULL), bytes = Csize_t(0), grad = Ptr{Cvoid}(C_NULL), grad_bytes = Csize_t(0)) =
    ckpt_input_desc(struct_size, flags, data, bytes, grad, grad_bytes)

struct ckpt_tape_stats
    struct_size::UInt32
    strategy::UInt32
    strategy_k::UInt32
    planned::UInt32
    step::UInt64
    segment_count::UInt64
    forward_count::UInt64
    recompute_count::UInt64
    backward_done::UInt64
    skipped_count::UInt64
    thinned_count::UInt64
    plan_count::UInt64
    plan_hit_count::UInt64
    budget_bytes::Csize_t
    peak_predicted_bytes::Csize_t
    peak_measured_bytes::Csize_t
    arena_predicted_bytes::Csize_t
    arena_measured_bytes::Csize_t
    held_bytes::Csize_t
    minimum_budget_bytes::Csize_t
    recompute_seconds::Float64
    forward_seconds::Float64
    backward_seconds::Float64
    predicted_recompute_seconds::Float64
end
ckpt_tape_stats(; struct_size = UInt32(sizeof(ckpt_tape_stats)), strategy = zero_of(UInt32), strategy_k = zero_of(UInt32), planned = zero_of(UInt32), step = zero_of(UInt64), segment_count = zero_of(UInt64), forward_count = zero_of(UInt64), recompute_count = zero_of(UInt64), backward_done = zero_of(UInt64), skipped_count = zero_of(UInt64), thinned_count = zero_of(UInt64), plan_count = zero_of(UInt64), plan_hit_count = zero_of(UInt64), budget_bytes = zero_of(Csize_t), peak_predicted_bytes = zero_of(Csize_t), peak_measured_bytes = zero_of(Csize_t), arena_predicted_bytes = zero_of(Csize_t), arena_measured_bytes = zero_of(Csize_t), held_bytes = zero_of(Csize_t), minimum_budget_bytes = zero_of(Csize_t), recompute_seconds = zero_of(Float64), forward_seconds = zero_of(Float64), backward_seconds = zero_of(Float64), predicted_recompute_seconds = zero_of(Float64)) =
    ckpt_tape_stats(struct_size, strategy, strategy_k, planned, step, segment_count, forward_count, recompute_count, backward_done, skipped_count, thinned_count, plan_count, plan_hit_count, budget_bytes, peak_predicted_bytes, peak_measured_bytes, arena_predicted_bytes, arena_measured_bytes, held_bytes, minimum_budget_bytes, recompute_seconds, forward_seconds, backward_seconds, predicted_recompute_seconds)

struct ckpt_pack_buffer
    lower::UInt64
    upper::UInt64
    bytes::Csize_t
end
ckpt_pack_buffer(; lower = zero_of(UInt64), upper = zero_of(UInt64), bytes = zero_of(Csize_t)) =
    ckpt_pack_buffer(lower, upper, bytes)

struct ckpt_pack_desc
    struct_size::UInt32
    buffer_size::UInt32
    buffers::Ptr{ckpt_pack_buffer}
    buffer_count::Csize_t
    alignment_bytes::Csize_t
    capacity_bytes::Csize_t
    work_limit::UInt64
end
ckpt_pack_desc(; struct_size = UInt32(sizeof(ckpt_pack_desc)), buffer_size = UInt32(sizeof(ckpt_pack_buffer)), buffers = Ptr{ckpt_pack_buffer}(C_NULL), buffer_count = Csize_t(0), alignment_bytes = Csize_t(0), capacity_bytes = Csize_t(0), work_limit = UInt64(0)) =
    ckpt_pack_desc(struct_size, buffer_size, buffers, buffer_count, alignment_bytes, capacity_bytes, work_limit)

struct ckpt_pack_result
    struct_size::UInt32
    proved::UInt32
    lower_bound_bytes::Csize_t
    height_bytes::Csize_t
    work::UInt64
end
ckpt_pack_result(; struct_size = UInt32(sizeof(ckpt_pack_result)), proved = zero_of(UInt32), lower_bound_bytes = zero_of(Csize_t), height_bytes = zero_of(Csize_t), work = zero_of(UInt64)) =
    ckpt_pack_result(struct_size, proved, lower_bound_bytes, height_bytes, work)

struct ckpt_model_desc
    struct_size::UInt32
    activation::UInt32
    attention::UInt32
    flags::UInt32
    element_bytes::UInt32
    reserved::UInt32
    layers::UInt64
    hidden::UInt64
    heads::UInt64
    kv_heads::UInt64
    head_size::UInt64
    ffn::UInt64
    sequence::UInt64
    micro_batch::UInt64
    vocabulary::UInt64
end
ckpt_model_desc(; struct_size = UInt32(sizeof(ckpt_model_desc)), activation = UInt32(0), attention = UInt32(0), flags = UInt32(0), element_bytes = UInt32(0), reserved = UInt32(0), layers = UInt64(0), hidden = UInt64(0), heads = UInt64(0), kv_heads = UInt64(0), head_size = UInt64(0), ffn = UInt64(0), sequence = UInt64(0), micro_batch = UInt64(0), vocabulary = UInt64(0)) =
    ckpt_model_desc(struct_size, activation, attention, flags, element_bytes, reserved, layers, hidden, heads, kv_heads, head_size, ffn, sequence, micro_batch, vocabulary)

struct ckpt_layout_desc
    struct_size::UInt32
    flags::UInt32
    tensor_parallel::UInt64
    context_parallel::UInt64
    pipeline::UInt64
    virtual_pipeline::UInt64
    micro_batches::UInt64
end
ckpt_layout_desc(; struct_size = UInt32(sizeof(ckpt_layout_desc)), flags = UInt32(0), tensor_parallel = UInt64(0), context_parallel = UInt64(0), pipeline = UInt64(0), virtual_pipeline = UInt64(0), micro_batches = UInt64(0)) =
    ckpt_layout_desc(struct_size, flags, tensor_parallel, context_parallel, pipeline, virtual_pipeline, micro_batches)

struct ckpt_hardware_desc
    struct_size::UInt32
    reserved::UInt32
    flops_per_second::Float64
    bytes_per_second::Float64
end
ckpt_hardware_desc(; struct_size = UInt32(sizeof(ckpt_hardware_desc)), reserved = UInt32(0), flops_per_second = Float64(0), bytes_per_second = Float64(0)) =
    ckpt_hardware_desc(struct_size, reserved, flops_per_second, bytes_per_second)

struct ckpt_estimate
    struct_size::UInt32
    policy::UInt32
    layer_bytes::UInt64
    chunk_layers::UInt64
    in_flight::UInt64
    layers_in_flight::UInt64
    outside_bytes::UInt64
    activation_bytes::UInt64
    peak_bytes::UInt64
    arena_bytes::UInt64
    minimum_budget_bytes::UInt64
    forward_flops::Float64
    backward_flops::Float64
    recompute_flops::Float64
    replay_flops::Float64
    model_flops::Float64
    forward_seconds::Float64
    backward_seconds::Float64
    recompute_seconds::Float64
    offload_bytes_per_second::Float64
end
ckpt_estimate(; struct_size = UInt32(sizeof(ckpt_estimate)), policy = zero_of(UInt32), layer_bytes = zero_of(UInt64), chunk_layers = zero_of(UInt64), in_flight = zero_of(UInt64), layers_in_flight = zero_of(UInt64), outside_bytes = zero_of(UInt64), activation_bytes = zero_of(UInt64), peak_bytes = zero_of(UInt64), arena_bytes = zero_of(UInt64), minimum_budget_bytes = zero_of(UInt64), forward_flops = zero_of(Float64), backward_flops = zero_of(Float64), recompute_flops = zero_of(Float64), replay_flops = zero_of(Float64), model_flops = zero_of(Float64), forward_seconds = zero_of(Float64), backward_seconds = zero_of(Float64), recompute_seconds = zero_of(Float64), offload_bytes_per_second = zero_of(Float64)) =
    ckpt_estimate(struct_size, policy, layer_bytes, chunk_layers, in_flight, layers_in_flight, outside_bytes, activation_bytes, peak_bytes, arena_bytes, minimum_budget_bytes, forward_flops, backward_flops, recompute_flops, replay_flops, model_flops, forward_seconds, backward_seconds, recompute_seconds, offload_bytes_per_second)

struct ckpt_ops_desc
    struct_size::UInt32
    thread_count::UInt32
    isa::UInt32
    dtype::UInt32
    device::Ptr{ckpt_device}
    stream::Ptr{Cvoid}
end
ckpt_ops_desc(; struct_size = UInt32(sizeof(ckpt_ops_desc)), thread_count = UInt32(0), isa = UInt32(0), dtype = UInt32(0), device = Ptr{ckpt_device}(C_NULL), stream = Ptr{Cvoid}(C_NULL)) =
    ckpt_ops_desc(struct_size, thread_count, isa, dtype, device, stream)

struct ckpt_ops_info
    struct_size::UInt32
    thread_count::UInt32
    isa::NTuple{16, UInt8}
    blas::NTuple{64, UInt8}
    dtype::UInt32
    device_kind::UInt32
end
ckpt_ops_info(; struct_size = UInt32(sizeof(ckpt_ops_info)), thread_count = zero_of(UInt32), isa = zero_of(NTuple{16, UInt8}), blas = zero_of(NTuple{64, UInt8}), dtype = zero_of(UInt32), device_kind = zero_of(UInt32)) =
    ckpt_ops_info(struct_size, thread_count, isa, blas, dtype, device_kind)

struct ckpt_adamw_desc
    struct_size::UInt32
    learning_rate::Float32
    beta1::Float32
    beta2::Float32
    epsilon::Float32
    weight_decay::Float32
    max_norm::Float32
    grad_scale::Float32
    step::UInt64
    master_weights::Ptr{Float32}
end
ckpt_adamw_desc(; struct_size = UInt32(sizeof(ckpt_adamw_desc)), learning_rate = Float32(0.0), beta1 = Float32(0.0), beta2 = Float32(0.0), epsilon = Float32(0.0), weight_decay = Float32(0.0), max_norm = Float32(0.0), grad_scale = Float32(0.0), step = UInt64(0), master_weights = Ptr{Float32}(C_NULL)) =
    ckpt_adamw_desc(struct_size, learning_rate, beta1, beta2, epsilon, weight_decay, max_norm, grad_scale, step, master_weights)

struct ckpt_tensor_info
    struct_size::UInt32
    decays::UInt32
    offset::Csize_t
    count::Csize_t
    rows::Csize_t
    columns::Csize_t
    init_mean::Float32
    init_stddev::Float32
    name::NTuple{48, UInt8}
end
ckpt_tensor_info(; struct_size = UInt32(sizeof(ckpt_tensor_info)), decays = zero_of(UInt32), offset = zero_of(Csize_t), count = zero_of(Csize_t), rows = zero_of(Csize_t), columns = zero_of(Csize_t), init_mean = zero_of(Float32), init_stddev = zero_of(Float32), name = zero_of(NTuple{48, UInt8})) =
    ckpt_tensor_info(struct_size, decays, offset, count, rows, columns, init_mean, init_stddev, name)

struct ckpt_layer_embedding_desc
    struct_size::UInt32
    dropout_probability::Float32
    batch::Csize_t
    sequence::Csize_t
    channels::Csize_t
    vocabulary::Csize_t
end
ckpt_layer_embedding_desc(; struct_size = UInt32(sizeof(ckpt_layer_embedding_desc)), dropout_probability = Float32(0.0), batch = Csize_t(0), sequence = Csize_t(0), channels = Csize_t(0), vocabulary = Csize_t(0)) =
    ckpt_layer_embedding_desc(struct_size, dropout_probability, batch, sequence, channels, vocabulary)

struct ckpt_layer_block_desc
    struct_size::UInt32
    attention::UInt32
    batch::Csize_t
    sequence::Csize_t
    channels::Csize_t
    heads::Csize_t
    hidden::Csize_t
    dropout_probability::Float32
    attention_dropout_probability::Float32
    epsilon::Float32
    residual_stddev::Float32
end
ckpt_layer_block_desc(; struct_size = UInt32(sizeof(ckpt_layer_block_desc)), attention = UInt32(0), batch = Csize_t(0), sequence = Csize_t(0), channels = Csize_t(0), heads = Csize_t(0), hidden = Csize_t(0), dropout_probability = Float32(0.0), attention_dropout_probability = Float32(0.0), epsilon = Float32(0.0), residual_stddev = Float32(0.0)) =
    ckpt_layer_block_desc(struct_size, attention, batch, sequence, channels, heads, hidden, dropout_probability, attention_dropout_probability, epsilon, residual_stddev)

struct ckpt_layer_head_desc
    struct_size::UInt32
    tied::UInt32
    rows::Csize_t
    channels::Csize_t
    vocabulary::Csize_t
    chunk_rows::Csize_t
    loss::Ptr{Float32}
    ignore_index::Int32
    epsilon::Float32
end
ckpt_layer_head_desc(; struct_size = UInt32(sizeof(ckpt_layer_head_desc)), tied = UInt32(0), rows = Csize_t(0), channels = Csize_t(0), vocabulary = Csize_t(0), chunk_rows = Csize_t(0), loss = Ptr{Float32}(C_NULL), ignore_index = Int32(-1), epsilon = Float32(0.0)) =
    ckpt_layer_head_desc(struct_size, tied, rows, channels, vocabulary, chunk_rows, loss, ignore_index, epsilon)

struct ckpt_gpt_desc
    struct_size::UInt32
    attention::UInt32
    layers::Csize_t
    heads::Csize_t
    channels::Csize_t
    sequence::Csize_t
    batch::Csize_t
    vocabulary::Csize_t
    head_chunk_rows::Csize_t
    dropout_probability::Float32
    untied::UInt32
end
ckpt_gpt_desc(; struct_size = UInt32(sizeof(ckpt_gpt_desc)), attention = UInt32(0), layers = Csize_t(0), heads = Csize_t(0), channels = Csize_t(0), sequence = Csize_t(0), batch = Csize_t(0), vocabulary = Csize_t(0), head_chunk_rows = Csize_t(0), dropout_probability = Float32(0.0), untied = UInt32(0)) =
    ckpt_gpt_desc(struct_size, attention, layers, heads, channels, sequence, batch, vocabulary, head_chunk_rows, dropout_probability, untied)

# Names of all functions; those of the layers' own library come last.
const FUNCTIONS = [
    :ckpt_last_error,
    :ckpt_last_status,
    :ckpt_status_name,
    :ckpt_version,
    :ckpt_version_string,
    :ckpt_device_open,
    :ckpt_device_close,
    :ckpt_device_get_info,
    :ckpt_device_synchronize,
    :ckpt_device_copy,
    :ckpt_device_fill,
    :ckpt_device_stream_create,
    :ckpt_device_stream_destroy,
    :ckpt_device_host_alloc,
    :ckpt_device_host_free,
    :ckpt_device_capture_begin,
    :ckpt_device_capture_end,
    :ckpt_graph_launch,
    :ckpt_graph_destroy,
    :ckpt_device_interface,
    :ckpt_arena_create,
    :ckpt_arena_destroy,
    :ckpt_arena_alloc,
    :ckpt_arena_free,
    :ckpt_arena_check,
    :ckpt_arena_get_stats,
    :ckpt_arena_reset_stats,
    :ckpt_strategy_parse,
    :ckpt_strategy_name,
    :ckpt_chain_create,
    :ckpt_chain_destroy,
    :ckpt_chain_hash,
    :ckpt_chain_segment_count,
    :ckpt_class_parse,
    :ckpt_class_name,
    :ckpt_plan_create,
    :ckpt_plan_destroy,
    :ckpt_plan_minimum_budget,
    :ckpt_plan_get_summary,
    :ckpt_plan_hash,
    :ckpt_plan_get_actions,
    :ckpt_plan_from_actions,
    :ckpt_plan_get_placements,
    :ckpt_plan_curve,
    :ckpt_plan_explain,
    :ckpt_program_verify,
    :ckpt_philox_pack,
    :ckpt_philox_block,
    :ckpt_philox_u32,
    :ckpt_philox_uniform,
    :ckpt_philox_normal,
    :ckpt_philox_bernoulli,
    :ckpt_device_philox_u32,
    :ckpt_device_philox_uniform,
    :ckpt_device_philox_normal,
    :ckpt_device_philox_bernoulli,
    :ckpt_philox_threshold,
    :ckpt_rng_create,
    :ckpt_rng_destroy,
    :ckpt_rng_snapshot,
    :ckpt_rng_restore,
    :ckpt_rng_advance,
    :ckpt_revolve_extra_forwards,
    :ckpt_schedule_revolve,
    :ckpt_schedule_destroy,
    :ckpt_schedule_next,
    :ckpt_segment_create,
    :ckpt_segment_destroy,
    :ckpt_tape_create,
    :ckpt_tape_destroy,
    :ckpt_tape_set_step,
    :ckpt_tape_get_step,
    :ckpt_tape_begin,
    :ckpt_tape_input,
    :ckpt_segment_begin,
    :ckpt_segment_end,
    :ckpt_segment_run,
    :ckpt_tape_release,
    :ckpt_tape_read,
    :ckpt_tape_reset,
    :ckpt_backward,
    :ckpt_tape_detach,
    :ckpt_recording_backward,
    :ckpt_recording_read,
    :ckpt_recording_destroy,
    :ckpt_tape_chain,
    :ckpt_tape_plan,
    :ckpt_tape_adopt,
    :ckpt_tape_prepare,
    :ckpt_tape_replay,
    :ckpt_tape_get_stats,
    :ckpt_tape_set_trace,
    :ckpt_frame_needs,
    :ckpt_frame_needs_output,
    :ckpt_frame_slot,
    :ckpt_frame_output,
    :ckpt_frame_input,
    :ckpt_frame_output_grad,
    :ckpt_frame_input_grad,
    :ckpt_frame_scratch,
    :ckpt_frame_bytes,
    :ckpt_frame_random,
    :ckpt_frame_is_recompute,
    :ckpt_frame_is_backward,
    :ckpt_frame_is_dry,
    :ckpt_frame_index,
    :ckpt_frame_step,
    :ckpt_frame_stream,
    :ckpt_frame_user,
    :ckpt_frame_fail,
    :ckpt_text_free,
    :ckpt_chain_from_json,
    :ckpt_chain_to_json,
    :ckpt_plan_from_json,
    :ckpt_plan_to_json,
    :ckpt_plan_to_schedule_json,
    :ckpt_schedule_to_json,
    :ckpt_plan_to_trace_json,
    :ckpt_trace_create,
    :ckpt_trace_destroy,
    :ckpt_trace_attach,
    :ckpt_trace_clear,
    :ckpt_trace_to_json,
    :ckpt_pack,
    :ckpt_recompute_name,
    :ckpt_estimate_rank,
    :ckpt_estimate_chain,
    :ckpt_ops_create,
    :ckpt_ops_destroy,
    :ckpt_ops_get_info,
    :ckpt_ops_check,
    :ckpt_ops_last_error,
    :ckpt_ops_embedding_forward,
    :ckpt_ops_embedding_backward,
    :ckpt_ops_linear_forward,
    :ckpt_ops_linear_residual_forward,
    :ckpt_ops_linear_backward,
    :ckpt_ops_layernorm_forward,
    :ckpt_ops_layernorm_backward,
    :ckpt_ops_gelu_forward,
    :ckpt_ops_gelu_backward,
    :ckpt_ops_attention_forward,
    :ckpt_ops_attention_backward,
    :ckpt_ops_attention_tiled_forward,
    :ckpt_ops_attention_tiled_backward,
    :ckpt_ops_dropout_forward,
    :ckpt_ops_dropout_backward,
    :ckpt_ops_add,
    :ckpt_ops_cross_entropy_forward,
    :ckpt_ops_cross_entropy_backward,
    :ckpt_ops_norm,
    :ckpt_ops_adamw,
    :ckpt_ops_normal,
    :ckpt_ops_from_float,
    :ckpt_ops_to_float,
    :ckpt_layer_embedding_create,
    :ckpt_layer_block_create,
    :ckpt_layer_head_create,
    :ckpt_layer_loss,
    :ckpt_layer_linear_create,
    :ckpt_layer_layernorm_create,
    :ckpt_layer_gelu_create,
    :ckpt_layer_dropout_create,
    :ckpt_layer_destroy,
    :ckpt_layer_parameter_count,
    :ckpt_layer_tensor_count,
    :ckpt_layer_get_tensor,
    :ckpt_layer_bind,
    :ckpt_layer_bind_tied,
    :ckpt_layer_init,
    :ckpt_layer_segment,
    :ckpt_layer_user,
    :ckpt_layer_run,
    :ckpt_gpt_create,
    :ckpt_gpt_destroy,
    :ckpt_gpt_parameter_count,
    :ckpt_gpt_tensor_count,
    :ckpt_gpt_get_tensor,
    :ckpt_gpt_bind,
    :ckpt_gpt_init,
    :ckpt_gpt_record,
    :ckpt_gpt_loss,
    :ckpt_gpt_update,
]
const CORE_COUNT = 127
const ADDRESSES = fill(Ptr{Cvoid}(C_NULL), 183)

ckpt_last_error() = ccall(address(1), Ptr{UInt8}, ())
ckpt_last_status() = ccall(address(2), ckpt_status, ())
ckpt_status_name(status) = ccall(address(3), Ptr{UInt8}, (ckpt_status,), status)
ckpt_version() = ccall(address(4), UInt32, ())
ckpt_version_string() = ccall(address(5), Ptr{UInt8}, ())
ckpt_device_open(name, out_device) = ccall(address(6), ckpt_status, (Ptr{UInt8}, Ptr{Ptr{ckpt_device}}), name, out_device)
ckpt_device_close(device) = ccall(address(7), Cvoid, (Ptr{ckpt_device},), device)
ckpt_device_get_info(device, out_info) = ccall(address(8), ckpt_status, (Ptr{ckpt_device}, Ptr{ckpt_device_info}), device, out_info)
ckpt_device_synchronize(device, stream) = ccall(address(9), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}), device, stream)
ckpt_device_copy(device, stream, to, from, bytes, kind) = ccall(address(10), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, UInt32), device, stream, to, from, bytes, kind)
ckpt_device_fill(device, stream, data, value, bytes) = ccall(address(11), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{Cvoid}, UInt8, Csize_t), device, stream, data, value, bytes)
ckpt_device_stream_create(device, out_stream) = ccall(address(12), ckpt_status, (Ptr{ckpt_device}, Ptr{Ptr{Cvoid}}), device, out_stream)
ckpt_device_stream_destroy(device, stream) = ccall(address(13), Cvoid, (Ptr{ckpt_device}, Ptr{Cvoid}), device, stream)
ckpt_device_host_alloc(device, bytes, out_data) = ccall(address(14), ckpt_status, (Ptr{ckpt_device}, Csize_t, Ptr{Ptr{Cvoid}}), device, bytes, out_data)
ckpt_device_host_free(device, data, bytes) = ccall(address(15), Cvoid, (Ptr{ckpt_device}, Ptr{Cvoid}, Csize_t), device, data, bytes)
ckpt_device_capture_begin(device, stream) = ccall(address(16), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}), device, stream)
ckpt_device_capture_end(device, stream, out_graph) = ccall(address(17), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{Ptr{ckpt_graph}}), device, stream, out_graph)
ckpt_graph_launch(graph, stream) = ccall(address(18), ckpt_status, (Ptr{ckpt_graph}, Ptr{Cvoid}), graph, stream)
ckpt_graph_destroy(graph) = ccall(address(19), Cvoid, (Ptr{ckpt_graph},), graph)
ckpt_device_interface(device, name, out_self) = ccall(address(20), Ptr{Cvoid}, (Ptr{ckpt_device}, Ptr{UInt8}, Ptr{Ptr{Cvoid}}), device, name, out_self)
ckpt_arena_create(device, desc, out_arena) = ccall(address(21), ckpt_status, (Ptr{ckpt_device}, Ptr{ckpt_arena_desc}, Ptr{Ptr{ckpt_arena}}), device, desc, out_arena)
ckpt_arena_destroy(arena) = ccall(address(22), Cvoid, (Ptr{ckpt_arena},), arena)
ckpt_arena_alloc(arena, bytes, flags) = ccall(address(23), Ptr{Cvoid}, (Ptr{ckpt_arena}, Csize_t, UInt32), arena, bytes, flags)
ckpt_arena_free(arena, data) = ccall(address(24), ckpt_status, (Ptr{ckpt_arena}, Ptr{Cvoid}), arena, data)
ckpt_arena_check(arena) = ccall(address(25), ckpt_status, (Ptr{ckpt_arena},), arena)
ckpt_arena_get_stats(arena, out_stats) = ccall(address(26), ckpt_status, (Ptr{ckpt_arena}, Ptr{ckpt_arena_stats}), arena, out_stats)
ckpt_arena_reset_stats(arena) = ccall(address(27), ckpt_status, (Ptr{ckpt_arena},), arena)
ckpt_strategy_parse(text, out_strategy, out_k) = ccall(address(28), ckpt_status, (Ptr{UInt8}, Ptr{UInt32}, Ptr{UInt32}), text, out_strategy, out_k)
ckpt_strategy_name(strategy) = ccall(address(29), Ptr{UInt8}, (UInt32,), strategy)
ckpt_chain_create(desc, out_chain) = ccall(address(30), ckpt_status, (Ptr{ckpt_chain_desc}, Ptr{Ptr{ckpt_chain}}), desc, out_chain)
ckpt_chain_destroy(chain) = ccall(address(31), Cvoid, (Ptr{ckpt_chain},), chain)
ckpt_chain_hash(chain) = ccall(address(32), UInt64, (Ptr{ckpt_chain},), chain)
ckpt_chain_segment_count(chain) = ccall(address(33), UInt32, (Ptr{ckpt_chain},), chain)
ckpt_class_parse(text, out_class) = ccall(address(34), ckpt_status, (Ptr{UInt8}, Ptr{UInt32}), text, out_class)
ckpt_class_name(plan_class) = ccall(address(35), Ptr{UInt8}, (UInt32,), plan_class)
ckpt_plan_create(chain, desc, out_plan) = ccall(address(36), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_plan_desc}, Ptr{Ptr{ckpt_plan}}), chain, desc, out_plan)
ckpt_plan_destroy(plan) = ccall(address(37), Cvoid, (Ptr{ckpt_plan},), plan)
ckpt_plan_minimum_budget(chain, desc, out_bytes) = ccall(address(38), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_plan_desc}, Ptr{Csize_t}), chain, desc, out_bytes)
ckpt_plan_get_summary(plan, out_summary) = ccall(address(39), ckpt_status, (Ptr{ckpt_plan}, Ptr{ckpt_plan_summary}), plan, out_summary)
ckpt_plan_hash(plan) = ccall(address(40), UInt64, (Ptr{ckpt_plan},), plan)
ckpt_plan_get_actions(plan, first, count, action_size, out_actions) = ccall(address(41), ckpt_status, (Ptr{ckpt_plan}, UInt32, UInt32, UInt32, Ptr{ckpt_action}), plan, first, count, action_size, out_actions)
ckpt_plan_from_actions(chain, actions, action_count, action_size, in_flight_count, budget_bytes, out_plan) = ccall(address(42), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_action}, UInt32, UInt32, UInt32, Csize_t, Ptr{Ptr{ckpt_plan}}), chain, actions, action_count, action_size, in_flight_count, budget_bytes, out_plan)
ckpt_plan_get_placements(plan, first, count, placement_size, out_placements) = ccall(address(43), ckpt_status, (Ptr{ckpt_plan}, UInt32, UInt32, UInt32, Ptr{ckpt_placement}), plan, first, count, placement_size, out_placements)
ckpt_plan_curve(chain, desc, capacity, point_size, out_points, out_count) = ccall(address(44), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_plan_desc}, UInt32, UInt32, Ptr{ckpt_curve_point}, Ptr{UInt32}), chain, desc, capacity, point_size, out_points, out_count)
ckpt_plan_explain(chain, plan, first, count, explanation_size, out_explanations, out_count) = ccall(address(45), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_plan}, UInt32, UInt32, UInt32, Ptr{ckpt_explanation}, Ptr{UInt32}), chain, plan, first, count, explanation_size, out_explanations, out_count)
ckpt_program_verify(chain, actions, action_count, action_size, out_peak_bytes, out_seconds, out_recompute_seconds) = ccall(address(46), ckpt_status, (Ptr{ckpt_chain}, Ptr{ckpt_action}, UInt32, UInt32, Ptr{Csize_t}, Ptr{Float64}, Ptr{Float64}), chain, actions, action_count, action_size, out_peak_bytes, out_seconds, out_recompute_seconds)
ckpt_philox_pack(seed, step, segment, site, out_philox) = ccall(address(47), ckpt_status, (UInt64, UInt64, UInt64, UInt32, Ptr{ckpt_philox}), seed, step, segment, site, out_philox)
ckpt_philox_block(counter, key, out) = ccall(address(48), Cvoid, (Ptr{UInt32}, Ptr{UInt32}, Ptr{UInt32}), counter, key, out)
ckpt_philox_u32(philox, first, count, out_words) = ccall(address(49), ckpt_status, (Ptr{ckpt_philox}, UInt64, Csize_t, Ptr{UInt32}), philox, first, count, out_words)
ckpt_philox_uniform(philox, first, count, out_values) = ccall(address(50), ckpt_status, (Ptr{ckpt_philox}, UInt64, Csize_t, Ptr{Float32}), philox, first, count, out_values)
ckpt_philox_normal(philox, first, count, mean, stddev, out_values) = ccall(address(51), ckpt_status, (Ptr{ckpt_philox}, UInt64, Csize_t, Float32, Float32, Ptr{Float32}), philox, first, count, mean, stddev, out_values)
ckpt_philox_bernoulli(philox, first, count, probability, out_bytes) = ccall(address(52), ckpt_status, (Ptr{ckpt_philox}, UInt64, Csize_t, Float64, Ptr{UInt8}), philox, first, count, probability, out_bytes)
ckpt_device_philox_u32(device, stream, philox, first, count, out_words) = ccall(address(53), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{ckpt_philox}, UInt64, Csize_t, Ptr{UInt32}), device, stream, philox, first, count, out_words)
ckpt_device_philox_uniform(device, stream, philox, first, count, out_values) = ccall(address(54), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{ckpt_philox}, UInt64, Csize_t, Ptr{Float32}), device, stream, philox, first, count, out_values)
ckpt_device_philox_normal(device, stream, philox, first, count, mean, stddev, out_values) = ccall(address(55), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{ckpt_philox}, UInt64, Csize_t, Float32, Float32, Ptr{Float32}), device, stream, philox, first, count, mean, stddev, out_values)
ckpt_device_philox_bernoulli(device, stream, philox, first, count, probability, out_bytes) = ccall(address(56), ckpt_status, (Ptr{ckpt_device}, Ptr{Cvoid}, Ptr{ckpt_philox}, UInt64, Csize_t, Float64, Ptr{UInt8}), device, stream, philox, first, count, probability, out_bytes)
ckpt_philox_threshold(probability) = ccall(address(57), UInt64, (Float64,), probability)
ckpt_rng_create(seed, subsequence, offset, out_rng) = ccall(address(58), ckpt_status, (UInt64, UInt64, UInt64, Ptr{Ptr{ckpt_rng}}), seed, subsequence, offset, out_rng)
ckpt_rng_destroy(rng) = ccall(address(59), Cvoid, (Ptr{ckpt_rng},), rng)
ckpt_rng_snapshot(rng, out_philox) = ccall(address(60), ckpt_status, (Ptr{ckpt_rng}, Ptr{ckpt_philox}), rng, out_philox)
ckpt_rng_restore(rng, philox) = ccall(address(61), ckpt_status, (Ptr{ckpt_rng}, Ptr{ckpt_philox}), rng, philox)
ckpt_rng_advance(rng, words, round_up_to_4) = ccall(address(62), ckpt_status, (Ptr{ckpt_rng}, UInt64, UInt32), rng, words, round_up_to_4)
ckpt_revolve_extra_forwards(step_count, snapshot_count, out_count) = ccall(address(63), ckpt_status, (UInt64, UInt64, Ptr{UInt64}), step_count, snapshot_count, out_count)
ckpt_schedule_revolve(step_count, snapshot_count, out_schedule) = ccall(address(64), ckpt_status, (UInt64, UInt32, Ptr{Ptr{ckpt_schedule}}), step_count, snapshot_count, out_schedule)
ckpt_schedule_destroy(schedule) = ccall(address(65), Cvoid, (Ptr{ckpt_schedule},), schedule)
ckpt_schedule_next(schedule, out_action) = ccall(address(66), ckpt_status, (Ptr{ckpt_schedule}, Ptr{ckpt_schedule_action}), schedule, out_action)
ckpt_segment_create(desc, out_segment) = ccall(address(67), ckpt_status, (Ptr{ckpt_segment_desc}, Ptr{Ptr{ckpt_segment}}), desc, out_segment)
ckpt_segment_destroy(segment) = ccall(address(68), Cvoid, (Ptr{ckpt_segment},), segment)
ckpt_tape_create(desc, out_tape) = ccall(address(69), ckpt_status, (Ptr{ckpt_tape_desc}, Ptr{Ptr{ckpt_tape}}), desc, out_tape)
ckpt_tape_destroy(tape) = ccall(address(70), Cvoid, (Ptr{ckpt_tape},), tape)
ckpt_tape_set_step(tape, step) = ccall(address(71), ckpt_status, (Ptr{ckpt_tape}, UInt64), tape, step)
ckpt_tape_get_step(tape, out_step) = ccall(address(72), ckpt_status, (Ptr{ckpt_tape}, Ptr{UInt64}), tape, out_step)
ckpt_tape_begin(tape, key, flags) = ccall(address(73), ckpt_status, (Ptr{ckpt_tape}, UInt64, UInt32), tape, key, flags)
ckpt_tape_input(tape, desc, out_buffer) = ccall(address(74), ckpt_status, (Ptr{ckpt_tape}, Ptr{ckpt_input_desc}, Ptr{ckpt_buffer}), tape, desc, out_buffer)
ckpt_segment_begin(tape, segment, call, out_frame) = ccall(address(75), ckpt_status, (Ptr{ckpt_tape}, Ptr{ckpt_segment}, Ptr{ckpt_call}, Ptr{Ptr{ckpt_frame}}), tape, segment, call, out_frame)
ckpt_segment_end(frame, status, out_outputs) = ccall(address(76), ckpt_status, (Ptr{ckpt_frame}, ckpt_status, Ptr{ckpt_buffer}), frame, status, out_outputs)
ckpt_segment_run(tape, segment, call, out_outputs) = ccall(address(77), ckpt_status, (Ptr{ckpt_tape}, Ptr{ckpt_segment}, Ptr{ckpt_call}, Ptr{ckpt_buffer}), tape, segment, call, out_outputs)
ckpt_tape_release(tape, buffer) = ccall(address(78), ckpt_status, (Ptr{ckpt_tape}, ckpt_buffer), tape, buffer)
ckpt_tape_read(tape, buffer, out_data) = ccall(address(79), ckpt_status, (Ptr{ckpt_tape}, ckpt_buffer, Ptr{Ptr{Cvoid}}), tape, buffer, out_data)
ckpt_tape_reset(tape) = ccall(address(80), ckpt_status, (Ptr{ckpt_tape},), tape)
ckpt_backward(tape, outputs, output_grads, output_count, flags) = ccall(address(81), ckpt_status, (Ptr{ckpt_tape}, Ptr{ckpt_buffer}, Ptr{Ptr{Cvoid}}, UInt32, UInt32), tape, outputs, output_grads, output_count, flags)
ckpt_tape_detach(tape, out_recording) = ccall(address(82), ckpt_status, (Ptr{ckpt_tape}, Ptr{Ptr{ckpt_recording}}), tape, out_recording)
ckpt_recording_backward(recording, outputs, output_grads, output_count, flags) = ccall(address(83), ckpt_status, (Ptr{ckpt_recording}, Ptr{ckpt_buffer}, Ptr{Ptr{Cvoid}}, UInt32, UInt32), recording, outputs, output_grads, output_count, flags)
ckpt_recording_read(recording, buffer, out_data) = ccall(address(84), ckpt_status, (Ptr{ckpt_recording}, ckpt_buffer, Ptr{Ptr{Cvoid}}), recording, buffer, out_data)
ckpt_recording_destroy(recording) = ccall(address(85), Cvoid, (Ptr{ckpt_recording},), recording)
ckpt_tape_chain(tape, key, out_chain) = ccall(address(86), ckpt_status, (Ptr{ckpt_tape}, UInt64, Ptr{Ptr{ckpt_chain}}), tape, key, out_chain)
ckpt_tape_plan(tape, key, out_plan) = ccall(address(87), ckpt_status, (Ptr{ckpt_tape}, UInt64, Ptr{Ptr{ckpt_plan}}), tape, key, out_plan)
ckpt_tape_adopt(tape, key, plan) = ccall(address(88), ckpt_status, (Ptr{ckpt_tape}, UInt64, Ptr{ckpt_plan}), tape, key, plan)
ckpt_tape_prepare(tape, key) = ccall(address(89), ckpt_status, (Ptr{ckpt_tape}, UInt64), tape, key)
ckpt_tape_replay(tape) = ccall(address(90), ckpt_status, (Ptr{ckpt_tape},), tape)
ckpt_tape_get_stats(tape, out_stats) = ccall(address(91), ckpt_status, (Ptr{ckpt_tape}, Ptr{ckpt_tape_stats}), tape, out_stats)
ckpt_tape_set_trace(tape, trace, user) = ccall(address(92), ckpt_status, (Ptr{ckpt_tape}, Ptr{Cvoid}, Ptr{Cvoid}), tape, trace, user)
ckpt_frame_needs(frame, slot) = ccall(address(93), Cint, (Ptr{ckpt_frame}, UInt32), frame, slot)
ckpt_frame_needs_output(frame, output) = ccall(address(94), Cint, (Ptr{ckpt_frame}, UInt32), frame, output)
ckpt_frame_slot(frame, slot) = ccall(address(95), Ptr{Cvoid}, (Ptr{ckpt_frame}, UInt32), frame, slot)
ckpt_frame_output(frame, output) = ccall(address(96), Ptr{Cvoid}, (Ptr{ckpt_frame}, UInt32), frame, output)
ckpt_frame_input(frame, input) = ccall(address(97), Ptr{Cvoid}, (Ptr{ckpt_frame}, UInt32), frame, input)
ckpt_frame_output_grad(frame, output) = ccall(address(98), Ptr{Cvoid}, (Ptr{ckpt_frame}, UInt32), frame, output)
ckpt_frame_input_grad(frame, input, out_accumulate) = ccall(address(99), Ptr{Cvoid}, (Ptr{ckpt_frame}, UInt32, Ptr{Cint}), frame, input, out_accumulate)
ckpt_frame_scratch(frame) = ccall(address(100), Ptr{Cvoid}, (Ptr{ckpt_frame},), frame)
ckpt_frame_bytes(frame, what, k) = ccall(address(101), Csize_t, (Ptr{ckpt_frame}, UInt32, UInt32), frame, what, k)
ckpt_frame_random(frame, site, out_philox) = ccall(address(102), Cvoid, (Ptr{ckpt_frame}, UInt32, Ptr{ckpt_philox}), frame, site, out_philox)
ckpt_frame_is_recompute(frame) = ccall(address(103), Cint, (Ptr{ckpt_frame},), frame)
ckpt_frame_is_backward(frame) = ccall(address(104), Cint, (Ptr{ckpt_frame},), frame)
ckpt_frame_is_dry(frame) = ccall(address(105), Cint, (Ptr{ckpt_frame},), frame)
ckpt_frame_index(frame) = ccall(address(106), UInt64, (Ptr{ckpt_frame},), frame)
ckpt_frame_step(frame) = ccall(address(107), UInt64, (Ptr{ckpt_frame},), frame)
ckpt_frame_stream(frame) = ccall(address(108), Ptr{Cvoid}, (Ptr{ckpt_frame},), frame)
ckpt_frame_user(frame) = ccall(address(109), Ptr{Cvoid}, (Ptr{ckpt_frame},), frame)
ckpt_frame_fail(frame, status, text) = ccall(address(110), ckpt_status, (Ptr{ckpt_frame}, ckpt_status, Ptr{UInt8}), frame, status, text)
ckpt_text_free(text) = ccall(address(111), Cvoid, (Ptr{UInt8},), text)
ckpt_chain_from_json(text, text_bytes, alignment_bytes, source_name, out_chain) = ccall(address(112), ckpt_status, (Ptr{UInt8}, Csize_t, Csize_t, Ptr{UInt8}, Ptr{Ptr{ckpt_chain}}), text, text_bytes, alignment_bytes, source_name, out_chain)
ckpt_chain_to_json(chain, out_text) = ccall(address(113), ckpt_status, (Ptr{ckpt_chain}, Ptr{Ptr{UInt8}}), chain, out_text)
ckpt_plan_from_json(text, text_bytes, source_name, chain, out_plan) = ccall(address(114), ckpt_status, (Ptr{UInt8}, Csize_t, Ptr{UInt8}, Ptr{ckpt_chain}, Ptr{Ptr{ckpt_plan}}), text, text_bytes, source_name, chain, out_plan)
ckpt_plan_to_json(plan, out_text) = ccall(address(115), ckpt_status, (Ptr{ckpt_plan}, Ptr{Ptr{UInt8}}), plan, out_text)
ckpt_plan_to_schedule_json(plan, out_text) = ccall(address(116), ckpt_status, (Ptr{ckpt_plan}, Ptr{Ptr{UInt8}}), plan, out_text)
ckpt_schedule_to_json(schedule, out_text) = ccall(address(117), ckpt_status, (Ptr{ckpt_schedule}, Ptr{Ptr{UInt8}}), schedule, out_text)
ckpt_plan_to_trace_json(plan, out_text) = ccall(address(118), ckpt_status, (Ptr{ckpt_plan}, Ptr{Ptr{UInt8}}), plan, out_text)
ckpt_trace_create(event_limit, out_trace) = ccall(address(119), ckpt_status, (Csize_t, Ptr{Ptr{ckpt_trace}}), event_limit, out_trace)
ckpt_trace_destroy(trace) = ccall(address(120), Cvoid, (Ptr{ckpt_trace},), trace)
ckpt_trace_attach(trace, tape) = ccall(address(121), ckpt_status, (Ptr{ckpt_trace}, Ptr{ckpt_tape}), trace, tape)
ckpt_trace_clear(trace) = ccall(address(122), ckpt_status, (Ptr{ckpt_trace},), trace)
ckpt_trace_to_json(trace, chain, out_text) = ccall(address(123), ckpt_status, (Ptr{ckpt_trace}, Ptr{ckpt_chain}, Ptr{Ptr{UInt8}}), trace, chain, out_text)
ckpt_pack(desc, out_offsets, out_result) = ccall(address(124), ckpt_status, (Ptr{ckpt_pack_desc}, Ptr{Csize_t}, Ptr{ckpt_pack_result}), desc, out_offsets, out_result)
ckpt_recompute_name(policy) = ccall(address(125), Ptr{UInt8}, (UInt32,), policy)
ckpt_estimate_rank(model, layout, hardware, policy, rank, budget_bytes, out_estimate) = ccall(address(126), ckpt_status, (Ptr{ckpt_model_desc}, Ptr{ckpt_layout_desc}, Ptr{ckpt_hardware_desc}, UInt32, UInt64, Csize_t, Ptr{ckpt_estimate}), model, layout, hardware, policy, rank, budget_bytes, out_estimate)
ckpt_estimate_chain(model, layout, hardware, rank, chunk, alignment_bytes, out_chain) = ccall(address(127), ckpt_status, (Ptr{ckpt_model_desc}, Ptr{ckpt_layout_desc}, Ptr{ckpt_hardware_desc}, UInt64, UInt64, Csize_t, Ptr{Ptr{ckpt_chain}}), model, layout, hardware, rank, chunk, alignment_bytes, out_chain)
ckpt_ops_create(desc, out_ops) = ccall(address(128), ckpt_status, (Ptr{ckpt_ops_desc}, Ptr{Ptr{ckpt_ops}}), desc, out_ops)
ckpt_ops_destroy(ops) = ccall(address(129), Cvoid, (Ptr{ckpt_ops},), ops)
ckpt_ops_get_info(ops, out_info) = ccall(address(130), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_ops_info}), ops, out_info)
ckpt_ops_check(ops) = ccall(address(131), ckpt_status, (Ptr{ckpt_ops},), ops)
ckpt_ops_last_error() = ccall(address(132), Ptr{UInt8}, ())
ckpt_ops_embedding_forward(ops, tokens, token_table, position_table, batch, sequence, channels, vocabulary, out) = ccall(address(133), ckpt_status, (Ptr{ckpt_ops}, Ptr{Int32}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Ptr{Cvoid}), ops, tokens, token_table, position_table, batch, sequence, channels, vocabulary, out)
ckpt_ops_embedding_backward(ops, tokens, out_grad, batch, sequence, channels, vocabulary, token_grad, position_grad) = ccall(address(134), ckpt_status, (Ptr{ckpt_ops}, Ptr{Int32}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Ptr{Float32}, Ptr{Float32}), ops, tokens, out_grad, batch, sequence, channels, vocabulary, token_grad, position_grad)
ckpt_ops_linear_forward(ops, in_, weight, bias, rows, inputs, outputs, out) = ccall(address(135), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Ptr{Cvoid}), ops, in_, weight, bias, rows, inputs, outputs, out)
ckpt_ops_linear_residual_forward(ops, in_, weight, bias, residual, dropout_probability, philox, rows, inputs, outputs, out) = ccall(address(136), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Float32, Ptr{ckpt_philox}, Csize_t, Csize_t, Csize_t, Ptr{Cvoid}), ops, in_, weight, bias, residual, dropout_probability, philox, rows, inputs, outputs, out)
ckpt_ops_linear_backward(ops, in_, weight, out_grad, rows, inputs, outputs, in_grad, accumulate, weight_grad, bias_grad) = ccall(address(137), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Ptr{Cvoid}, UInt32, Ptr{Float32}, Ptr{Float32}), ops, in_, weight, out_grad, rows, inputs, outputs, in_grad, accumulate, weight_grad, bias_grad)
ckpt_ops_layernorm_forward(ops, in_, weight, bias, rows, channels, epsilon, out, mean, rstd) = ccall(address(138), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Float32, Ptr{Cvoid}, Ptr{Float32}, Ptr{Float32}), ops, in_, weight, bias, rows, channels, epsilon, out, mean, rstd)
ckpt_ops_layernorm_backward(ops, in_, mean, rstd, weight, out_grad, residual_grad, rows, channels, in_grad, accumulate, weight_grad, bias_grad) = ccall(address(139), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Float32}, Ptr{Float32}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Ptr{Cvoid}, UInt32, Ptr{Float32}, Ptr{Float32}), ops, in_, mean, rstd, weight, out_grad, residual_grad, rows, channels, in_grad, accumulate, weight_grad, bias_grad)
ckpt_ops_gelu_forward(ops, in_, bias, rows, columns, out) = ccall(address(140), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Ptr{Cvoid}), ops, in_, bias, rows, columns, out)
ckpt_ops_gelu_backward(ops, in_, bias, out_grad, rows, columns, in_grad, accumulate, bias_grad) = ccall(address(141), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Ptr{Cvoid}, UInt32, Ptr{Float32}), ops, in_, bias, out_grad, rows, columns, in_grad, accumulate, bias_grad)
ckpt_ops_attention_forward(ops, qkv, batch, sequence, heads, channels, dropout_probability, philox, weights, out) = ccall(address(142), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Float32, Ptr{ckpt_philox}, Ptr{Cvoid}, Ptr{Cvoid}), ops, qkv, batch, sequence, heads, channels, dropout_probability, philox, weights, out)
ckpt_ops_attention_backward(ops, qkv, weights, out_grad, batch, sequence, heads, channels, dropout_probability, philox, qkv_grad) = ccall(address(143), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Float32, Ptr{ckpt_philox}, Ptr{Cvoid}), ops, qkv, weights, out_grad, batch, sequence, heads, channels, dropout_probability, philox, qkv_grad)
ckpt_ops_attention_tiled_forward(ops, qkv, batch, sequence, heads, channels, dropout_probability, philox, lse, out) = ccall(address(144), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Float32, Ptr{ckpt_philox}, Ptr{Float32}, Ptr{Cvoid}), ops, qkv, batch, sequence, heads, channels, dropout_probability, philox, lse, out)
ckpt_ops_attention_tiled_backward(ops, qkv, out, lse, out_grad, batch, sequence, heads, channels, dropout_probability, philox, qkv_grad) = ccall(address(145), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Float32}, Ptr{Cvoid}, Csize_t, Csize_t, Csize_t, Csize_t, Float32, Ptr{ckpt_philox}, Ptr{Cvoid}), ops, qkv, out, lse, out_grad, batch, sequence, heads, channels, dropout_probability, philox, qkv_grad)
ckpt_ops_dropout_forward(ops, in_, residual, probability, philox, count, out) = ccall(address(146), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Float32, Ptr{ckpt_philox}, Csize_t, Ptr{Cvoid}), ops, in_, residual, probability, philox, count, out)
ckpt_ops_dropout_backward(ops, out_grad, probability, philox, count, in_grad, accumulate) = ccall(address(147), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Float32, Ptr{ckpt_philox}, Csize_t, Ptr{Cvoid}, UInt32), ops, out_grad, probability, philox, count, in_grad, accumulate)
ckpt_ops_add(ops, a, b, count, out) = ccall(address(148), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Ptr{Cvoid}), ops, a, b, count, out)
ckpt_ops_cross_entropy_forward(ops, logits, targets, rows, vocabulary, ignore_index, lse, out_loss) = ccall(address(149), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Int32}, Csize_t, Csize_t, Int32, Ptr{Float32}, Ptr{Float32}), ops, logits, targets, rows, vocabulary, ignore_index, lse, out_loss)
ckpt_ops_cross_entropy_backward(ops, logits, targets, lse, rows, vocabulary, ignore_index, loss_grad, logits_grad) = ccall(address(150), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Ptr{Int32}, Ptr{Float32}, Csize_t, Csize_t, Int32, Float32, Ptr{Cvoid}), ops, logits, targets, lse, rows, vocabulary, ignore_index, loss_grad, logits_grad)
ckpt_ops_norm(ops, values, count, out_norm) = ccall(address(151), ckpt_status, (Ptr{ckpt_ops}, Ptr{Float32}, Csize_t, Ptr{Float64}), ops, values, count, out_norm)
ckpt_ops_adamw(ops, desc, count, grads, parameters, first_moment, second_moment) = ccall(address(152), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_adamw_desc}, Csize_t, Ptr{Float32}, Ptr{Cvoid}, Ptr{Float32}, Ptr{Float32}), ops, desc, count, grads, parameters, first_moment, second_moment)
ckpt_ops_normal(ops, philox, mean, stddev, count, out) = ccall(address(153), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_philox}, Float32, Float32, Csize_t, Ptr{Cvoid}), ops, philox, mean, stddev, count, out)
ckpt_ops_from_float(ops, in_, count, out) = ccall(address(154), ckpt_status, (Ptr{ckpt_ops}, Ptr{Float32}, Csize_t, Ptr{Cvoid}), ops, in_, count, out)
ckpt_ops_to_float(ops, in_, count, out) = ccall(address(155), ckpt_status, (Ptr{ckpt_ops}, Ptr{Cvoid}, Csize_t, Ptr{Float32}), ops, in_, count, out)
ckpt_layer_embedding_create(ops, desc, out_layer) = ccall(address(156), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_layer_embedding_desc}, Ptr{Ptr{ckpt_layer}}), ops, desc, out_layer)
ckpt_layer_block_create(ops, desc, out_layer) = ccall(address(157), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_layer_block_desc}, Ptr{Ptr{ckpt_layer}}), ops, desc, out_layer)
ckpt_layer_head_create(ops, desc, out_layer) = ccall(address(158), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_layer_head_desc}, Ptr{Ptr{ckpt_layer}}), ops, desc, out_layer)
ckpt_layer_loss(layer) = ccall(address(159), Ptr{Float32}, (Ptr{ckpt_layer},), layer)
ckpt_layer_linear_create(ops, rows, inputs, outputs, bias, out_layer) = ccall(address(160), ckpt_status, (Ptr{ckpt_ops}, Csize_t, Csize_t, Csize_t, UInt32, Ptr{Ptr{ckpt_layer}}), ops, rows, inputs, outputs, bias, out_layer)
ckpt_layer_layernorm_create(ops, rows, channels, epsilon, out_layer) = ccall(address(161), ckpt_status, (Ptr{ckpt_ops}, Csize_t, Csize_t, Float32, Ptr{Ptr{ckpt_layer}}), ops, rows, channels, epsilon, out_layer)
ckpt_layer_gelu_create(ops, count, out_layer) = ccall(address(162), ckpt_status, (Ptr{ckpt_ops}, Csize_t, Ptr{Ptr{ckpt_layer}}), ops, count, out_layer)
ckpt_layer_dropout_create(ops, count, probability, out_layer) = ccall(address(163), ckpt_status, (Ptr{ckpt_ops}, Csize_t, Float32, Ptr{Ptr{ckpt_layer}}), ops, count, probability, out_layer)
ckpt_layer_destroy(layer) = ccall(address(164), Cvoid, (Ptr{ckpt_layer},), layer)
ckpt_layer_parameter_count(layer) = ccall(address(165), Csize_t, (Ptr{ckpt_layer},), layer)
ckpt_layer_tensor_count(layer) = ccall(address(166), UInt32, (Ptr{ckpt_layer},), layer)
ckpt_layer_get_tensor(layer, index, out_info) = ccall(address(167), ckpt_status, (Ptr{ckpt_layer}, UInt32, Ptr{ckpt_tensor_info}), layer, index, out_info)
ckpt_layer_bind(layer, parameters, gradients) = ccall(address(168), ckpt_status, (Ptr{ckpt_layer}, Ptr{Cvoid}, Ptr{Float32}), layer, parameters, gradients)
ckpt_layer_bind_tied(layer, weight, weight_grad) = ccall(address(169), ckpt_status, (Ptr{ckpt_layer}, Ptr{Cvoid}, Ptr{Float32}), layer, weight, weight_grad)
ckpt_layer_init(layer, seed, first_tensor) = ccall(address(170), ckpt_status, (Ptr{ckpt_layer}, UInt64, UInt64), layer, seed, first_tensor)
ckpt_layer_segment(layer) = ccall(address(171), Ptr{ckpt_segment}, (Ptr{ckpt_layer},), layer)
ckpt_layer_user(layer, flags) = ccall(address(172), Ptr{Cvoid}, (Ptr{ckpt_layer}, UInt32), layer, flags)
ckpt_layer_run(layer, tape, inputs, input_count, flags, out_output) = ccall(address(173), ckpt_status, (Ptr{ckpt_layer}, Ptr{ckpt_tape}, Ptr{ckpt_buffer}, UInt32, UInt32, Ptr{ckpt_buffer}), layer, tape, inputs, input_count, flags, out_output)
ckpt_gpt_create(ops, desc, out_gpt) = ccall(address(174), ckpt_status, (Ptr{ckpt_ops}, Ptr{ckpt_gpt_desc}, Ptr{Ptr{ckpt_gpt}}), ops, desc, out_gpt)
ckpt_gpt_destroy(gpt) = ccall(address(175), Cvoid, (Ptr{ckpt_gpt},), gpt)
ckpt_gpt_parameter_count(gpt) = ccall(address(176), Csize_t, (Ptr{ckpt_gpt},), gpt)
ckpt_gpt_tensor_count(gpt) = ccall(address(177), UInt32, (Ptr{ckpt_gpt},), gpt)
ckpt_gpt_get_tensor(gpt, index, out_info) = ccall(address(178), ckpt_status, (Ptr{ckpt_gpt}, UInt32, Ptr{ckpt_tensor_info}), gpt, index, out_info)
ckpt_gpt_bind(gpt, parameters, gradients) = ccall(address(179), ckpt_status, (Ptr{ckpt_gpt}, Ptr{Cvoid}, Ptr{Float32}), gpt, parameters, gradients)
ckpt_gpt_init(gpt, seed) = ccall(address(180), ckpt_status, (Ptr{ckpt_gpt}, UInt64), gpt, seed)
ckpt_gpt_record(gpt, tape, tokens, targets, flags, out_loss) = ccall(address(181), ckpt_status, (Ptr{ckpt_gpt}, Ptr{ckpt_tape}, Ptr{Int32}, Ptr{Int32}, UInt32, Ptr{ckpt_buffer}), gpt, tape, tokens, targets, flags, out_loss)
ckpt_gpt_loss(gpt) = ccall(address(182), Ptr{Float32}, (Ptr{ckpt_gpt},), gpt)
ckpt_gpt_update(gpt, desc, first_moment, second_moment, out_norm) = ccall(address(183), ckpt_status, (Ptr{ckpt_gpt}, Ptr{ckpt_adamw_desc}, Ptr{Float32}, Ptr{Float32}, Ptr{Float64}), gpt, desc, first_moment, second_moment, out_norm)

# Structs in the order of the headers, and whether there is an initialiser in C.
const STRUCTS = [
    (ckpt_device_info, false),
    (ckpt_arena_desc, true),
    (ckpt_arena_stats, false),
    (ckpt_slot, false),
    (ckpt_output, false),
    (ckpt_chain_segment, false),
    (ckpt_chain_input, false),
    (ckpt_chain_desc, false),
    (ckpt_plan_desc, true),
    (ckpt_plan_summary, false),
    (ckpt_action, false),
    (ckpt_placement, false),
    (ckpt_curve_point, false),
    (ckpt_explanation, false),
    (ckpt_philox, false),
    (ckpt_schedule_action, false),
    (ckpt_segment_desc, true),
    (ckpt_watch, false),
    (ckpt_call, true),
    (ckpt_tape_desc, true),
    (ckpt_input_desc, true),
    (ckpt_tape_stats, false),
    (ckpt_pack_buffer, false),
    (ckpt_pack_desc, true),
    (ckpt_pack_result, false),
    (ckpt_model_desc, true),
    (ckpt_layout_desc, true),
    (ckpt_hardware_desc, true),
    (ckpt_estimate, false),
    (ckpt_ops_desc, true),
    (ckpt_ops_info, false),
    (ckpt_adamw_desc, true),
    (ckpt_tensor_info, false),
    (ckpt_layer_embedding_desc, true),
    (ckpt_layer_block_desc, true),
    (ckpt_layer_head_desc, true),
    (ckpt_gpt_desc, true),
]
const CONSTANTS = [
    (:CKPT_VERSION_MAJOR, Int64(CKPT_VERSION_MAJOR)),
    (:CKPT_VERSION_MINOR, Int64(CKPT_VERSION_MINOR)),
    (:CKPT_VERSION_PATCH, Int64(CKPT_VERSION_PATCH)),
    (:CKPT_OK, Int64(CKPT_OK)),
    (:CKPT_ERROR_INVALID_ARGUMENT, Int64(CKPT_ERROR_INVALID_ARGUMENT)),
    (:CKPT_ERROR_STRUCT_SIZE, Int64(CKPT_ERROR_STRUCT_SIZE)),
    (:CKPT_ERROR_OUT_OF_MEMORY, Int64(CKPT_ERROR_OUT_OF_MEMORY)),
    (:CKPT_ERROR_BUDGET, Int64(CKPT_ERROR_BUDGET)),
    (:CKPT_ERROR_BUSY, Int64(CKPT_ERROR_BUSY)),
    (:CKPT_ERROR_STALE, Int64(CKPT_ERROR_STALE)),
    (:CKPT_ERROR_STATE, Int64(CKPT_ERROR_STATE)),
    (:CKPT_ERROR_NOT_FILLED, Int64(CKPT_ERROR_NOT_FILLED)),
    (:CKPT_ERROR_CHECK, Int64(CKPT_ERROR_CHECK)),
    (:CKPT_ERROR_OVERFLOW, Int64(CKPT_ERROR_OVERFLOW)),
    (:CKPT_ERROR_NOT_FOUND, Int64(CKPT_ERROR_NOT_FOUND)),
    (:CKPT_ERROR_CONFLICT, Int64(CKPT_ERROR_CONFLICT)),
    (:CKPT_ERROR_DEVICE, Int64(CKPT_ERROR_DEVICE)),
    (:CKPT_ERROR_CAPTURE, Int64(CKPT_ERROR_CAPTURE)),
    (:CKPT_ERROR_UNSUPPORTED, Int64(CKPT_ERROR_UNSUPPORTED)),
    (:CKPT_ERROR_INVALID_PLAN, Int64(CKPT_ERROR_INVALID_PLAN)),
    (:CKPT_ERROR_INTERNAL, Int64(CKPT_ERROR_INTERNAL)),
    (:CKPT_DEVICE_KIND_CPU, Int64(CKPT_DEVICE_KIND_CPU)),
    (:CKPT_DEVICE_KIND_CUDA, Int64(CKPT_DEVICE_KIND_CUDA)),
    (:CKPT_COPY_HOST_TO_DEVICE, Int64(CKPT_COPY_HOST_TO_DEVICE)),
    (:CKPT_COPY_DEVICE_TO_HOST, Int64(CKPT_COPY_DEVICE_TO_HOST)),
    (:CKPT_COPY_DEVICE_TO_DEVICE, Int64(CKPT_COPY_DEVICE_TO_DEVICE)),
    (:CKPT_ARENA_GUARD, Int64(CKPT_ARENA_GUARD)),
    (:CKPT_ARENA_POISON, Int64(CKPT_ARENA_POISON)),
    (:CKPT_ARENA_PLAIN, Int64(CKPT_ARENA_PLAIN)),
    (:CKPT_ARENA_HIGH, Int64(CKPT_ARENA_HIGH)),
    (:CKPT_SLOT_TRANSIENT, Int64(CKPT_SLOT_TRANSIENT)),
    (:CKPT_SLOT_KEEP, Int64(CKPT_SLOT_KEEP)),
    (:CKPT_SLOT_RECOMPUTE, Int64(CKPT_SLOT_RECOMPUTE)),
    (:CKPT_SLOT_COST_GIVEN, Int64(CKPT_SLOT_COST_GIVEN)),
    (:CKPT_SLOT_CONSUMED, Int64(CKPT_SLOT_CONSUMED)),
    (:CKPT_SLOT_ALONE, Int64(CKPT_SLOT_ALONE)),
    (:CKPT_OUTPUT_NO_GRAD, Int64(CKPT_OUTPUT_NO_GRAD)),
    (:CKPT_OUTPUT_KEEP, Int64(CKPT_OUTPUT_KEEP)),
    (:CKPT_OUTPUT_BACKWARD_READS, Int64(CKPT_OUTPUT_BACKWARD_READS)),
    (:CKPT_OUTPUT_COST_GIVEN, Int64(CKPT_OUTPUT_COST_GIVEN)),
    (:CKPT_INPUT_BACKWARD_IGNORES, Int64(CKPT_INPUT_BACKWARD_IGNORES)),
    (:CKPT_INPUT_NO_GRAD, Int64(CKPT_INPUT_NO_GRAD)),
    (:CKPT_INPUT_GRAD_OVER_OUTPUT_0, Int64(CKPT_INPUT_GRAD_OVER_OUTPUT_0)),
    (:CKPT_STRATEGY_AUTO, Int64(CKPT_STRATEGY_AUTO)),
    (:CKPT_STRATEGY_STORE_ALL, Int64(CKPT_STRATEGY_STORE_ALL)),
    (:CKPT_STRATEGY_EVERY_SEGMENT, Int64(CKPT_STRATEGY_EVERY_SEGMENT)),
    (:CKPT_STRATEGY_SQRT, Int64(CKPT_STRATEGY_SQRT)),
    (:CKPT_STRATEGY_UNIFORM, Int64(CKPT_STRATEGY_UNIFORM)),
    (:CKPT_STRATEGY_BLOCK, Int64(CKPT_STRATEGY_BLOCK)),
    (:CKPT_STRATEGY_FULL, Int64(CKPT_STRATEGY_FULL)),
    (:CKPT_STRATEGY_SELECTIVE, Int64(CKPT_STRATEGY_SELECTIVE)),
    (:CKPT_MEMORY_ARENA, Int64(CKPT_MEMORY_ARENA)),
    (:CKPT_MEMORY_CALLER, Int64(CKPT_MEMORY_CALLER)),
    (:CKPT_GRAD_NONE, Int64(CKPT_GRAD_NONE)),
    (:CKPT_GRAD_ARENA, Int64(CKPT_GRAD_ARENA)),
    (:CKPT_GRAD_CALLER, Int64(CKPT_GRAD_CALLER)),
    (:CKPT_CHAIN_SEGMENT_WHOLE, Int64(CKPT_CHAIN_SEGMENT_WHOLE)),
    (:CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT, Int64(CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT)),
    (:CKPT_CLASS_DEFAULT, Int64(CKPT_CLASS_DEFAULT)),
    (:CKPT_CLASS_ROTOR, Int64(CKPT_CLASS_ROTOR)),
    (:CKPT_CLASS_SIGMA, Int64(CKPT_CLASS_SIGMA)),
    (:CKPT_CLASS_SIGMA_S_W, Int64(CKPT_CLASS_SIGMA_S_W)),
    (:CKPT_CLASS_SIGMA_S_W_D, Int64(CKPT_CLASS_SIGMA_S_W_D)),
    (:CKPT_PLAN_OPTIMAL, Int64(CKPT_PLAN_OPTIMAL)),
    (:CKPT_PLAN_GAP, Int64(CKPT_PLAN_GAP)),
    (:CKPT_ACTION_FORWARD, Int64(CKPT_ACTION_FORWARD)),
    (:CKPT_ACTION_BACKWARD, Int64(CKPT_ACTION_BACKWARD)),
    (:CKPT_ACTION_FREE, Int64(CKPT_ACTION_FREE)),
    (:CKPT_ACTION_DROP, Int64(CKPT_ACTION_DROP)),
    (:CKPT_PLAN_MASK_WORDS, Int64(CKPT_PLAN_MASK_WORDS)),
    (:CKPT_PLACED_SLOT, Int64(CKPT_PLACED_SLOT)),
    (:CKPT_PLACED_OUTPUT, Int64(CKPT_PLACED_OUTPUT)),
    (:CKPT_PLACED_INPUT, Int64(CKPT_PLACED_INPUT)),
    (:CKPT_PLACED_GRAD, Int64(CKPT_PLACED_GRAD)),
    (:CKPT_PLACED_SCRATCH, Int64(CKPT_PLACED_SCRATCH)),
    (:CKPT_BECAUSE_MARKED, Int64(CKPT_BECAUSE_MARKED)),
    (:CKPT_BECAUSE_UNUSED, Int64(CKPT_BECAUSE_UNUSED)),
    (:CKPT_BECAUSE_ALREADY, Int64(CKPT_BECAUSE_ALREADY)),
    (:CKPT_BECAUSE_FASTER, Int64(CKPT_BECAUSE_FASTER)),
    (:CKPT_BECAUSE_BUDGET, Int64(CKPT_BECAUSE_BUDGET)),
    (:CKPT_BECAUSE_NO_GAIN, Int64(CKPT_BECAUSE_NO_GAIN)),
    (:CKPT_BECAUSE_SEARCH, Int64(CKPT_BECAUSE_SEARCH)),
    (:CKPT_SCHEDULE_DONE, Int64(CKPT_SCHEDULE_DONE)),
    (:CKPT_SCHEDULE_STORE, Int64(CKPT_SCHEDULE_STORE)),
    (:CKPT_SCHEDULE_RESTORE, Int64(CKPT_SCHEDULE_RESTORE)),
    (:CKPT_SCHEDULE_ADVANCE, Int64(CKPT_SCHEDULE_ADVANCE)),
    (:CKPT_SCHEDULE_BACKWARD, Int64(CKPT_SCHEDULE_BACKWARD)),
    (:CKPT_CHECK_DETERMINISM, Int64(CKPT_CHECK_DETERMINISM)),
    (:CKPT_CHECK_RECOMPUTE, Int64(CKPT_CHECK_RECOMPUTE)),
    (:CKPT_CHECK_INPUTS, Int64(CKPT_CHECK_INPUTS)),
    (:CKPT_REPLAN_AUTO, Int64(CKPT_REPLAN_AUTO)),
    (:CKPT_REPLAN_NEVER, Int64(CKPT_REPLAN_NEVER)),
    (:CKPT_TAPE_DRY, Int64(CKPT_TAPE_DRY)),
    (:CKPT_TAPE_NO_BACKWARD, Int64(CKPT_TAPE_NO_BACKWARD)),
    (:CKPT_TAPE_INPUT_ACCUMULATE, Int64(CKPT_TAPE_INPUT_ACCUMULATE)),
    (:CKPT_BACKWARD_RETAIN, Int64(CKPT_BACKWARD_RETAIN)),
    (:CKPT_FRAME_SLOT, Int64(CKPT_FRAME_SLOT)),
    (:CKPT_FRAME_OUTPUT, Int64(CKPT_FRAME_OUTPUT)),
    (:CKPT_FRAME_INPUT, Int64(CKPT_FRAME_INPUT)),
    (:CKPT_FRAME_OUTPUT_GRAD, Int64(CKPT_FRAME_OUTPUT_GRAD)),
    (:CKPT_FRAME_INPUT_GRAD, Int64(CKPT_FRAME_INPUT_GRAD)),
    (:CKPT_FRAME_SCRATCH, Int64(CKPT_FRAME_SCRATCH)),
    (:CKPT_MODEL_GELU, Int64(CKPT_MODEL_GELU)),
    (:CKPT_MODEL_SWIGLU, Int64(CKPT_MODEL_SWIGLU)),
    (:CKPT_MODEL_PLAIN_ATTENTION, Int64(CKPT_MODEL_PLAIN_ATTENTION)),
    (:CKPT_MODEL_FLASH_ATTENTION, Int64(CKPT_MODEL_FLASH_ATTENTION)),
    (:CKPT_MODEL_DROPOUT, Int64(CKPT_MODEL_DROPOUT)),
    (:CKPT_LAYOUT_SEQUENCE_PARALLEL, Int64(CKPT_LAYOUT_SEQUENCE_PARALLEL)),
    (:CKPT_RECOMPUTE_NONE, Int64(CKPT_RECOMPUTE_NONE)),
    (:CKPT_RECOMPUTE_ATTENTION, Int64(CKPT_RECOMPUTE_ATTENTION)),
    (:CKPT_RECOMPUTE_FEED_FORWARD, Int64(CKPT_RECOMPUTE_FEED_FORWARD)),
    (:CKPT_RECOMPUTE_FULL, Int64(CKPT_RECOMPUTE_FULL)),
    (:CKPT_RECOMPUTE_OPTIMAL, Int64(CKPT_RECOMPUTE_OPTIMAL)),
    (:CKPT_ISA_BEST, Int64(CKPT_ISA_BEST)),
    (:CKPT_ISA_GENERIC, Int64(CKPT_ISA_GENERIC)),
    (:CKPT_ISA_AVX2, Int64(CKPT_ISA_AVX2)),
    (:CKPT_ISA_AVX512, Int64(CKPT_ISA_AVX512)),
    (:CKPT_DTYPE_FLOAT32, Int64(CKPT_DTYPE_FLOAT32)),
    (:CKPT_DTYPE_BFLOAT16, Int64(CKPT_DTYPE_BFLOAT16)),
    (:CKPT_DTYPE_FLOAT16, Int64(CKPT_DTYPE_FLOAT16)),
    (:CKPT_ATTENTION_PLAIN, Int64(CKPT_ATTENTION_PLAIN)),
    (:CKPT_ATTENTION_TILED, Int64(CKPT_ATTENTION_TILED)),
    (:CKPT_LAYER_EVALUATE, Int64(CKPT_LAYER_EVALUATE)),
]
