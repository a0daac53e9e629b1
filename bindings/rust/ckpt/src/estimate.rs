use crate::error::{check, text_of, Error, Result};
use crate::plan::Chain;
use crate::sys;
use std::ptr;

pub type ModelDesc = sys::ckpt_model_desc;
pub type LayoutDesc = sys::ckpt_layout_desc;
pub type HardwareDesc = sys::ckpt_hardware_desc;
pub type Estimate = sys::ckpt_estimate;

/// Why there is no estimate; for a budget that is too small, the smallest one that works.
#[derive(Debug)]
pub struct EstimateError {
    pub error: Error,
    pub minimum_budget_bytes: u64,
}

pub fn recompute_name(policy: u32) -> &'static str {
    text_of(unsafe { sys::ckpt_recompute_name(policy) })
}

/// Of one rank of the pipeline. `policy`: `ckpt::sys::CKPT_RECOMPUTE_*`.
pub fn estimate_rank(
    model: &ModelDesc,
    layout: &LayoutDesc,
    hardware: Option<&HardwareDesc>,
    policy: u32,
    rank: u64,
    budget_bytes: usize,
) -> std::result::Result<Estimate, EstimateError> {
    let (model, layout) = (sized!(model, ckpt_model_desc), sized!(layout, ckpt_layout_desc));
    let hardware = hardware.map(|given| sized!(given, ckpt_hardware_desc));
    let hardware = hardware.as_ref().map_or(ptr::null(), |given| given as *const _);
    let mut estimate = Estimate::default();
    match check(unsafe { sys::ckpt_estimate_rank(&model, &layout, hardware, policy, rank, budget_bytes, &mut estimate) }) {
        Ok(()) => Ok(estimate),
        Err(error) => Err(EstimateError { error, minimum_budget_bytes: estimate.minimum_budget_bytes }),
    }
}

/// The chain of one chunk of layers of one rank.
pub fn estimate_chain(
    model: &ModelDesc,
    layout: &LayoutDesc,
    hardware: Option<&HardwareDesc>,
    rank: u64,
    chunk: u64,
    alignment_bytes: usize,
) -> Result<Chain> {
    let (model, layout) = (sized!(model, ckpt_model_desc), sized!(layout, ckpt_layout_desc));
    let hardware = hardware.map(|given| sized!(given, ckpt_hardware_desc));
    let hardware = hardware.as_ref().map_or(ptr::null(), |given| given as *const _);
    let mut raw = ptr::null_mut();
    check(unsafe { sys::ckpt_estimate_chain(&model, &layout, hardware, rank, chunk, alignment_bytes, &mut raw) })?;
    Ok(Chain::from_raw(raw))
}
