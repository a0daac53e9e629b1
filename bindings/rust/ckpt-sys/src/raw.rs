// Written by bindings/generate.py from the public headers; do not edit. What each thing means: include/ckpt/*.h.

use std::os::raw::{c_char, c_int, c_void};

pub type ckpt_status = i32;
pub type ckpt_buffer = u64;

pub const CKPT_VERSION_MAJOR: u32 = 0;
pub const CKPT_VERSION_MINOR: u32 = 1;
pub const CKPT_VERSION_PATCH: u32 = 0;
pub const CKPT_OK: ckpt_status = 0;
pub const CKPT_ERROR_INVALID_ARGUMENT: ckpt_status = -1;
pub const CKPT_ERROR_STRUCT_SIZE: ckpt_status = -2;
pub const CKPT_ERROR_OUT_OF_MEMORY: ckpt_status = -3;
pub const CKPT_ERROR_BUDGET: ckpt_status = -4;
pub const CKPT_ERROR_BUSY: ckpt_status = -5;
pub const CKPT_ERROR_STALE: ckpt_status = -6;
pub const CKPT_ERROR_STATE: ckpt_status = -7;
pub const CKPT_ERROR_NOT_FILLED: ckpt_status = -8;
pub const CKPT_ERROR_CHECK: ckpt_status = -9;
pub const CKPT_ERROR_OVERFLOW: ckpt_status = -10;
pub const CKPT_ERROR_NOT_FOUND: ckpt_status = -11;
pub const CKPT_ERROR_CONFLICT: ckpt_status = -12;
pub const CKPT_ERROR_DEVICE: ckpt_status = -13;
pub const CKPT_ERROR_CAPTURE: ckpt_status = -14;
pub const CKPT_ERROR_UNSUPPORTED: ckpt_status = -15;
pub const CKPT_ERROR_INVALID_PLAN: ckpt_status = -16;
pub const CKPT_ERROR_INTERNAL: ckpt_status = -17;
pub const CKPT_DEVICE_KIND_CPU: u32 = 0;
pub const CKPT_DEVICE_KIND_CUDA: u32 = 1;
pub const CKPT_COPY_HOST_TO_DEVICE: u32 = 0;
pub const CKPT_COPY_DEVICE_TO_HOST: u32 = 1;
pub const CKPT_COPY_DEVICE_TO_DEVICE: u32 = 2;
pub const CKPT_ARENA_GUARD: u32 = 1;
pub const CKPT_ARENA_POISON: u32 = 2;
pub const CKPT_ARENA_PLAIN: u32 = 4;
pub const CKPT_ARENA_HIGH: u32 = 1;
pub const CKPT_SLOT_TRANSIENT: u32 = 1;
pub const CKPT_SLOT_KEEP: u32 = 2;
pub const CKPT_SLOT_RECOMPUTE: u32 = 4;
pub const CKPT_SLOT_COST_GIVEN: u32 = 8;
pub const CKPT_SLOT_CONSUMED: u32 = 16;
pub const CKPT_SLOT_ALONE: u32 = 32;
pub const CKPT_OUTPUT_NO_GRAD: u32 = 1;
pub const CKPT_OUTPUT_KEEP: u32 = 2;
pub const CKPT_OUTPUT_BACKWARD_READS: u32 = 4;
pub const CKPT_OUTPUT_COST_GIVEN: u32 = 8;
pub const CKPT_INPUT_BACKWARD_IGNORES: u32 = 1;
pub const CKPT_INPUT_NO_GRAD: u32 = 2;
pub const CKPT_INPUT_GRAD_OVER_OUTPUT_0: u32 = 4;
pub const CKPT_STRATEGY_AUTO: u32 = 0;
pub const CKPT_STRATEGY_STORE_ALL: u32 = 1;
pub const CKPT_STRATEGY_EVERY_SEGMENT: u32 = 2;
pub const CKPT_STRATEGY_SQRT: u32 = 3;
pub const CKPT_STRATEGY_UNIFORM: u32 = 4;
pub const CKPT_STRATEGY_BLOCK: u32 = 5;
pub const CKPT_STRATEGY_FULL: u32 = 6;
pub const CKPT_STRATEGY_SELECTIVE: u32 = 7;
pub const CKPT_MEMORY_ARENA: u32 = 0;
pub const CKPT_MEMORY_CALLER: u32 = 1;
pub const CKPT_GRAD_NONE: u32 = 0;
pub const CKPT_GRAD_ARENA: u32 = 1;
pub const CKPT_GRAD_CALLER: u32 = 2;
pub const CKPT_CHAIN_SEGMENT_WHOLE: u32 = 1;
pub const CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT: u32 = 2;
pub const CKPT_CLASS_DEFAULT: u32 = 0;
pub const CKPT_CLASS_ROTOR: u32 = 1;
pub const CKPT_CLASS_SIGMA: u32 = 2;
pub const CKPT_CLASS_SIGMA_S_W: u32 = 3;
pub const CKPT_CLASS_SIGMA_S_W_D: u32 = 4;
pub const CKPT_PLAN_OPTIMAL: u32 = 0;
pub const CKPT_PLAN_GAP: u32 = 1;
pub const CKPT_ACTION_FORWARD: u32 = 0;
pub const CKPT_ACTION_BACKWARD: u32 = 1;
pub const CKPT_ACTION_FREE: u32 = 2;
pub const CKPT_ACTION_DROP: u32 = 3;
pub const CKPT_PLAN_MASK_WORDS: u32 = 4;
pub const CKPT_PLACED_SLOT: u32 = 0;
pub const CKPT_PLACED_OUTPUT: u32 = 1;
pub const CKPT_PLACED_INPUT: u32 = 2;
pub const CKPT_PLACED_GRAD: u32 = 3;
pub const CKPT_PLACED_SCRATCH: u32 = 4;
pub const CKPT_BECAUSE_MARKED: u32 = 0;
pub const CKPT_BECAUSE_UNUSED: u32 = 1;
pub const CKPT_BECAUSE_ALREADY: u32 = 2;
pub const CKPT_BECAUSE_FASTER: u32 = 3;
pub const CKPT_BECAUSE_BUDGET: u32 = 4;
pub const CKPT_BECAUSE_NO_GAIN: u32 = 5;
pub const CKPT_BECAUSE_SEARCH: u32 = 6;
pub const CKPT_SCHEDULE_DONE: u32 = 0;
pub const CKPT_SCHEDULE_STORE: u32 = 1;
pub const CKPT_SCHEDULE_RESTORE: u32 = 2;
pub const CKPT_SCHEDULE_ADVANCE: u32 = 3;
pub const CKPT_SCHEDULE_BACKWARD: u32 = 4;
pub const CKPT_CHECK_DETERMINISM: u32 = 1;
pub const CKPT_CHECK_RECOMPUTE: u32 = 2;
pub const CKPT_CHECK_INPUTS: u32 = 4;
pub const CKPT_REPLAN_AUTO: u32 = 0;
pub const CKPT_REPLAN_NEVER: u32 = 1;
pub const CKPT_TAPE_DRY: u32 = 1;
pub const CKPT_TAPE_NO_BACKWARD: u32 = 2;
pub const CKPT_TAPE_INPUT_ACCUMULATE: u32 = 1;
pub const CKPT_BACKWARD_RETAIN: u32 = 1;
pub const CKPT_FRAME_SLOT: u32 = 0;
pub const CKPT_FRAME_OUTPUT: u32 = 1;
pub const CKPT_FRAME_INPUT: u32 = 2;
pub const CKPT_FRAME_OUTPUT_GRAD: u32 = 3;
pub const CKPT_FRAME_INPUT_GRAD: u32 = 4;
pub const CKPT_FRAME_SCRATCH: u32 = 5;
pub const CKPT_MODEL_GELU: u32 = 0;
pub const CKPT_MODEL_SWIGLU: u32 = 1;
pub const CKPT_MODEL_PLAIN_ATTENTION: u32 = 0;
pub const CKPT_MODEL_FLASH_ATTENTION: u32 = 1;
pub const CKPT_MODEL_DROPOUT: u32 = 1;
pub const CKPT_LAYOUT_SEQUENCE_PARALLEL: u32 = 1;
pub const CKPT_RECOMPUTE_NONE: u32 = 0;
pub const CKPT_RECOMPUTE_ATTENTION: u32 = 1;
pub const CKPT_RECOMPUTE_FEED_FORWARD: u32 = 2;
pub const CKPT_RECOMPUTE_FULL: u32 = 3;
pub const CKPT_RECOMPUTE_OPTIMAL: u32 = 4;
pub const CKPT_ISA_BEST: u32 = 0;
pub const CKPT_ISA_GENERIC: u32 = 1;
pub const CKPT_ISA_AVX2: u32 = 2;
pub const CKPT_ISA_AVX512: u32 = 3;
pub const CKPT_DTYPE_FLOAT32: u32 = 0;
pub const CKPT_DTYPE_BFLOAT16: u32 = 1;
pub const CKPT_DTYPE_FLOAT16: u32 = 2;
pub const CKPT_ATTENTION_PLAIN: u32 = 0;
pub const CKPT_ATTENTION_TILED: u32 = 1;
pub const CKPT_LAYER_EVALUATE: u32 = 1;

#[repr(C)]
pub struct ckpt_device {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_graph {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_arena {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_chain {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_plan {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_rng {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_schedule {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_tape {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_segment {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_recording {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_frame {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_trace {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_ops {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_layer {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct ckpt_gpt {
    _opaque: [u8; 0],
    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

pub type ckpt_alloc_fn = unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment_bytes: usize) -> *mut c_void;
pub type ckpt_free_fn = unsafe extern "C" fn(user: *mut c_void, data: *mut c_void, bytes: usize);
pub type ckpt_release_fn = unsafe extern "C" fn(user: *mut c_void);
pub type ckpt_segment_fn = unsafe extern "C" fn(user: *mut c_void, frame: *mut ckpt_frame) -> ckpt_status;
pub type ckpt_state_fn = unsafe extern "C" fn(user: *mut c_void, state: *mut c_void) -> ckpt_status;
pub type ckpt_trace_fn = unsafe extern "C" fn(user: *mut c_void, what: u32, index: u32, in_use_bytes: usize, is_recompute: u32);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_device_info {
    pub struct_size: u32,
    pub kind: u32,
    pub index: u32,
    pub thread_count: u32,
    pub total_bytes: usize,
    pub available_bytes: usize,
    pub name: [c_char; 64],
}

impl Default for ckpt_device_info {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_arena_desc {
    pub struct_size: u32,
    pub flags: u32,
    pub capacity_bytes: usize,
    pub alignment_bytes: usize,
    pub stream: *mut c_void,
    pub slab: *mut c_void,
    pub alloc: Option<ckpt_alloc_fn>,
    pub free: Option<ckpt_free_fn>,
    pub user: *mut c_void,
    pub release: Option<ckpt_release_fn>,
}

impl Default for ckpt_arena_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_arena_desc>() as u32,
            flags: 0,
            capacity_bytes: 0,
            alignment_bytes: 0,
            stream: std::ptr::null_mut(),
            slab: std::ptr::null_mut(),
            alloc: None,
            free: None,
            user: std::ptr::null_mut(),
            release: None,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_arena_stats {
    pub struct_size: u32,
    pub block_count: u32,
    pub in_use_bytes: usize,
    pub peak_in_use_bytes: usize,
    pub height_bytes: usize,
    pub capacity_bytes: usize,
    pub largest_free_bytes: usize,
    pub alloc_count: u64,
    pub free_count: u64,
    pub failed_count: u64,
}

impl Default for ckpt_arena_stats {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_slot {
    pub name: *const c_char,
    pub bytes: usize,
    pub reads: *const u32,
    pub read_count: u32,
    pub group: u32,
    pub cost_seconds: f64,
    pub flags: u32,
    pub reserved: u32,
}

impl Default for ckpt_slot {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_output {
    pub name: *const c_char,
    pub bytes: usize,
    pub grad_bytes: usize,
    pub reads: *const u32,
    pub read_count: u32,
    pub group: u32,
    pub memory: *mut c_void,
    pub cost_seconds: f64,
    pub flags: u32,
    pub in_place_input: u32,
}

impl Default for ckpt_output {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_chain_segment {
    pub name: *const c_char,
    pub forward_seconds: f64,
    pub backward_seconds: f64,
    pub slots: *const ckpt_slot,
    pub outputs: *const ckpt_output,
    pub inputs: *const u32,
    pub input_flags: *const u32,
    pub slot_count: u32,
    pub output_count: u32,
    pub input_count: u32,
    pub flags: u32,
    pub forward_scratch_bytes: usize,
    pub backward_scratch_bytes: usize,
}

impl Default for ckpt_chain_segment {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_chain_input {
    pub bytes: usize,
    pub grad_bytes: usize,
    pub memory: u32,
    pub grad: u32,
}

impl Default for ckpt_chain_input {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_chain_desc {
    pub struct_size: u32,
    pub segment_size: u32,
    pub slot_size: u32,
    pub output_size: u32,
    pub inputs: *const ckpt_chain_input,
    pub segments: *const ckpt_chain_segment,
    pub input_count: u32,
    pub segment_count: u32,
    pub output_grad: u32,
    pub flags: u32,
    pub alignment_bytes: usize,
}

impl Default for ckpt_chain_desc {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_plan_desc {
    pub struct_size: u32,
    pub strategy: u32,
    pub k: u32,
    pub in_flight_count: u32,
    pub keep_patterns: *const *const c_char,
    pub recompute_patterns: *const *const c_char,
    pub keep_pattern_count: u32,
    pub recompute_pattern_count: u32,
    pub budget_bytes: usize,
    pub work_limit: u64,
    pub plan_class: u32,
    pub reserved: u32,
}

impl Default for ckpt_plan_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_plan_desc>() as u32,
            strategy: 0,
            k: 0,
            in_flight_count: 0,
            keep_patterns: std::ptr::null(),
            recompute_patterns: std::ptr::null(),
            keep_pattern_count: 0,
            recompute_pattern_count: 0,
            budget_bytes: 0,
            work_limit: 0,
            plan_class: 0,
            reserved: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_plan_summary {
    pub struct_size: u32,
    pub strategy: u32,
    pub k: u32,
    pub action_count: u32,
    pub hash: u64,
    pub budget_bytes: usize,
    pub peak_bytes: usize,
    pub arena_bytes: usize,
    pub held_bytes: usize,
    pub forward_seconds: f64,
    pub backward_seconds: f64,
    pub recompute_seconds: f64,
    pub recompute_count: u64,
    pub minimum_budget_bytes: usize,
    pub class_gap_seconds: f64,
    pub universal_gap_seconds: f64,
    pub plan_seconds: f64,
    pub work: u64,
    pub status: u32,
    pub plan_class: u32,
    pub placement_count: u32,
    pub reserved: u32,
}

impl Default for ckpt_plan_summary {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_action {
    pub kind: u32,
    pub index: u32,
    pub slots: [u64; 4],
    pub outputs: [u64; 4],
}

impl Default for ckpt_action {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_placement {
    pub what: u32,
    pub index: u32,
    pub item: u32,
    pub is_recompute: u32,
    pub first_action: u32,
    pub end_action: u32,
    pub bytes: usize,
    pub offset: usize,
}

impl Default for ckpt_placement {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_curve_point {
    pub budget_bytes: usize,
    pub peak_bytes: usize,
    pub seconds: f64,
    pub recompute_seconds: f64,
    pub class_gap_seconds: f64,
    pub universal_gap_seconds: f64,
    pub status: u32,
    pub reserved: u32,
}

impl Default for ckpt_curve_point {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_explanation {
    pub what: u32,
    pub index: u32,
    pub item: u32,
    pub kept: u32,
    pub because: u32,
    pub reserved: u32,
    pub bytes: usize,
    pub seconds_change: f64,
    pub peak_change: i64,
}

impl Default for ckpt_explanation {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_philox {
    pub seed: u64,
    pub subsequence: u64,
    pub offset: u64,
    pub step_word: *const u64,
}

impl Default for ckpt_philox {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_schedule_action {
    pub kind: u32,
    pub snapshot: u32,
    pub first: u64,
    pub last: u64,
}

impl Default for ckpt_schedule_action {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_segment_desc {
    pub struct_size: u32,
    pub slot_size: u32,
    pub output_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub forward: Option<ckpt_segment_fn>,
    pub backward: Option<ckpt_segment_fn>,
    pub slots: *const ckpt_slot,
    pub outputs: *const ckpt_output,
    pub input_flags: *const u32,
    pub slot_count: u32,
    pub output_count: u32,
    pub input_count: u32,
    pub reserved: u32,
    pub forward_scratch_bytes: usize,
    pub backward_scratch_bytes: usize,
    pub save_state: Option<ckpt_state_fn>,
    pub restore_state: Option<ckpt_state_fn>,
    pub state_bytes: usize,
}

impl Default for ckpt_segment_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_segment_desc>() as u32,
            slot_size: std::mem::size_of::<ckpt_slot>() as u32,
            output_size: std::mem::size_of::<ckpt_output>() as u32,
            flags: 0,
            name: std::ptr::null(),
            forward: None,
            backward: None,
            slots: std::ptr::null(),
            outputs: std::ptr::null(),
            input_flags: std::ptr::null(),
            slot_count: 0,
            output_count: 0,
            input_count: 0,
            reserved: 0,
            forward_scratch_bytes: 0,
            backward_scratch_bytes: 0,
            save_state: None,
            restore_state: None,
            state_bytes: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_watch {
    pub name: *const c_char,
    pub data: *const c_void,
    pub bytes: usize,
}

impl Default for ckpt_watch {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_call {
    pub struct_size: u32,
    pub input_count: u32,
    pub user: *mut c_void,
    pub release: Option<ckpt_release_fn>,
    pub inputs: *const ckpt_buffer,
    pub slot_bytes: *const usize,
    pub output_bytes: *const usize,
    pub watch: *const ckpt_watch,
    pub watch_count: u32,
    pub reserved: u32,
}

impl Default for ckpt_call {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_call>() as u32,
            input_count: 0,
            user: std::ptr::null_mut(),
            release: None,
            inputs: std::ptr::null(),
            slot_bytes: std::ptr::null(),
            output_bytes: std::ptr::null(),
            watch: std::ptr::null(),
            watch_count: 0,
            reserved: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_tape_desc {
    pub struct_size: u32,
    pub checks: u32,
    pub arena: *mut ckpt_arena,
    pub budget_bytes: usize,
    pub seed: u64,
    pub strategy: u32,
    pub strategy_k: u32,
    pub keep_patterns: *const *const c_char,
    pub recompute_patterns: *const *const c_char,
    pub keep_pattern_count: u32,
    pub recompute_pattern_count: u32,
    pub in_flight_count: u32,
    pub replan: u32,
}

impl Default for ckpt_tape_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_tape_desc>() as u32,
            checks: 0,
            arena: std::ptr::null_mut(),
            budget_bytes: 0,
            seed: 0,
            strategy: 0,
            strategy_k: 0,
            keep_patterns: std::ptr::null(),
            recompute_patterns: std::ptr::null(),
            keep_pattern_count: 0,
            recompute_pattern_count: 0,
            in_flight_count: 0,
            replan: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_input_desc {
    pub struct_size: u32,
    pub flags: u32,
    pub data: *const c_void,
    pub bytes: usize,
    pub grad: *mut c_void,
    pub grad_bytes: usize,
}

impl Default for ckpt_input_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_input_desc>() as u32,
            flags: 0,
            data: std::ptr::null(),
            bytes: 0,
            grad: std::ptr::null_mut(),
            grad_bytes: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_tape_stats {
    pub struct_size: u32,
    pub strategy: u32,
    pub strategy_k: u32,
    pub planned: u32,
    pub step: u64,
    pub segment_count: u64,
    pub forward_count: u64,
    pub recompute_count: u64,
    pub backward_done: u64,
    pub skipped_count: u64,
    pub thinned_count: u64,
    pub plan_count: u64,
    pub plan_hit_count: u64,
    pub budget_bytes: usize,
    pub peak_predicted_bytes: usize,
    pub peak_measured_bytes: usize,
    pub arena_predicted_bytes: usize,
    pub arena_measured_bytes: usize,
    pub held_bytes: usize,
    pub minimum_budget_bytes: usize,
    pub recompute_seconds: f64,
    pub forward_seconds: f64,
    pub backward_seconds: f64,
    pub predicted_recompute_seconds: f64,
}

impl Default for ckpt_tape_stats {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_pack_buffer {
    pub lower: u64,
    pub upper: u64,
    pub bytes: usize,
}

impl Default for ckpt_pack_buffer {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_pack_desc {
    pub struct_size: u32,
    pub buffer_size: u32,
    pub buffers: *const ckpt_pack_buffer,
    pub buffer_count: usize,
    pub alignment_bytes: usize,
    pub capacity_bytes: usize,
    pub work_limit: u64,
}

impl Default for ckpt_pack_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_pack_desc>() as u32,
            buffer_size: std::mem::size_of::<ckpt_pack_buffer>() as u32,
            buffers: std::ptr::null(),
            buffer_count: 0,
            alignment_bytes: 0,
            capacity_bytes: 0,
            work_limit: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_pack_result {
    pub struct_size: u32,
    pub proved: u32,
    pub lower_bound_bytes: usize,
    pub height_bytes: usize,
    pub work: u64,
}

impl Default for ckpt_pack_result {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_model_desc {
    pub struct_size: u32,
    pub activation: u32,
    pub attention: u32,
    pub flags: u32,
    pub element_bytes: u32,
    pub reserved: u32,
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub head_size: u64,
    pub ffn: u64,
    pub sequence: u64,
    pub micro_batch: u64,
    pub vocabulary: u64,
}

impl Default for ckpt_model_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_model_desc>() as u32,
            activation: 0,
            attention: 0,
            flags: 0,
            element_bytes: 0,
            reserved: 0,
            layers: 0,
            hidden: 0,
            heads: 0,
            kv_heads: 0,
            head_size: 0,
            ffn: 0,
            sequence: 0,
            micro_batch: 0,
            vocabulary: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_layout_desc {
    pub struct_size: u32,
    pub flags: u32,
    pub tensor_parallel: u64,
    pub context_parallel: u64,
    pub pipeline: u64,
    pub virtual_pipeline: u64,
    pub micro_batches: u64,
}

impl Default for ckpt_layout_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_layout_desc>() as u32,
            flags: 0,
            tensor_parallel: 0,
            context_parallel: 0,
            pipeline: 0,
            virtual_pipeline: 0,
            micro_batches: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_hardware_desc {
    pub struct_size: u32,
    pub reserved: u32,
    pub flops_per_second: f64,
    pub bytes_per_second: f64,
}

impl Default for ckpt_hardware_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_hardware_desc>() as u32,
            reserved: 0,
            flops_per_second: 0.0,
            bytes_per_second: 0.0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_estimate {
    pub struct_size: u32,
    pub policy: u32,
    pub layer_bytes: u64,
    pub chunk_layers: u64,
    pub in_flight: u64,
    pub layers_in_flight: u64,
    pub outside_bytes: u64,
    pub activation_bytes: u64,
    pub peak_bytes: u64,
    pub arena_bytes: u64,
    pub minimum_budget_bytes: u64,
    pub forward_flops: f64,
    pub backward_flops: f64,
    pub recompute_flops: f64,
    pub replay_flops: f64,
    pub model_flops: f64,
    pub forward_seconds: f64,
    pub backward_seconds: f64,
    pub recompute_seconds: f64,
    pub offload_bytes_per_second: f64,
}

impl Default for ckpt_estimate {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_ops_desc {
    pub struct_size: u32,
    pub thread_count: u32,
    pub isa: u32,
    pub dtype: u32,
    pub device: *mut ckpt_device,
    pub stream: *mut c_void,
}

impl Default for ckpt_ops_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_ops_desc>() as u32,
            thread_count: 0,
            isa: 0,
            dtype: 0,
            device: std::ptr::null_mut(),
            stream: std::ptr::null_mut(),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_ops_info {
    pub struct_size: u32,
    pub thread_count: u32,
    pub isa: [c_char; 16],
    pub blas: [c_char; 64],
    pub dtype: u32,
    pub device_kind: u32,
}

impl Default for ckpt_ops_info {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_adamw_desc {
    pub struct_size: u32,
    pub learning_rate: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
    pub max_norm: f32,
    pub grad_scale: f32,
    pub step: u64,
    pub master_weights: *mut f32,
}

impl Default for ckpt_adamw_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_adamw_desc>() as u32,
            learning_rate: 0.0,
            beta1: 0.0,
            beta2: 0.0,
            epsilon: 0.0,
            weight_decay: 0.0,
            max_norm: 0.0,
            grad_scale: 0.0,
            step: 0,
            master_weights: std::ptr::null_mut(),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_tensor_info {
    pub struct_size: u32,
    pub decays: u32,
    pub offset: usize,
    pub count: usize,
    pub rows: usize,
    pub columns: usize,
    pub init_mean: f32,
    pub init_stddev: f32,
    pub name: [c_char; 48],
}

impl Default for ckpt_tensor_info {
    fn default() -> Self {
        // All fields are numbers, arrays of numbers or pointers: zeros are valid.
        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_layer_embedding_desc {
    pub struct_size: u32,
    pub dropout_probability: f32,
    pub batch: usize,
    pub sequence: usize,
    pub channels: usize,
    pub vocabulary: usize,
}

impl Default for ckpt_layer_embedding_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_layer_embedding_desc>() as u32,
            dropout_probability: 0.0,
            batch: 0,
            sequence: 0,
            channels: 0,
            vocabulary: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_layer_block_desc {
    pub struct_size: u32,
    pub attention: u32,
    pub batch: usize,
    pub sequence: usize,
    pub channels: usize,
    pub heads: usize,
    pub hidden: usize,
    pub dropout_probability: f32,
    pub attention_dropout_probability: f32,
    pub epsilon: f32,
    pub residual_stddev: f32,
}

impl Default for ckpt_layer_block_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_layer_block_desc>() as u32,
            attention: 0,
            batch: 0,
            sequence: 0,
            channels: 0,
            heads: 0,
            hidden: 0,
            dropout_probability: 0.0,
            attention_dropout_probability: 0.0,
            epsilon: 0.0,
            residual_stddev: 0.0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_layer_head_desc {
    pub struct_size: u32,
    pub tied: u32,
    pub rows: usize,
    pub channels: usize,
    pub vocabulary: usize,
    pub chunk_rows: usize,
    pub loss: *mut f32,
    pub ignore_index: i32,
    pub epsilon: f32,
}

impl Default for ckpt_layer_head_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_layer_head_desc>() as u32,
            tied: 0,
            rows: 0,
            channels: 0,
            vocabulary: 0,
            chunk_rows: 0,
            loss: std::ptr::null_mut(),
            ignore_index: -1,
            epsilon: 0.0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ckpt_gpt_desc {
    pub struct_size: u32,
    pub attention: u32,
    pub layers: usize,
    pub heads: usize,
    pub channels: usize,
    pub sequence: usize,
    pub batch: usize,
    pub vocabulary: usize,
    pub head_chunk_rows: usize,
    pub dropout_probability: f32,
    pub untied: u32,
}

impl Default for ckpt_gpt_desc {
    fn default() -> Self {
        Self {
            struct_size: std::mem::size_of::<ckpt_gpt_desc>() as u32,
            attention: 0,
            layers: 0,
            heads: 0,
            channels: 0,
            sequence: 0,
            batch: 0,
            vocabulary: 0,
            head_chunk_rows: 0,
            dropout_probability: 0.0,
            untied: 0,
        }
    }
}

extern "C" {
    pub fn ckpt_last_error() -> *const c_char;
    pub fn ckpt_last_status() -> ckpt_status;
    pub fn ckpt_status_name(status: ckpt_status) -> *const c_char;
    pub fn ckpt_version() -> u32;
    pub fn ckpt_version_string() -> *const c_char;
    pub fn ckpt_device_open(name: *const c_char, out_device: *mut *mut ckpt_device) -> ckpt_status;
    pub fn ckpt_device_close(device: *mut ckpt_device);
    pub fn ckpt_device_get_info(device: *const ckpt_device, out_info: *mut ckpt_device_info) -> ckpt_status;
    pub fn ckpt_device_synchronize(device: *mut ckpt_device, stream: *mut c_void) -> ckpt_status;
    pub fn ckpt_device_copy(device: *mut ckpt_device, stream: *mut c_void, to: *mut c_void, from: *const c_void, bytes: usize, kind: u32) -> ckpt_status;
    pub fn ckpt_device_fill(device: *mut ckpt_device, stream: *mut c_void, data: *mut c_void, value: u8, bytes: usize) -> ckpt_status;
    pub fn ckpt_device_stream_create(device: *mut ckpt_device, out_stream: *mut *mut c_void) -> ckpt_status;
    pub fn ckpt_device_stream_destroy(device: *mut ckpt_device, stream: *mut c_void);
    pub fn ckpt_device_host_alloc(device: *mut ckpt_device, bytes: usize, out_data: *mut *mut c_void) -> ckpt_status;
    pub fn ckpt_device_host_free(device: *mut ckpt_device, data: *mut c_void, bytes: usize);
    pub fn ckpt_device_capture_begin(device: *mut ckpt_device, stream: *mut c_void) -> ckpt_status;
    pub fn ckpt_device_capture_end(device: *mut ckpt_device, stream: *mut c_void, out_graph: *mut *mut ckpt_graph) -> ckpt_status;
    pub fn ckpt_graph_launch(graph: *mut ckpt_graph, stream: *mut c_void) -> ckpt_status;
    pub fn ckpt_graph_destroy(graph: *mut ckpt_graph);
    pub fn ckpt_device_interface(device: *const ckpt_device, name: *const c_char, out_self: *mut *mut c_void) -> *const c_void;
    pub fn ckpt_arena_create(device: *mut ckpt_device, desc: *const ckpt_arena_desc, out_arena: *mut *mut ckpt_arena) -> ckpt_status;
    pub fn ckpt_arena_destroy(arena: *mut ckpt_arena);
    pub fn ckpt_arena_alloc(arena: *mut ckpt_arena, bytes: usize, flags: u32) -> *mut c_void;
    pub fn ckpt_arena_free(arena: *mut ckpt_arena, data: *mut c_void) -> ckpt_status;
    pub fn ckpt_arena_check(arena: *mut ckpt_arena) -> ckpt_status;
    pub fn ckpt_arena_get_stats(arena: *const ckpt_arena, out_stats: *mut ckpt_arena_stats) -> ckpt_status;
    pub fn ckpt_arena_reset_stats(arena: *mut ckpt_arena) -> ckpt_status;
    pub fn ckpt_strategy_parse(text: *const c_char, out_strategy: *mut u32, out_k: *mut u32) -> ckpt_status;
    pub fn ckpt_strategy_name(strategy: u32) -> *const c_char;
    pub fn ckpt_chain_create(desc: *const ckpt_chain_desc, out_chain: *mut *mut ckpt_chain) -> ckpt_status;
    pub fn ckpt_chain_destroy(chain: *mut ckpt_chain);
    pub fn ckpt_chain_hash(chain: *const ckpt_chain) -> u64;
    pub fn ckpt_chain_segment_count(chain: *const ckpt_chain) -> u32;
    pub fn ckpt_class_parse(text: *const c_char, out_class: *mut u32) -> ckpt_status;
    pub fn ckpt_class_name(plan_class: u32) -> *const c_char;
    pub fn ckpt_plan_create(chain: *const ckpt_chain, desc: *const ckpt_plan_desc, out_plan: *mut *mut ckpt_plan) -> ckpt_status;
    pub fn ckpt_plan_destroy(plan: *mut ckpt_plan);
    pub fn ckpt_plan_minimum_budget(chain: *const ckpt_chain, desc: *const ckpt_plan_desc, out_bytes: *mut usize) -> ckpt_status;
    pub fn ckpt_plan_get_summary(plan: *const ckpt_plan, out_summary: *mut ckpt_plan_summary) -> ckpt_status;
    pub fn ckpt_plan_hash(plan: *const ckpt_plan) -> u64;
    pub fn ckpt_plan_get_actions(plan: *const ckpt_plan, first: u32, count: u32, action_size: u32, out_actions: *mut ckpt_action) -> ckpt_status;
    pub fn ckpt_plan_from_actions(chain: *const ckpt_chain, actions: *const ckpt_action, action_count: u32, action_size: u32, in_flight_count: u32, budget_bytes: usize, out_plan: *mut *mut ckpt_plan) -> ckpt_status;
    pub fn ckpt_plan_get_placements(plan: *const ckpt_plan, first: u32, count: u32, placement_size: u32, out_placements: *mut ckpt_placement) -> ckpt_status;
    pub fn ckpt_plan_curve(chain: *const ckpt_chain, desc: *const ckpt_plan_desc, capacity: u32, point_size: u32, out_points: *mut ckpt_curve_point, out_count: *mut u32) -> ckpt_status;
    pub fn ckpt_plan_explain(chain: *const ckpt_chain, plan: *const ckpt_plan, first: u32, count: u32, explanation_size: u32, out_explanations: *mut ckpt_explanation, out_count: *mut u32) -> ckpt_status;
    pub fn ckpt_program_verify(chain: *const ckpt_chain, actions: *const ckpt_action, action_count: u32, action_size: u32, out_peak_bytes: *mut usize, out_seconds: *mut f64, out_recompute_seconds: *mut f64) -> ckpt_status;
    pub fn ckpt_philox_pack(seed: u64, step: u64, segment: u64, site: u32, out_philox: *mut ckpt_philox) -> ckpt_status;
    pub fn ckpt_philox_block(counter: *const u32, key: *const u32, out: *mut u32);
    pub fn ckpt_philox_u32(philox: *const ckpt_philox, first: u64, count: usize, out_words: *mut u32) -> ckpt_status;
    pub fn ckpt_philox_uniform(philox: *const ckpt_philox, first: u64, count: usize, out_values: *mut f32) -> ckpt_status;
    pub fn ckpt_philox_normal(philox: *const ckpt_philox, first: u64, count: usize, mean: f32, stddev: f32, out_values: *mut f32) -> ckpt_status;
    pub fn ckpt_philox_bernoulli(philox: *const ckpt_philox, first: u64, count: usize, probability: f64, out_bytes: *mut u8) -> ckpt_status;
    pub fn ckpt_device_philox_u32(device: *mut ckpt_device, stream: *mut c_void, philox: *const ckpt_philox, first: u64, count: usize, out_words: *mut u32) -> ckpt_status;
    pub fn ckpt_device_philox_uniform(device: *mut ckpt_device, stream: *mut c_void, philox: *const ckpt_philox, first: u64, count: usize, out_values: *mut f32) -> ckpt_status;
    pub fn ckpt_device_philox_normal(device: *mut ckpt_device, stream: *mut c_void, philox: *const ckpt_philox, first: u64, count: usize, mean: f32, stddev: f32, out_values: *mut f32) -> ckpt_status;
    pub fn ckpt_device_philox_bernoulli(device: *mut ckpt_device, stream: *mut c_void, philox: *const ckpt_philox, first: u64, count: usize, probability: f64, out_bytes: *mut u8) -> ckpt_status;
    pub fn ckpt_philox_threshold(probability: f64) -> u64;
    pub fn ckpt_rng_create(seed: u64, subsequence: u64, offset: u64, out_rng: *mut *mut ckpt_rng) -> ckpt_status;
    pub fn ckpt_rng_destroy(rng: *mut ckpt_rng);
    pub fn ckpt_rng_snapshot(rng: *const ckpt_rng, out_philox: *mut ckpt_philox) -> ckpt_status;
    pub fn ckpt_rng_restore(rng: *mut ckpt_rng, philox: *const ckpt_philox) -> ckpt_status;
    pub fn ckpt_rng_advance(rng: *mut ckpt_rng, words: u64, round_up_to_4: u32) -> ckpt_status;
    pub fn ckpt_revolve_extra_forwards(step_count: u64, snapshot_count: u64, out_count: *mut u64) -> ckpt_status;
    pub fn ckpt_schedule_revolve(step_count: u64, snapshot_count: u32, out_schedule: *mut *mut ckpt_schedule) -> ckpt_status;
    pub fn ckpt_schedule_destroy(schedule: *mut ckpt_schedule);
    pub fn ckpt_schedule_next(schedule: *mut ckpt_schedule, out_action: *mut ckpt_schedule_action) -> ckpt_status;
    pub fn ckpt_segment_create(desc: *const ckpt_segment_desc, out_segment: *mut *mut ckpt_segment) -> ckpt_status;
    pub fn ckpt_segment_destroy(segment: *mut ckpt_segment);
    pub fn ckpt_tape_create(desc: *const ckpt_tape_desc, out_tape: *mut *mut ckpt_tape) -> ckpt_status;
    pub fn ckpt_tape_destroy(tape: *mut ckpt_tape);
    pub fn ckpt_tape_set_step(tape: *mut ckpt_tape, step: u64) -> ckpt_status;
    pub fn ckpt_tape_get_step(tape: *const ckpt_tape, out_step: *mut u64) -> ckpt_status;
    pub fn ckpt_tape_begin(tape: *mut ckpt_tape, key: u64, flags: u32) -> ckpt_status;
    pub fn ckpt_tape_input(tape: *mut ckpt_tape, desc: *const ckpt_input_desc, out_buffer: *mut ckpt_buffer) -> ckpt_status;
    pub fn ckpt_segment_begin(tape: *mut ckpt_tape, segment: *const ckpt_segment, call: *const ckpt_call, out_frame: *mut *mut ckpt_frame) -> ckpt_status;
    pub fn ckpt_segment_end(frame: *mut ckpt_frame, status: ckpt_status, out_outputs: *mut ckpt_buffer) -> ckpt_status;
    pub fn ckpt_segment_run(tape: *mut ckpt_tape, segment: *const ckpt_segment, call: *const ckpt_call, out_outputs: *mut ckpt_buffer) -> ckpt_status;
    pub fn ckpt_tape_release(tape: *mut ckpt_tape, buffer: ckpt_buffer) -> ckpt_status;
    pub fn ckpt_tape_read(tape: *mut ckpt_tape, buffer: ckpt_buffer, out_data: *mut *const c_void) -> ckpt_status;
    pub fn ckpt_tape_reset(tape: *mut ckpt_tape) -> ckpt_status;
    pub fn ckpt_backward(tape: *mut ckpt_tape, outputs: *const ckpt_buffer, output_grads: *const *const c_void, output_count: u32, flags: u32) -> ckpt_status;
    pub fn ckpt_tape_detach(tape: *mut ckpt_tape, out_recording: *mut *mut ckpt_recording) -> ckpt_status;
    pub fn ckpt_recording_backward(recording: *mut ckpt_recording, outputs: *const ckpt_buffer, output_grads: *const *const c_void, output_count: u32, flags: u32) -> ckpt_status;
    pub fn ckpt_recording_read(recording: *mut ckpt_recording, buffer: ckpt_buffer, out_data: *mut *const c_void) -> ckpt_status;
    pub fn ckpt_recording_destroy(recording: *mut ckpt_recording);
    pub fn ckpt_tape_chain(tape: *mut ckpt_tape, key: u64, out_chain: *mut *mut ckpt_chain) -> ckpt_status;
    pub fn ckpt_tape_plan(tape: *mut ckpt_tape, key: u64, out_plan: *mut *mut ckpt_plan) -> ckpt_status;
    pub fn ckpt_tape_adopt(tape: *mut ckpt_tape, key: u64, plan: *const ckpt_plan) -> ckpt_status;
    pub fn ckpt_tape_prepare(tape: *mut ckpt_tape, key: u64) -> ckpt_status;
    pub fn ckpt_tape_replay(tape: *mut ckpt_tape) -> ckpt_status;
    pub fn ckpt_tape_get_stats(tape: *const ckpt_tape, out_stats: *mut ckpt_tape_stats) -> ckpt_status;
    pub fn ckpt_tape_set_trace(tape: *mut ckpt_tape, trace: Option<ckpt_trace_fn>, user: *mut c_void) -> ckpt_status;
    pub fn ckpt_frame_needs(frame: *mut ckpt_frame, slot: u32) -> c_int;
    pub fn ckpt_frame_needs_output(frame: *mut ckpt_frame, output: u32) -> c_int;
    pub fn ckpt_frame_slot(frame: *mut ckpt_frame, slot: u32) -> *mut c_void;
    pub fn ckpt_frame_output(frame: *mut ckpt_frame, output: u32) -> *mut c_void;
    pub fn ckpt_frame_input(frame: *mut ckpt_frame, input: u32) -> *const c_void;
    pub fn ckpt_frame_output_grad(frame: *mut ckpt_frame, output: u32) -> *const c_void;
    pub fn ckpt_frame_input_grad(frame: *mut ckpt_frame, input: u32, out_accumulate: *mut c_int) -> *mut c_void;
    pub fn ckpt_frame_scratch(frame: *mut ckpt_frame) -> *mut c_void;
    pub fn ckpt_frame_bytes(frame: *const ckpt_frame, what: u32, k: u32) -> usize;
    pub fn ckpt_frame_random(frame: *mut ckpt_frame, site: u32, out_philox: *mut ckpt_philox);
    pub fn ckpt_frame_is_recompute(frame: *const ckpt_frame) -> c_int;
    pub fn ckpt_frame_is_backward(frame: *const ckpt_frame) -> c_int;
    pub fn ckpt_frame_is_dry(frame: *const ckpt_frame) -> c_int;
    pub fn ckpt_frame_index(frame: *const ckpt_frame) -> u64;
    pub fn ckpt_frame_step(frame: *const ckpt_frame) -> u64;
    pub fn ckpt_frame_stream(frame: *const ckpt_frame) -> *mut c_void;
    pub fn ckpt_frame_user(frame: *const ckpt_frame) -> *mut c_void;
    pub fn ckpt_frame_fail(frame: *mut ckpt_frame, status: ckpt_status, text: *const c_char) -> ckpt_status;
    pub fn ckpt_text_free(text: *mut c_char);
    pub fn ckpt_chain_from_json(text: *const c_char, text_bytes: usize, alignment_bytes: usize, source_name: *const c_char, out_chain: *mut *mut ckpt_chain) -> ckpt_status;
    pub fn ckpt_chain_to_json(chain: *const ckpt_chain, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_plan_from_json(text: *const c_char, text_bytes: usize, source_name: *const c_char, chain: *const ckpt_chain, out_plan: *mut *mut ckpt_plan) -> ckpt_status;
    pub fn ckpt_plan_to_json(plan: *const ckpt_plan, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_plan_to_schedule_json(plan: *const ckpt_plan, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_schedule_to_json(schedule: *mut ckpt_schedule, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_plan_to_trace_json(plan: *const ckpt_plan, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_trace_create(event_limit: usize, out_trace: *mut *mut ckpt_trace) -> ckpt_status;
    pub fn ckpt_trace_destroy(trace: *mut ckpt_trace);
    pub fn ckpt_trace_attach(trace: *mut ckpt_trace, tape: *mut ckpt_tape) -> ckpt_status;
    pub fn ckpt_trace_clear(trace: *mut ckpt_trace) -> ckpt_status;
    pub fn ckpt_trace_to_json(trace: *const ckpt_trace, chain: *const ckpt_chain, out_text: *mut *mut c_char) -> ckpt_status;
    pub fn ckpt_pack(desc: *const ckpt_pack_desc, out_offsets: *mut usize, out_result: *mut ckpt_pack_result) -> ckpt_status;
    pub fn ckpt_recompute_name(policy: u32) -> *const c_char;
    pub fn ckpt_estimate_rank(model: *const ckpt_model_desc, layout: *const ckpt_layout_desc, hardware: *const ckpt_hardware_desc, policy: u32, rank: u64, budget_bytes: usize, out_estimate: *mut ckpt_estimate) -> ckpt_status;
    pub fn ckpt_estimate_chain(model: *const ckpt_model_desc, layout: *const ckpt_layout_desc, hardware: *const ckpt_hardware_desc, rank: u64, chunk: u64, alignment_bytes: usize, out_chain: *mut *mut ckpt_chain) -> ckpt_status;
}

#[cfg(feature = "ops")]
extern "C" {
    pub fn ckpt_ops_create(desc: *const ckpt_ops_desc, out_ops: *mut *mut ckpt_ops) -> ckpt_status;
    pub fn ckpt_ops_destroy(ops: *mut ckpt_ops);
    pub fn ckpt_ops_get_info(ops: *const ckpt_ops, out_info: *mut ckpt_ops_info) -> ckpt_status;
    pub fn ckpt_ops_check(ops: *mut ckpt_ops) -> ckpt_status;
    pub fn ckpt_ops_last_error() -> *const c_char;
    pub fn ckpt_ops_embedding_forward(ops: *mut ckpt_ops, tokens: *const i32, token_table: *const c_void, position_table: *const c_void, batch: usize, sequence: usize, channels: usize, vocabulary: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_embedding_backward(ops: *mut ckpt_ops, tokens: *const i32, out_grad: *const c_void, batch: usize, sequence: usize, channels: usize, vocabulary: usize, token_grad: *mut f32, position_grad: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_linear_forward(ops: *mut ckpt_ops, r#in: *const c_void, weight: *const c_void, bias: *const c_void, rows: usize, inputs: usize, outputs: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_linear_residual_forward(ops: *mut ckpt_ops, r#in: *const c_void, weight: *const c_void, bias: *const c_void, residual: *const c_void, dropout_probability: f32, philox: *const ckpt_philox, rows: usize, inputs: usize, outputs: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_linear_backward(ops: *mut ckpt_ops, r#in: *const c_void, weight: *const c_void, out_grad: *const c_void, rows: usize, inputs: usize, outputs: usize, in_grad: *mut c_void, accumulate: u32, weight_grad: *mut f32, bias_grad: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_layernorm_forward(ops: *mut ckpt_ops, r#in: *const c_void, weight: *const c_void, bias: *const c_void, rows: usize, channels: usize, epsilon: f32, out: *mut c_void, mean: *mut f32, rstd: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_layernorm_backward(ops: *mut ckpt_ops, r#in: *const c_void, mean: *const f32, rstd: *const f32, weight: *const c_void, out_grad: *const c_void, residual_grad: *const c_void, rows: usize, channels: usize, in_grad: *mut c_void, accumulate: u32, weight_grad: *mut f32, bias_grad: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_gelu_forward(ops: *mut ckpt_ops, r#in: *const c_void, bias: *const c_void, rows: usize, columns: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_gelu_backward(ops: *mut ckpt_ops, r#in: *const c_void, bias: *const c_void, out_grad: *const c_void, rows: usize, columns: usize, in_grad: *mut c_void, accumulate: u32, bias_grad: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_attention_forward(ops: *mut ckpt_ops, qkv: *const c_void, batch: usize, sequence: usize, heads: usize, channels: usize, dropout_probability: f32, philox: *const ckpt_philox, weights: *mut c_void, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_attention_backward(ops: *mut ckpt_ops, qkv: *const c_void, weights: *const c_void, out_grad: *const c_void, batch: usize, sequence: usize, heads: usize, channels: usize, dropout_probability: f32, philox: *const ckpt_philox, qkv_grad: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_attention_tiled_forward(ops: *mut ckpt_ops, qkv: *const c_void, batch: usize, sequence: usize, heads: usize, channels: usize, dropout_probability: f32, philox: *const ckpt_philox, lse: *mut f32, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_attention_tiled_backward(ops: *mut ckpt_ops, qkv: *const c_void, out: *const c_void, lse: *const f32, out_grad: *const c_void, batch: usize, sequence: usize, heads: usize, channels: usize, dropout_probability: f32, philox: *const ckpt_philox, qkv_grad: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_dropout_forward(ops: *mut ckpt_ops, r#in: *const c_void, residual: *const c_void, probability: f32, philox: *const ckpt_philox, count: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_dropout_backward(ops: *mut ckpt_ops, out_grad: *const c_void, probability: f32, philox: *const ckpt_philox, count: usize, in_grad: *mut c_void, accumulate: u32) -> ckpt_status;
    pub fn ckpt_ops_add(ops: *mut ckpt_ops, a: *const c_void, b: *const c_void, count: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_cross_entropy_forward(ops: *mut ckpt_ops, logits: *const c_void, targets: *const i32, rows: usize, vocabulary: usize, ignore_index: i32, lse: *mut f32, out_loss: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_cross_entropy_backward(ops: *mut ckpt_ops, logits: *const c_void, targets: *const i32, lse: *const f32, rows: usize, vocabulary: usize, ignore_index: i32, loss_grad: f32, logits_grad: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_norm(ops: *mut ckpt_ops, values: *const f32, count: usize, out_norm: *mut f64) -> ckpt_status;
    pub fn ckpt_ops_adamw(ops: *mut ckpt_ops, desc: *const ckpt_adamw_desc, count: usize, grads: *const f32, parameters: *mut c_void, first_moment: *mut f32, second_moment: *mut f32) -> ckpt_status;
    pub fn ckpt_ops_normal(ops: *mut ckpt_ops, philox: *const ckpt_philox, mean: f32, stddev: f32, count: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_from_float(ops: *mut ckpt_ops, r#in: *const f32, count: usize, out: *mut c_void) -> ckpt_status;
    pub fn ckpt_ops_to_float(ops: *mut ckpt_ops, r#in: *const c_void, count: usize, out: *mut f32) -> ckpt_status;
    pub fn ckpt_layer_embedding_create(ops: *mut ckpt_ops, desc: *const ckpt_layer_embedding_desc, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_block_create(ops: *mut ckpt_ops, desc: *const ckpt_layer_block_desc, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_head_create(ops: *mut ckpt_ops, desc: *const ckpt_layer_head_desc, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_loss(layer: *const ckpt_layer) -> *const f32;
    pub fn ckpt_layer_linear_create(ops: *mut ckpt_ops, rows: usize, inputs: usize, outputs: usize, bias: u32, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_layernorm_create(ops: *mut ckpt_ops, rows: usize, channels: usize, epsilon: f32, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_gelu_create(ops: *mut ckpt_ops, count: usize, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_dropout_create(ops: *mut ckpt_ops, count: usize, probability: f32, out_layer: *mut *mut ckpt_layer) -> ckpt_status;
    pub fn ckpt_layer_destroy(layer: *mut ckpt_layer);
    pub fn ckpt_layer_parameter_count(layer: *const ckpt_layer) -> usize;
    pub fn ckpt_layer_tensor_count(layer: *const ckpt_layer) -> u32;
    pub fn ckpt_layer_get_tensor(layer: *const ckpt_layer, index: u32, out_info: *mut ckpt_tensor_info) -> ckpt_status;
    pub fn ckpt_layer_bind(layer: *mut ckpt_layer, parameters: *mut c_void, gradients: *mut f32) -> ckpt_status;
    pub fn ckpt_layer_bind_tied(layer: *mut ckpt_layer, weight: *const c_void, weight_grad: *mut f32) -> ckpt_status;
    pub fn ckpt_layer_init(layer: *mut ckpt_layer, seed: u64, first_tensor: u64) -> ckpt_status;
    pub fn ckpt_layer_segment(layer: *const ckpt_layer) -> *const ckpt_segment;
    pub fn ckpt_layer_user(layer: *mut ckpt_layer, flags: u32) -> *mut c_void;
    pub fn ckpt_layer_run(layer: *mut ckpt_layer, tape: *mut ckpt_tape, inputs: *const ckpt_buffer, input_count: u32, flags: u32, out_output: *mut ckpt_buffer) -> ckpt_status;
    pub fn ckpt_gpt_create(ops: *mut ckpt_ops, desc: *const ckpt_gpt_desc, out_gpt: *mut *mut ckpt_gpt) -> ckpt_status;
    pub fn ckpt_gpt_destroy(gpt: *mut ckpt_gpt);
    pub fn ckpt_gpt_parameter_count(gpt: *const ckpt_gpt) -> usize;
    pub fn ckpt_gpt_tensor_count(gpt: *const ckpt_gpt) -> u32;
    pub fn ckpt_gpt_get_tensor(gpt: *const ckpt_gpt, index: u32, out_info: *mut ckpt_tensor_info) -> ckpt_status;
    pub fn ckpt_gpt_bind(gpt: *mut ckpt_gpt, parameters: *mut c_void, gradients: *mut f32) -> ckpt_status;
    pub fn ckpt_gpt_init(gpt: *mut ckpt_gpt, seed: u64) -> ckpt_status;
    pub fn ckpt_gpt_record(gpt: *mut ckpt_gpt, tape: *mut ckpt_tape, tokens: *const i32, targets: *const i32, flags: u32, out_loss: *mut ckpt_buffer) -> ckpt_status;
    pub fn ckpt_gpt_loss(gpt: *const ckpt_gpt) -> *const f32;
    pub fn ckpt_gpt_update(gpt: *mut ckpt_gpt, desc: *const ckpt_adamw_desc, first_moment: *mut f32, second_moment: *mut f32, out_norm: *mut f64) -> ckpt_status;
}

/// Name and address of each function of the public headers.
pub fn functions() -> Vec<(&'static str, *const c_void)> {
    #[allow(unused_mut)]
    let mut all = vec![
        ("ckpt_last_error", ckpt_last_error as *const c_void),
        ("ckpt_last_status", ckpt_last_status as *const c_void),
        ("ckpt_status_name", ckpt_status_name as *const c_void),
        ("ckpt_version", ckpt_version as *const c_void),
        ("ckpt_version_string", ckpt_version_string as *const c_void),
        ("ckpt_device_open", ckpt_device_open as *const c_void),
        ("ckpt_device_close", ckpt_device_close as *const c_void),
        ("ckpt_device_get_info", ckpt_device_get_info as *const c_void),
        ("ckpt_device_synchronize", ckpt_device_synchronize as *const c_void),
        ("ckpt_device_copy", ckpt_device_copy as *const c_void),
        ("ckpt_device_fill", ckpt_device_fill as *const c_void),
        ("ckpt_device_stream_create", ckpt_device_stream_create as *const c_void),
        ("ckpt_device_stream_destroy", ckpt_device_stream_destroy as *const c_void),
        ("ckpt_device_host_alloc", ckpt_device_host_alloc as *const c_void),
        ("ckpt_device_host_free", ckpt_device_host_free as *const c_void),
        ("ckpt_device_capture_begin", ckpt_device_capture_begin as *const c_void),
        ("ckpt_device_capture_end", ckpt_device_capture_end as *const c_void),
        ("ckpt_graph_launch", ckpt_graph_launch as *const c_void),
        ("ckpt_graph_destroy", ckpt_graph_destroy as *const c_void),
        ("ckpt_device_interface", ckpt_device_interface as *const c_void),
        ("ckpt_arena_create", ckpt_arena_create as *const c_void),
        ("ckpt_arena_destroy", ckpt_arena_destroy as *const c_void),
        ("ckpt_arena_alloc", ckpt_arena_alloc as *const c_void),
        ("ckpt_arena_free", ckpt_arena_free as *const c_void),
        ("ckpt_arena_check", ckpt_arena_check as *const c_void),
        ("ckpt_arena_get_stats", ckpt_arena_get_stats as *const c_void),
        ("ckpt_arena_reset_stats", ckpt_arena_reset_stats as *const c_void),
        ("ckpt_strategy_parse", ckpt_strategy_parse as *const c_void),
        ("ckpt_strategy_name", ckpt_strategy_name as *const c_void),
        ("ckpt_chain_create", ckpt_chain_create as *const c_void),
        ("ckpt_chain_destroy", ckpt_chain_destroy as *const c_void),
        ("ckpt_chain_hash", ckpt_chain_hash as *const c_void),
        ("ckpt_chain_segment_count", ckpt_chain_segment_count as *const c_void),
        ("ckpt_class_parse", ckpt_class_parse as *const c_void),
        ("ckpt_class_name", ckpt_class_name as *const c_void),
        ("ckpt_plan_create", ckpt_plan_create as *const c_void),
        ("ckpt_plan_destroy", ckpt_plan_destroy as *const c_void),
        ("ckpt_plan_minimum_budget", ckpt_plan_minimum_budget as *const c_void),
        ("ckpt_plan_get_summary", ckpt_plan_get_summary as *const c_void),
        ("ckpt_plan_hash", ckpt_plan_hash as *const c_void),
        ("ckpt_plan_get_actions", ckpt_plan_get_actions as *const c_void),
        ("ckpt_plan_from_actions", ckpt_plan_from_actions as *const c_void),
        ("ckpt_plan_get_placements", ckpt_plan_get_placements as *const c_void),
        ("ckpt_plan_curve", ckpt_plan_curve as *const c_void),
        ("ckpt_plan_explain", ckpt_plan_explain as *const c_void),
        ("ckpt_program_verify", ckpt_program_verify as *const c_void),
        ("ckpt_philox_pack", ckpt_philox_pack as *const c_void),
        ("ckpt_philox_block", ckpt_philox_block as *const c_void),
        ("ckpt_philox_u32", ckpt_philox_u32 as *const c_void),
        ("ckpt_philox_uniform", ckpt_philox_uniform as *const c_void),
        ("ckpt_philox_normal", ckpt_philox_normal as *const c_void),
        ("ckpt_philox_bernoulli", ckpt_philox_bernoulli as *const c_void),
        ("ckpt_device_philox_u32", ckpt_device_philox_u32 as *const c_void),
        ("ckpt_device_philox_uniform", ckpt_device_philox_uniform as *const c_void),
        ("ckpt_device_philox_normal", ckpt_device_philox_normal as *const c_void),
        ("ckpt_device_philox_bernoulli", ckpt_device_philox_bernoulli as *const c_void),
        ("ckpt_philox_threshold", ckpt_philox_threshold as *const c_void),
        ("ckpt_rng_create", ckpt_rng_create as *const c_void),
        ("ckpt_rng_destroy", ckpt_rng_destroy as *const c_void),
        ("ckpt_rng_snapshot", ckpt_rng_snapshot as *const c_void),
        ("ckpt_rng_restore", ckpt_rng_restore as *const c_void),
        ("ckpt_rng_advance", ckpt_rng_advance as *const c_void),
        ("ckpt_revolve_extra_forwards", ckpt_revolve_extra_forwards as *const c_void),
        ("ckpt_schedule_revolve", ckpt_schedule_revolve as *const c_void),
        ("ckpt_schedule_destroy", ckpt_schedule_destroy as *const c_void),
        ("ckpt_schedule_next", ckpt_schedule_next as *const c_void),
        ("ckpt_segment_create", ckpt_segment_create as *const c_void),
        ("ckpt_segment_destroy", ckpt_segment_destroy as *const c_void),
        ("ckpt_tape_create", ckpt_tape_create as *const c_void),
        ("ckpt_tape_destroy", ckpt_tape_destroy as *const c_void),
        ("ckpt_tape_set_step", ckpt_tape_set_step as *const c_void),
        ("ckpt_tape_get_step", ckpt_tape_get_step as *const c_void),
        ("ckpt_tape_begin", ckpt_tape_begin as *const c_void),
        ("ckpt_tape_input", ckpt_tape_input as *const c_void),
        ("ckpt_segment_begin", ckpt_segment_begin as *const c_void),
        ("ckpt_segment_end", ckpt_segment_end as *const c_void),
        ("ckpt_segment_run", ckpt_segment_run as *const c_void),
        ("ckpt_tape_release", ckpt_tape_release as *const c_void),
        ("ckpt_tape_read", ckpt_tape_read as *const c_void),
        ("ckpt_tape_reset", ckpt_tape_reset as *const c_void),
        ("ckpt_backward", ckpt_backward as *const c_void),
        ("ckpt_tape_detach", ckpt_tape_detach as *const c_void),
        ("ckpt_recording_backward", ckpt_recording_backward as *const c_void),
        ("ckpt_recording_read", ckpt_recording_read as *const c_void),
        ("ckpt_recording_destroy", ckpt_recording_destroy as *const c_void),
        ("ckpt_tape_chain", ckpt_tape_chain as *const c_void),
        ("ckpt_tape_plan", ckpt_tape_plan as *const c_void),
        ("ckpt_tape_adopt", ckpt_tape_adopt as *const c_void),
        ("ckpt_tape_prepare", ckpt_tape_prepare as *const c_void),
        ("ckpt_tape_replay", ckpt_tape_replay as *const c_void),
        ("ckpt_tape_get_stats", ckpt_tape_get_stats as *const c_void),
        ("ckpt_tape_set_trace", ckpt_tape_set_trace as *const c_void),
        ("ckpt_frame_needs", ckpt_frame_needs as *const c_void),
        ("ckpt_frame_needs_output", ckpt_frame_needs_output as *const c_void),
        ("ckpt_frame_slot", ckpt_frame_slot as *const c_void),
        ("ckpt_frame_output", ckpt_frame_output as *const c_void),
        ("ckpt_frame_input", ckpt_frame_input as *const c_void),
        ("ckpt_frame_output_grad", ckpt_frame_output_grad as *const c_void),
        ("ckpt_frame_input_grad", ckpt_frame_input_grad as *const c_void),
        ("ckpt_frame_scratch", ckpt_frame_scratch as *const c_void),
        ("ckpt_frame_bytes", ckpt_frame_bytes as *const c_void),
        ("ckpt_frame_random", ckpt_frame_random as *const c_void),
        ("ckpt_frame_is_recompute", ckpt_frame_is_recompute as *const c_void),
        ("ckpt_frame_is_backward", ckpt_frame_is_backward as *const c_void),
        ("ckpt_frame_is_dry", ckpt_frame_is_dry as *const c_void),
        ("ckpt_frame_index", ckpt_frame_index as *const c_void),
        ("ckpt_frame_step", ckpt_frame_step as *const c_void),
        ("ckpt_frame_stream", ckpt_frame_stream as *const c_void),
        ("ckpt_frame_user", ckpt_frame_user as *const c_void),
        ("ckpt_frame_fail", ckpt_frame_fail as *const c_void),
        ("ckpt_text_free", ckpt_text_free as *const c_void),
        ("ckpt_chain_from_json", ckpt_chain_from_json as *const c_void),
        ("ckpt_chain_to_json", ckpt_chain_to_json as *const c_void),
        ("ckpt_plan_from_json", ckpt_plan_from_json as *const c_void),
        ("ckpt_plan_to_json", ckpt_plan_to_json as *const c_void),
        ("ckpt_plan_to_schedule_json", ckpt_plan_to_schedule_json as *const c_void),
        ("ckpt_schedule_to_json", ckpt_schedule_to_json as *const c_void),
        ("ckpt_plan_to_trace_json", ckpt_plan_to_trace_json as *const c_void),
        ("ckpt_trace_create", ckpt_trace_create as *const c_void),
        ("ckpt_trace_destroy", ckpt_trace_destroy as *const c_void),
        ("ckpt_trace_attach", ckpt_trace_attach as *const c_void),
        ("ckpt_trace_clear", ckpt_trace_clear as *const c_void),
        ("ckpt_trace_to_json", ckpt_trace_to_json as *const c_void),
        ("ckpt_pack", ckpt_pack as *const c_void),
        ("ckpt_recompute_name", ckpt_recompute_name as *const c_void),
        ("ckpt_estimate_rank", ckpt_estimate_rank as *const c_void),
        ("ckpt_estimate_chain", ckpt_estimate_chain as *const c_void),
    ];
    #[cfg(feature = "ops")]
    all.extend_from_slice(&[
        ("ckpt_ops_create", ckpt_ops_create as *const c_void),
        ("ckpt_ops_destroy", ckpt_ops_destroy as *const c_void),
        ("ckpt_ops_get_info", ckpt_ops_get_info as *const c_void),
        ("ckpt_ops_check", ckpt_ops_check as *const c_void),
        ("ckpt_ops_last_error", ckpt_ops_last_error as *const c_void),
        ("ckpt_ops_embedding_forward", ckpt_ops_embedding_forward as *const c_void),
        ("ckpt_ops_embedding_backward", ckpt_ops_embedding_backward as *const c_void),
        ("ckpt_ops_linear_forward", ckpt_ops_linear_forward as *const c_void),
        ("ckpt_ops_linear_residual_forward", ckpt_ops_linear_residual_forward as *const c_void),
        ("ckpt_ops_linear_backward", ckpt_ops_linear_backward as *const c_void),
        ("ckpt_ops_layernorm_forward", ckpt_ops_layernorm_forward as *const c_void),
        ("ckpt_ops_layernorm_backward", ckpt_ops_layernorm_backward as *const c_void),
        ("ckpt_ops_gelu_forward", ckpt_ops_gelu_forward as *const c_void),
        ("ckpt_ops_gelu_backward", ckpt_ops_gelu_backward as *const c_void),
        ("ckpt_ops_attention_forward", ckpt_ops_attention_forward as *const c_void),
        ("ckpt_ops_attention_backward", ckpt_ops_attention_backward as *const c_void),
        ("ckpt_ops_attention_tiled_forward", ckpt_ops_attention_tiled_forward as *const c_void),
        ("ckpt_ops_attention_tiled_backward", ckpt_ops_attention_tiled_backward as *const c_void),
        ("ckpt_ops_dropout_forward", ckpt_ops_dropout_forward as *const c_void),
        ("ckpt_ops_dropout_backward", ckpt_ops_dropout_backward as *const c_void),
        ("ckpt_ops_add", ckpt_ops_add as *const c_void),
        ("ckpt_ops_cross_entropy_forward", ckpt_ops_cross_entropy_forward as *const c_void),
        ("ckpt_ops_cross_entropy_backward", ckpt_ops_cross_entropy_backward as *const c_void),
        ("ckpt_ops_norm", ckpt_ops_norm as *const c_void),
        ("ckpt_ops_adamw", ckpt_ops_adamw as *const c_void),
        ("ckpt_ops_normal", ckpt_ops_normal as *const c_void),
        ("ckpt_ops_from_float", ckpt_ops_from_float as *const c_void),
        ("ckpt_ops_to_float", ckpt_ops_to_float as *const c_void),
        ("ckpt_layer_embedding_create", ckpt_layer_embedding_create as *const c_void),
        ("ckpt_layer_block_create", ckpt_layer_block_create as *const c_void),
        ("ckpt_layer_head_create", ckpt_layer_head_create as *const c_void),
        ("ckpt_layer_loss", ckpt_layer_loss as *const c_void),
        ("ckpt_layer_linear_create", ckpt_layer_linear_create as *const c_void),
        ("ckpt_layer_layernorm_create", ckpt_layer_layernorm_create as *const c_void),
        ("ckpt_layer_gelu_create", ckpt_layer_gelu_create as *const c_void),
        ("ckpt_layer_dropout_create", ckpt_layer_dropout_create as *const c_void),
        ("ckpt_layer_destroy", ckpt_layer_destroy as *const c_void),
        ("ckpt_layer_parameter_count", ckpt_layer_parameter_count as *const c_void),
        ("ckpt_layer_tensor_count", ckpt_layer_tensor_count as *const c_void),
        ("ckpt_layer_get_tensor", ckpt_layer_get_tensor as *const c_void),
        ("ckpt_layer_bind", ckpt_layer_bind as *const c_void),
        ("ckpt_layer_bind_tied", ckpt_layer_bind_tied as *const c_void),
        ("ckpt_layer_init", ckpt_layer_init as *const c_void),
        ("ckpt_layer_segment", ckpt_layer_segment as *const c_void),
        ("ckpt_layer_user", ckpt_layer_user as *const c_void),
        ("ckpt_layer_run", ckpt_layer_run as *const c_void),
        ("ckpt_gpt_create", ckpt_gpt_create as *const c_void),
        ("ckpt_gpt_destroy", ckpt_gpt_destroy as *const c_void),
        ("ckpt_gpt_parameter_count", ckpt_gpt_parameter_count as *const c_void),
        ("ckpt_gpt_tensor_count", ckpt_gpt_tensor_count as *const c_void),
        ("ckpt_gpt_get_tensor", ckpt_gpt_get_tensor as *const c_void),
        ("ckpt_gpt_bind", ckpt_gpt_bind as *const c_void),
        ("ckpt_gpt_init", ckpt_gpt_init as *const c_void),
        ("ckpt_gpt_record", ckpt_gpt_record as *const c_void),
        ("ckpt_gpt_loss", ckpt_gpt_loss as *const c_void),
        ("ckpt_gpt_update", ckpt_gpt_update as *const c_void),
    ]);
    all
}

/// What bindings/layouts/layouts.c prints, as this language sees it: a test compares the two.
pub fn layouts() -> String {
    fn push_bytes(text: &mut String, data: *const u8, count: usize) {
        for k in 0..count {
            text.push_str(&format!("{:02x}", unsafe { *data.add(k) }));
        }
    }
    fn size_of_field<T>(_: *const T) -> usize {
        std::mem::size_of::<T>()
    }
    macro_rules! layout {
        ($text:ident, $struct:ident, $init:expr, $last:expr, $($field:ident),*) => {{
            let value = $struct::default();
            let base = &value as *const $struct as usize;
            $text.push_str(&format!("\"{}\": {{\"size\": {}, \"fields\": {{", stringify!($struct), std::mem::size_of::<$struct>()));
            let mut comma = "";
            $({
                let field = std::ptr::addr_of!(value.$field);
                let name = stringify!($field).trim_start_matches("r#");
                $text.push_str(&format!("{}\"{}\": [{}, {}]", comma, name, field as usize - base, size_of_field(field)));
                comma = ", ";
            })*
            let _ = comma;
            $text.push('}');
            if $init {
                $text.push_str(", \"init\": \"");
                push_bytes(&mut $text, base as *const u8, std::mem::size_of::<$struct>());
                $text.push('"');
            }
            $text.push_str(if $last { "}\n" } else { "},\n" });
        }};
    }
    let mut text = String::from("{\"structs\": {\n");
    layout!(text, ckpt_device_info, false, false,
        struct_size, kind, index, thread_count, total_bytes, available_bytes, name);
    layout!(text, ckpt_arena_desc, true, false,
        struct_size, flags, capacity_bytes, alignment_bytes, stream, slab, alloc, free, user, release);
    layout!(text, ckpt_arena_stats, false, false,
        struct_size, block_count, in_use_bytes, peak_in_use_bytes, height_bytes, capacity_bytes, largest_free_bytes, alloc_count, free_count, failed_count);
    layout!(text, ckpt_slot, false, false,
        name, bytes, reads, read_count, group, cost_seconds, flags, reserved);
    layout!(text, ckpt_output, false, false,
        name, bytes, grad_bytes, reads, read_count, group, memory, cost_seconds, flags, in_place_input);
    layout!(text, ckpt_chain_segment, false, false,
        name, forward_seconds, backward_seconds, slots, outputs, inputs, input_flags, slot_count, output_count, input_count, flags, forward_scratch_bytes, backward_scratch_bytes);
    layout!(text, ckpt_chain_input, false, false,
        bytes, grad_bytes, memory, grad);
    layout!(text, ckpt_chain_desc, false, false,
        struct_size, segment_size, slot_size, output_size, inputs, segments, input_count, segment_count, output_grad, flags, alignment_bytes);
    layout!(text, ckpt_plan_desc, true, false,
        struct_size, strategy, k, in_flight_count, keep_patterns, recompute_patterns, keep_pattern_count, recompute_pattern_count, budget_bytes, work_limit, plan_class, reserved);
    layout!(text, ckpt_plan_summary, false, false,
        struct_size, strategy, k, action_count, hash, budget_bytes, peak_bytes, arena_bytes, held_bytes, forward_seconds, backward_seconds, recompute_seconds, recompute_count, minimum_budget_bytes, class_gap_seconds, universal_gap_seconds, plan_seconds, work, status, plan_class, placement_count, reserved);
    layout!(text, ckpt_action, false, false,
        kind, index, slots, outputs);
    layout!(text, ckpt_placement, false, false,
        what, index, item, is_recompute, first_action, end_action, bytes, offset);
    layout!(text, ckpt_curve_point, false, false,
        budget_bytes, peak_bytes, seconds, recompute_seconds, class_gap_seconds, universal_gap_seconds, status, reserved);
    layout!(text, ckpt_explanation, false, false,
        what, index, item, kept, because, reserved, bytes, seconds_change, peak_change);
    layout!(text, ckpt_philox, false, false,
        seed, subsequence, offset, step_word);
    layout!(text, ckpt_schedule_action, false, false,
        kind, snapshot, first, last);
    layout!(text, ckpt_segment_desc, true, false,
        struct_size, slot_size, output_size, flags, name, forward, backward, slots, outputs, input_flags, slot_count, output_count, input_count, reserved, forward_scratch_bytes, backward_scratch_bytes, save_state, restore_state, state_bytes);
    layout!(text, ckpt_watch, false, false,
        name, data, bytes);
    layout!(text, ckpt_call, true, false,
        struct_size, input_count, user, release, inputs, slot_bytes, output_bytes, watch, watch_count, reserved);
    layout!(text, ckpt_tape_desc, true, false,
        struct_size, checks, arena, budget_bytes, seed, strategy, strategy_k, keep_patterns, recompute_patterns, keep_pattern_count, recompute_pattern_count, in_flight_count, replan);
    layout!(text, ckpt_input_desc, true, false,
        struct_size, flags, data, bytes, grad, grad_bytes);
    layout!(text, ckpt_tape_stats, false, false,
        struct_size, strategy, strategy_k, planned, step, segment_count, forward_count, recompute_count, backward_done, skipped_count, thinned_count, plan_count, plan_hit_count, budget_bytes, peak_predicted_bytes, peak_measured_bytes, arena_predicted_bytes, arena_measured_bytes, held_bytes, minimum_budget_bytes, recompute_seconds, forward_seconds, backward_seconds, predicted_recompute_seconds);
    layout!(text, ckpt_pack_buffer, false, false,
        lower, upper, bytes);
    layout!(text, ckpt_pack_desc, true, false,
        struct_size, buffer_size, buffers, buffer_count, alignment_bytes, capacity_bytes, work_limit);
    layout!(text, ckpt_pack_result, false, false,
        struct_size, proved, lower_bound_bytes, height_bytes, work);
    layout!(text, ckpt_model_desc, true, false,
        struct_size, activation, attention, flags, element_bytes, reserved, layers, hidden, heads, kv_heads, head_size, ffn, sequence, micro_batch, vocabulary);
    layout!(text, ckpt_layout_desc, true, false,
        struct_size, flags, tensor_parallel, context_parallel, pipeline, virtual_pipeline, micro_batches);
    layout!(text, ckpt_hardware_desc, true, false,
        struct_size, reserved, flops_per_second, bytes_per_second);
    layout!(text, ckpt_estimate, false, false,
        struct_size, policy, layer_bytes, chunk_layers, in_flight, layers_in_flight, outside_bytes, activation_bytes, peak_bytes, arena_bytes, minimum_budget_bytes, forward_flops, backward_flops, recompute_flops, replay_flops, model_flops, forward_seconds, backward_seconds, recompute_seconds, offload_bytes_per_second);
    layout!(text, ckpt_ops_desc, true, false,
        struct_size, thread_count, isa, dtype, device, stream);
    layout!(text, ckpt_ops_info, false, false,
        struct_size, thread_count, isa, blas, dtype, device_kind);
    layout!(text, ckpt_adamw_desc, true, false,
        struct_size, learning_rate, beta1, beta2, epsilon, weight_decay, max_norm, grad_scale, step, master_weights);
    layout!(text, ckpt_tensor_info, false, false,
        struct_size, decays, offset, count, rows, columns, init_mean, init_stddev, name);
    layout!(text, ckpt_layer_embedding_desc, true, false,
        struct_size, dropout_probability, batch, sequence, channels, vocabulary);
    layout!(text, ckpt_layer_block_desc, true, false,
        struct_size, attention, batch, sequence, channels, heads, hidden, dropout_probability, attention_dropout_probability, epsilon, residual_stddev);
    layout!(text, ckpt_layer_head_desc, true, false,
        struct_size, tied, rows, channels, vocabulary, chunk_rows, loss, ignore_index, epsilon);
    layout!(text, ckpt_gpt_desc, true, true,
        struct_size, attention, layers, heads, channels, sequence, batch, vocabulary, head_chunk_rows, dropout_probability, untied);
    text.push_str("},\n\"constants\": {\n");
    let constants: &[(&str, i64)] = &[
        ("CKPT_VERSION_MAJOR", CKPT_VERSION_MAJOR as i64),
        ("CKPT_VERSION_MINOR", CKPT_VERSION_MINOR as i64),
        ("CKPT_VERSION_PATCH", CKPT_VERSION_PATCH as i64),
        ("CKPT_OK", CKPT_OK as i64),
        ("CKPT_ERROR_INVALID_ARGUMENT", CKPT_ERROR_INVALID_ARGUMENT as i64),
        ("CKPT_ERROR_STRUCT_SIZE", CKPT_ERROR_STRUCT_SIZE as i64),
        ("CKPT_ERROR_OUT_OF_MEMORY", CKPT_ERROR_OUT_OF_MEMORY as i64),
        ("CKPT_ERROR_BUDGET", CKPT_ERROR_BUDGET as i64),
        ("CKPT_ERROR_BUSY", CKPT_ERROR_BUSY as i64),
        ("CKPT_ERROR_STALE", CKPT_ERROR_STALE as i64),
        ("CKPT_ERROR_STATE", CKPT_ERROR_STATE as i64),
        ("CKPT_ERROR_NOT_FILLED", CKPT_ERROR_NOT_FILLED as i64),
        ("CKPT_ERROR_CHECK", CKPT_ERROR_CHECK as i64),
        ("CKPT_ERROR_OVERFLOW", CKPT_ERROR_OVERFLOW as i64),
        ("CKPT_ERROR_NOT_FOUND", CKPT_ERROR_NOT_FOUND as i64),
        ("CKPT_ERROR_CONFLICT", CKPT_ERROR_CONFLICT as i64),
        ("CKPT_ERROR_DEVICE", CKPT_ERROR_DEVICE as i64),
        ("CKPT_ERROR_CAPTURE", CKPT_ERROR_CAPTURE as i64),
        ("CKPT_ERROR_UNSUPPORTED", CKPT_ERROR_UNSUPPORTED as i64),
        ("CKPT_ERROR_INVALID_PLAN", CKPT_ERROR_INVALID_PLAN as i64),
        ("CKPT_ERROR_INTERNAL", CKPT_ERROR_INTERNAL as i64),
        ("CKPT_DEVICE_KIND_CPU", CKPT_DEVICE_KIND_CPU as i64),
        ("CKPT_DEVICE_KIND_CUDA", CKPT_DEVICE_KIND_CUDA as i64),
        ("CKPT_COPY_HOST_TO_DEVICE", CKPT_COPY_HOST_TO_DEVICE as i64),
        ("CKPT_COPY_DEVICE_TO_HOST", CKPT_COPY_DEVICE_TO_HOST as i64),
        ("CKPT_COPY_DEVICE_TO_DEVICE", CKPT_COPY_DEVICE_TO_DEVICE as i64),
        ("CKPT_ARENA_GUARD", CKPT_ARENA_GUARD as i64),
        ("CKPT_ARENA_POISON", CKPT_ARENA_POISON as i64),
        ("CKPT_ARENA_PLAIN", CKPT_ARENA_PLAIN as i64),
        ("CKPT_ARENA_HIGH", CKPT_ARENA_HIGH as i64),
        ("CKPT_SLOT_TRANSIENT", CKPT_SLOT_TRANSIENT as i64),
        ("CKPT_SLOT_KEEP", CKPT_SLOT_KEEP as i64),
        ("CKPT_SLOT_RECOMPUTE", CKPT_SLOT_RECOMPUTE as i64),
        ("CKPT_SLOT_COST_GIVEN", CKPT_SLOT_COST_GIVEN as i64),
        ("CKPT_SLOT_CONSUMED", CKPT_SLOT_CONSUMED as i64),
        ("CKPT_SLOT_ALONE", CKPT_SLOT_ALONE as i64),
        ("CKPT_OUTPUT_NO_GRAD", CKPT_OUTPUT_NO_GRAD as i64),
        ("CKPT_OUTPUT_KEEP", CKPT_OUTPUT_KEEP as i64),
        ("CKPT_OUTPUT_BACKWARD_READS", CKPT_OUTPUT_BACKWARD_READS as i64),
        ("CKPT_OUTPUT_COST_GIVEN", CKPT_OUTPUT_COST_GIVEN as i64),
        ("CKPT_INPUT_BACKWARD_IGNORES", CKPT_INPUT_BACKWARD_IGNORES as i64),
        ("CKPT_INPUT_NO_GRAD", CKPT_INPUT_NO_GRAD as i64),
        ("CKPT_INPUT_GRAD_OVER_OUTPUT_0", CKPT_INPUT_GRAD_OVER_OUTPUT_0 as i64),
        ("CKPT_STRATEGY_AUTO", CKPT_STRATEGY_AUTO as i64),
        ("CKPT_STRATEGY_STORE_ALL", CKPT_STRATEGY_STORE_ALL as i64),
        ("CKPT_STRATEGY_EVERY_SEGMENT", CKPT_STRATEGY_EVERY_SEGMENT as i64),
        ("CKPT_STRATEGY_SQRT", CKPT_STRATEGY_SQRT as i64),
        ("CKPT_STRATEGY_UNIFORM", CKPT_STRATEGY_UNIFORM as i64),
        ("CKPT_STRATEGY_BLOCK", CKPT_STRATEGY_BLOCK as i64),
        ("CKPT_STRATEGY_FULL", CKPT_STRATEGY_FULL as i64),
        ("CKPT_STRATEGY_SELECTIVE", CKPT_STRATEGY_SELECTIVE as i64),
        ("CKPT_MEMORY_ARENA", CKPT_MEMORY_ARENA as i64),
        ("CKPT_MEMORY_CALLER", CKPT_MEMORY_CALLER as i64),
        ("CKPT_GRAD_NONE", CKPT_GRAD_NONE as i64),
        ("CKPT_GRAD_ARENA", CKPT_GRAD_ARENA as i64),
        ("CKPT_GRAD_CALLER", CKPT_GRAD_CALLER as i64),
        ("CKPT_CHAIN_SEGMENT_WHOLE", CKPT_CHAIN_SEGMENT_WHOLE as i64),
        ("CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT", CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT as i64),
        ("CKPT_CLASS_DEFAULT", CKPT_CLASS_DEFAULT as i64),
        ("CKPT_CLASS_ROTOR", CKPT_CLASS_ROTOR as i64),
        ("CKPT_CLASS_SIGMA", CKPT_CLASS_SIGMA as i64),
        ("CKPT_CLASS_SIGMA_S_W", CKPT_CLASS_SIGMA_S_W as i64),
        ("CKPT_CLASS_SIGMA_S_W_D", CKPT_CLASS_SIGMA_S_W_D as i64),
        ("CKPT_PLAN_OPTIMAL", CKPT_PLAN_OPTIMAL as i64),
        ("CKPT_PLAN_GAP", CKPT_PLAN_GAP as i64),
        ("CKPT_ACTION_FORWARD", CKPT_ACTION_FORWARD as i64),
        ("CKPT_ACTION_BACKWARD", CKPT_ACTION_BACKWARD as i64),
        ("CKPT_ACTION_FREE", CKPT_ACTION_FREE as i64),
        ("CKPT_ACTION_DROP", CKPT_ACTION_DROP as i64),
        ("CKPT_PLAN_MASK_WORDS", CKPT_PLAN_MASK_WORDS as i64),
        ("CKPT_PLACED_SLOT", CKPT_PLACED_SLOT as i64),
        ("CKPT_PLACED_OUTPUT", CKPT_PLACED_OUTPUT as i64),
        ("CKPT_PLACED_INPUT", CKPT_PLACED_INPUT as i64),
        ("CKPT_PLACED_GRAD", CKPT_PLACED_GRAD as i64),
        ("CKPT_PLACED_SCRATCH", CKPT_PLACED_SCRATCH as i64),
        ("CKPT_BECAUSE_MARKED", CKPT_BECAUSE_MARKED as i64),
        ("CKPT_BECAUSE_UNUSED", CKPT_BECAUSE_UNUSED as i64),
        ("CKPT_BECAUSE_ALREADY", CKPT_BECAUSE_ALREADY as i64),
        ("CKPT_BECAUSE_FASTER", CKPT_BECAUSE_FASTER as i64),
        ("CKPT_BECAUSE_BUDGET", CKPT_BECAUSE_BUDGET as i64),
        ("CKPT_BECAUSE_NO_GAIN", CKPT_BECAUSE_NO_GAIN as i64),
        ("CKPT_BECAUSE_SEARCH", CKPT_BECAUSE_SEARCH as i64),
        ("CKPT_SCHEDULE_DONE", CKPT_SCHEDULE_DONE as i64),
        ("CKPT_SCHEDULE_STORE", CKPT_SCHEDULE_STORE as i64),
        ("CKPT_SCHEDULE_RESTORE", CKPT_SCHEDULE_RESTORE as i64),
        ("CKPT_SCHEDULE_ADVANCE", CKPT_SCHEDULE_ADVANCE as i64),
        ("CKPT_SCHEDULE_BACKWARD", CKPT_SCHEDULE_BACKWARD as i64),
        ("CKPT_CHECK_DETERMINISM", CKPT_CHECK_DETERMINISM as i64),
        ("CKPT_CHECK_RECOMPUTE", CKPT_CHECK_RECOMPUTE as i64),
        ("CKPT_CHECK_INPUTS", CKPT_CHECK_INPUTS as i64),
        ("CKPT_REPLAN_AUTO", CKPT_REPLAN_AUTO as i64),
        ("CKPT_REPLAN_NEVER", CKPT_REPLAN_NEVER as i64),
        ("CKPT_TAPE_DRY", CKPT_TAPE_DRY as i64),
        ("CKPT_TAPE_NO_BACKWARD", CKPT_TAPE_NO_BACKWARD as i64),
        ("CKPT_TAPE_INPUT_ACCUMULATE", CKPT_TAPE_INPUT_ACCUMULATE as i64),
        ("CKPT_BACKWARD_RETAIN", CKPT_BACKWARD_RETAIN as i64),
        ("CKPT_FRAME_SLOT", CKPT_FRAME_SLOT as i64),
        ("CKPT_FRAME_OUTPUT", CKPT_FRAME_OUTPUT as i64),
        ("CKPT_FRAME_INPUT", CKPT_FRAME_INPUT as i64),
        ("CKPT_FRAME_OUTPUT_GRAD", CKPT_FRAME_OUTPUT_GRAD as i64),
        ("CKPT_FRAME_INPUT_GRAD", CKPT_FRAME_INPUT_GRAD as i64),
        ("CKPT_FRAME_SCRATCH", CKPT_FRAME_SCRATCH as i64),
        ("CKPT_MODEL_GELU", CKPT_MODEL_GELU as i64),
        ("CKPT_MODEL_SWIGLU", CKPT_MODEL_SWIGLU as i64),
        ("CKPT_MODEL_PLAIN_ATTENTION", CKPT_MODEL_PLAIN_ATTENTION as i64),
        ("CKPT_MODEL_FLASH_ATTENTION", CKPT_MODEL_FLASH_ATTENTION as i64),
        ("CKPT_MODEL_DROPOUT", CKPT_MODEL_DROPOUT as i64),
        ("CKPT_LAYOUT_SEQUENCE_PARALLEL", CKPT_LAYOUT_SEQUENCE_PARALLEL as i64),
        ("CKPT_RECOMPUTE_NONE", CKPT_RECOMPUTE_NONE as i64),
        ("CKPT_RECOMPUTE_ATTENTION", CKPT_RECOMPUTE_ATTENTION as i64),
        ("CKPT_RECOMPUTE_FEED_FORWARD", CKPT_RECOMPUTE_FEED_FORWARD as i64),
        ("CKPT_RECOMPUTE_FULL", CKPT_RECOMPUTE_FULL as i64),
        ("CKPT_RECOMPUTE_OPTIMAL", CKPT_RECOMPUTE_OPTIMAL as i64),
        ("CKPT_ISA_BEST", CKPT_ISA_BEST as i64),
        ("CKPT_ISA_GENERIC", CKPT_ISA_GENERIC as i64),
        ("CKPT_ISA_AVX2", CKPT_ISA_AVX2 as i64),
        ("CKPT_ISA_AVX512", CKPT_ISA_AVX512 as i64),
        ("CKPT_DTYPE_FLOAT32", CKPT_DTYPE_FLOAT32 as i64),
        ("CKPT_DTYPE_BFLOAT16", CKPT_DTYPE_BFLOAT16 as i64),
        ("CKPT_DTYPE_FLOAT16", CKPT_DTYPE_FLOAT16 as i64),
        ("CKPT_ATTENTION_PLAIN", CKPT_ATTENTION_PLAIN as i64),
        ("CKPT_ATTENTION_TILED", CKPT_ATTENTION_TILED as i64),
        ("CKPT_LAYER_EVALUATE", CKPT_LAYER_EVALUATE as i64),
    ];
    for (k, (name, value)) in constants.iter().enumerate() {
        text.push_str(&format!("\"{}\": {}{}\n", name, value, if k + 1 == constants.len() { "" } else { "," }));
    }
    text.push_str("}}\n");
    text
}
